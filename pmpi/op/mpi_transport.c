/* SPDX-License-Identifier: MIT */
#include "op/mpi_transport.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/state.h"
#include "base/tag_space.h"
#include "below/hook.h"
#include "below/quirks.h"
#include "op/message.h"
#include "op/nodemap.h"
#include "op/run.h"
#include "op/shared.h"
#include "op/stage.h"
#include "op/types.h"

#include "block.h"
#include "coll.h"
#include "exec_over.h"

NBC_STEP int transport_send(void *self, uintptr_t addr, int64_t count, int type, int peer,
                            nbc_handle *h)
{
    struct nbc_run *r = self;
    const int rank = nbc_run_peer(r, peer);
    struct nbc_shared_peer *shared = r->shares ? nbc_shared_peer_of(rank) : NULL;
    return shared ? nbc_shared_send(r, shared, addr, count, type, rank, h)
                  : nbc_message_send(r, addr, count, type, rank, h);
}

NBC_STEP int transport_receive(void *self, uintptr_t addr, int64_t count, int type, int peer,
                               nbc_handle *h)
{
    struct nbc_run *r = self;
    const int rank = nbc_run_peer(r, peer);
    struct nbc_shared_peer *shared = r->shares ? nbc_shared_peer_of(rank) : NULL;
    return shared ? nbc_shared_receive(r, shared, addr, count, type, rank, h)
                  : nbc_message_receive(r, addr, count, type, rank, h);
}

/* Message number i in flight is over without an error of the MPI. */
static inline int check_length(const struct nbc_run *r, int i, const MPI_Status *status)
{
    const struct nbc_op *op = &r->exec.sched->ops[r->exec.inflight[i]];
    if (op->kind != NBC_OP_RECV)
        return MPI_SUCCESS;
    return nbc_message_compare(status, op->count * r->handles.types[op->type]->layout.size);
}

static bool has_failed; /* a message of any operation; under the lock */

/* The largest number of messages that are tested one by one. For two, MPI_Test twice takes fewer
 * instructions than MPI_Testsome once: 40 % fewer on MPICH 4.0.2. */
enum { FEW = 2 };

/* One test at least enters the loop of the MPI, unless this is called there. mixed: there may be
 * messages in shared memory, which are left out. */
NBC_STEP int poll_each(bool mixed, struct nbc_run *r, int first, int n, nbc_handle *h, int *done,
                       int *ndone)
{
    /* mutants: || for &&: for speed, or MPICH from 4.3 on */
    const bool pending = r->pending && !nbc_inside_mpi_loop;
    bool enters = !nbc_inside_mpi_loop;
    int error = MPI_SUCCESS;
    *ndone = 0;
    for (int i = first; i < first + n && !error; i++) {
        if (mixed && nbc_shared_is(h[i]))
            continue;
        MPI_Request request = nbc_message_load(&h[i]);
        MPI_Status status;
        bool over = enters || nbc_message_is_worth_a_test(request);
        enters = false;
        if (over)
            error = nbc_message_end(&request, &status, pending, &over);
        if (!over)
            continue;
        done[(*ndone)++] = i;
        error = error ? error : check_length(r, i, &status);
    }
    r->pending = *ndone == 0; /* mutants: != for ==: for speed */
    if (__builtin_expect(error, 0))
        has_failed = true; /* mutants: false for true: matters over UCX alone */
    return error;
}

/* The largest number of messages of one operation that one call tests. */
enum { BATCH = 32 };

/* Messages in flight that one call tests. */
struct batch {
    int n, at[BATCH];
};

/* Almost always the MPI returns them in order. */
static void sort_ints(int *list, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && list[k - 1] > list[k]; k--) {
            int larger = list[k - 1];
            list[k - 1] = list[k];
            list[k] = larger;
        }
}

static int first_error(int error, const MPI_Status *statuses, int n)
{
    if (!error || !nbc_error_is_of(error, MPI_ERR_IN_STATUS))
        return error;
    for (int i = 0; i < n; i++)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS)
            return statuses[i].MPI_ERROR;
    return error; /* unreached: the MPI fails */
}

static bool has_int(const int *list, int n, int wanted)
{
    for (int i = 0; i < n; i++)
        if (list[i] == wanted)
            return true;
    return false;
}

/* Adds messages to those that are over: those that were freed under way, see NBC_TESTSOME_FREES.
 * The run and its tag are given up. Returns their new number. */
static __attribute__((cold)) int add_freed(struct nbc_run *r, const MPI_Request *batch, int n,
                                           int *done, int ndone)
{
    int all = ndone;
    has_failed = true; /* mutants: false for true: matters over UCX alone */
    for (int i = 0; i < n; i++)
        if (batch[i] == MPI_REQUEST_NULL && !has_int(done, ndone, i))
            done[all++] = i;
    if (all > ndone)
        r->exec.abandoned = r->exec.lost = true;
    return all;
}

static int poll_batch(struct nbc_run *r, const struct batch *b, nbc_handle *h, int *done,
                      int *ndone)
{
    MPI_Request batch[BATCH];
    MPI_Status statuses[BATCH];
    for (int i = 0; i < b->n; i++)
        batch[i] = nbc_message_load(&h[b->at[i]]);
    int outcount = 0;
    int error = NEXT(Testsome)(b->n, batch, &outcount, done, statuses);
    if (outcount == MPI_UNDEFINED || (error && !nbc_error_is_of(error, MPI_ERR_IN_STATUS)))
        outcount = 0; /* unreached: the MPI fails */
    *ndone = error ? add_freed(r, batch, b->n, done, outcount) : outcount;
    for (int i = 0; i < *ndone; i++)
        done[i] = b->at[done[i]];
    for (int i = 0; i < outcount && !error; i++)
        error = check_length(r, done[i], &statuses[i]);
    return first_error(error, statuses, outcount);
}

static bool is_send(const struct nbc_run *r, int i)
{
    /* mutants: != for ==: another of two tests comes first */
    return r->exec.sched->ops[r->exec.inflight[i]].kind == NBC_OP_SEND;
}

/* With NBC_TESTSOME_FREES the receives, and if none of them is over the sends. */
static __attribute__((noinline)) int poll_many(bool mixed, struct nbc_run *r, int n, nbc_handle *h,
                                               int *done, int *ndone)
{
    if (nbc_inside_mpi_loop || (NBC_TESTSOME_FREES && has_failed))
        return poll_each(mixed, r, 0, n, h, done, ndone);
    int first = 0, error = MPI_SUCCESS;
    if (n > BATCH) { /* test one batch, the next one in the next poll */
        first = r->cursor < n ? r->cursor : 0;
        r->cursor = first + BATCH;
        n = n - first < BATCH ? n - first : BATCH;
    }
    if (nbc_quirks_tests_each)
        return poll_each(mixed, r, first, n, h, done, ndone); /* unreached: Ubuntu's MPICH */
    struct batch messages, sends;
    *ndone = messages.n = sends.n = 0;
    for (int i = first; i < first + n; i++) {
        if (mixed && nbc_shared_is(h[i]))
            continue;
        struct batch *b = NBC_TESTSOME_FREES && is_send(r, i) ? &sends : &messages;
        b->at[b->n++] = i;
    }
    if (messages.n > 0) /* mutants: >= for >: one test tests nothing */
        error = poll_batch(r, &messages, h, done, ndone);
    if (*ndone == 0 && !error && sends.n > 0) /* mutants: >= for >: one test tests nothing */
        error = poll_batch(r, &sends, h, done, ndone);
    sort_ints(done, *ndone); /* the standard defines no order */
    return error;
}

NBC_STEP int poll_mpi(bool mixed, struct nbc_run *r, int n, nbc_handle *h, int *done, int *ndone)
{
    return n <= FEW ? poll_each(mixed, r, 0, n, h, done, ndone)
                    : poll_many(mixed, r, n, h, done, ndone);
}

/* Adds the messages in shared memory that are over. */
NBC_STEP int poll_shared(bool mixed, int n, nbc_handle *h, int *done, int *ndone)
{
    int error = MPI_SUCCESS, one;
    for (int i = 0; i < n; i++) {
        if ((mixed && !nbc_shared_is(h[i])) || !nbc_shared_test(h[i], &one))
            continue;
        done[(*ndone)++] = i;
        error = error ? error : one;
    }
    return error;
}

static int poll_mixed(struct nbc_run *r, int n, nbc_handle *h, int *done, int *ndone)
{
    int error = poll_mpi(true, r, n, h, done, ndone);
    if (error)
        return error;
    error = poll_shared(true, n, h, done, ndone);
    sort_ints(done, *ndone);
    return error;
}

NBC_STEP int transport_poll(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    struct nbc_run *r = self;
    int nshared = 0;
    if (!r->shares)
        return poll_mpi(false, r, n, h, done, ndone);
    for (int i = 0; i < n; i++)
        nshared += nbc_shared_is(h[i]);
    if (nshared < n)
        return nshared ? poll_mixed(r, n, h, done, ndone) : poll_mpi(false, r, n, h, done, ndone);
    *ndone = 0;
    int error = poll_shared(false, n, h, done, ndone);
    if (*ndone == 0 && !nbc_is_inside_mpi())
        nbc_poll_the_mpi(); /* as the poll of a message of the MPI would */
    has_failed |= error != MPI_SUCCESS;
    return error;
}

static bool transport_drop(void *self, int i, nbc_handle h)
{
    const struct nbc_run *r = self;
    return r->shares && nbc_shared_is(h) ? nbc_shared_drop(h)
                                         : nbc_message_give_up(h, is_send(r, i), NULL);
}

static bool staged_drop(void *self, int i, nbc_handle h)
{
    return !nbc_stage_is_copy(self, i) && transport_drop(self, i, h);
}

typedef int post(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h);

/* An empty message needs no device. */
static int staged_post(post *call, void *self, uintptr_t addr, int64_t count, int type, int peer,
                       nbc_handle *h)
{
    void *before = NULL;
    int error = MPI_SUCCESS;
    struct nbc_device *entered = nbc_stage_enter(self, &before, count > 0 ? &error : NULL);
    if (error)
        return error;
    error = call(self, addr, count, type, peer, h);
    nbc_stage_leave(entered, before);
    return error;
}

static int staged_send(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    return staged_post(transport_send, self, addr, count, type, peer, h);
}

static int staged_receive(void *self, uintptr_t addr, int64_t count, int type, int peer,
                          nbc_handle *h)
{
    return staged_post(transport_receive, self, addr, count, type, peer, h);
}

/* Of those in flight. Returns their number. */
static int put_messages_first(struct nbc_run *r, int n, nbc_handle *h)
{
    int32_t *ops = r->exec.inflight;
    int first = 0;
    for (int i = 0; i < n; i++) {
        if (nbc_stage_is_copy(r, i))
            continue;
        int32_t op = ops[i];
        nbc_handle handle = h[i];
        ops[i] = ops[first];
        h[i] = h[first];
        ops[first] = op;
        h[first++] = handle;
    }
    return first;
}

/* Messages as in other runs: what has arrived is used before the MPI moves the next. */
static int staged_poll(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    struct nbc_run *r = self;
    int messages = put_messages_first(r, n, h);
    void *before = NULL;
    struct nbc_device *entered = nbc_stage_enter(r, &before, NULL);
    int error = transport_poll(self, messages, h, done, ndone);
    nbc_stage_leave(entered, before);
    for (int i = messages; i < n && !error; i++) {
        bool over;
        error = nbc_stage_test(r, h[i], &over);
        if (over)
            done[(*ndone)++] = i;
    }
    return error;
}

#ifdef NBC_SIMULATED
static int transport_wait(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    MPI_Request few[BATCH], *list = n > BATCH ? malloc((size_t)n * sizeof *list) : few;
    if (!list)
        return transport_poll(self, n, h, done, ndone);
    for (int i = 0; i < n; i++)
        list[i] = nbc_message_load(&h[i]);
    MPI_Status status;
    int error = NEXT(Waitany)(n, list, done, &status);
    *ndone = *done != MPI_UNDEFINED;
    if (list != few)
        free(list);
    return error || !*ndone ? error : check_length(self, *done, &status);
}
#endif

static const struct nbc_type *layout_of(const struct nbc_run *r, int type)
{
    return &r->handles.types[type]->layout;
}

/* Copies elements that are too large for MPI_Pack by a message from this rank to itself.
 * nbc_self_comm carries it; where there is none, the hidden communicator, where operations send no
 * other such message. On an intercommunicator a rank cannot address itself. */
/* unreached: above 2 GiB */
static int transport_copy_by_message(const struct nbc_run *r, uintptr_t dst, int64_t dcount,
                                     int dtype, uintptr_t src, int64_t scount, int stype)
{
    int inter = 0, rank;
    MPI_Request request[2];
    MPI_Status statuses[2];
    MPI_Comm comm = nbc_self_comm != MPI_COMM_NULL ? nbc_self_comm : r->comm;
    const int tag = comm == nbc_self_comm ? nbc_self_tag() : r->tag;
    if (nbc_self_comm == MPI_COMM_NULL)
        NEXT(Comm_test_inter)(comm, &inter);
    if (inter)
        return MPI_ERR_OTHER;
    NEXT(Comm_rank)(comm, &rank);
    int error = nbc_message_post(false, (void *)dst, dcount, r->handles.types[dtype]->handle, rank,
                                 tag, comm, &request[0]);
    if (error)
        return error;
    error = nbc_message_post(true, (void *)src, scount, r->handles.types[stype]->sent, rank, tag,
                             comm, &request[1]);
    if (!error) { /* mutants: forget not: only if the MPI refuses a message to ourselves */
        error = NEXT(Waitall)(2, request, statuses);
        return first_error(error, statuses, 2);
    }
    /* mutants: leave a call out: only if the MPI refuses a message to ourselves */
    NEXT(Cancel)(&request[0]);
    /* mutants: leave a call out: only if the MPI refuses a message to ourselves */
    NEXT(Wait)(&request[0], MPI_STATUS_IGNORE);
    return error;
}

static int transport_copy(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src,
                          int64_t scount, int stype)
{
    const struct nbc_run *r = self;
    const struct nbc_type *d = layout_of(r, dtype), *s = layout_of(r, stype);
    int64_t n = scount * s->size;
    if (n != dcount * d->size)
        return MPI_ERR_TRUNCATE;
    if (n == 0)
        return 0;
    if (d->packed && s->packed) {
        memcpy((void *)dst, (void *)src, n);
        return 0;
    }
    /* mutants: && for ||, >= for >: above 2 GiB, which test/mpi/large has; a limit will do too */
    if ((!d->packed && d->size > INT_MAX) || (!s->packed && s->size > INT_MAX))
        /* unreached: above 2 GiB */
        return transport_copy_by_message(r, dst, dcount, dtype, src, scount, stype);
    if (d->packed)
        return nbc_message_pack(r, true, src, scount, stype, (char *)dst);
    if (s->packed)
        return nbc_message_pack(r, false, dst, dcount, dtype, (char *)src);
    char *bytes = malloc(n);
    if (!bytes)
        return MPI_ERR_NO_MEM;
    int error = nbc_message_pack(r, true, src, scount, stype, bytes);
    if (!error)
        error = nbc_message_pack(r, false, dst, dcount, dtype, bytes);
    free(bytes);
    return error;
}

/* inout = in op inout. */
static int reduce_by_operator(const struct nbc_run *r, uintptr_t in, uintptr_t inout, int64_t count,
                              int type)
{
    int64_t extent = layout_of(r, type)->extent;
    /* mutants: <= for <: a copy of nothing is none */
    for (int64_t i = 0; i < count; i += NBC_CHUNK) {
        int n = (int)(count - i < NBC_CHUNK ? count - i : NBC_CHUNK);
        /* mutants: - for +: above 2^30 elements, which test/mpi/large has */
        int error = nbc_quirks_reduce_local((void *)(in + i * extent), (void *)(inout + i * extent),
                                            n, r->handles.types[type]->handle,
                                            r->handles.reducer->handle, nbc_world_initialized);
        if (error)
            return error; /* unreached: the MPI fails */
    }
    return 0;
}

NBC_STEP int transport_reduce(void *self, uintptr_t dst, uintptr_t left, uintptr_t right,
                              int64_t count, int type)
{
    const struct nbc_run *r = self;
    if (r->kernel) {
        r->kernel((void *)dst, (void *)left, (void *)right, count);
        return MPI_SUCCESS;
    }
    if (dst != right) {
        int error = transport_copy(self, dst, count, type, right, count, type);
        if (error)
            return error; /* unreached: the MPI fails */
    }
    return reduce_by_operator(r, left, dst, count, type);
}

const struct nbc_transport nbc_mpi_transport = {
    .send = transport_send,
    .recv = transport_receive,
    .poll = transport_poll,
#ifdef NBC_SIMULATED
    .wait = transport_wait,
#endif
    .copy = transport_copy,
    .reduce = transport_reduce,
    .drop = transport_drop,
};

bool nbc_transport_start(struct nbc_exec *e)
{
    return e->transport == &nbc_mpi_transport ? nbc_step_start(e, &nbc_mpi_transport)
                                              : nbc_exec_start(e);
}

bool nbc_transport_poll(struct nbc_exec *e)
{
    return e->transport == &nbc_mpi_transport
               ? nbc_step_poll(e, &nbc_mpi_transport, nbc_mpi_transport.poll)
               : nbc_exec_poll(e);
}

bool nbc_transport_await(struct nbc_exec *e)
{
    enum { LOOKS = 64 };
    const struct nbc_run *r = e->self;
    const bool looks = r->shares && e->transport == &nbc_mpi_transport && e->nready == 0 &&
                       e->ninflight <= FEW && !nbc_oversubscribed && !nbc_threaded;
    for (int i = 0; looks && i < LOOKS; i++)
        for (int k = 0; k < e->ninflight; k++)
            if (!nbc_shared_is(e->handles[k]) || nbc_shared_may_end(e->handles[k]))
                return nbc_transport_poll(e);
    return nbc_transport_poll(e);
}

const struct nbc_transport nbc_staged_transport = {
    .send = staged_send,
    .recv = staged_receive,
    .poll = staged_poll,
    .copy = transport_copy,
    .reduce = transport_reduce,
    .stage = nbc_stage_copy,
    .drop = staged_drop,
    .release = nbc_stage_release,
};
