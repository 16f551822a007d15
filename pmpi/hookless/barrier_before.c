/* SPDX-License-Identifier: MIT */
#include "hookless/barrier_before.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/errors.h"
#include "base/settings.h"
#include "below/quirks.h"
#include "engine/calls.h"
#include "hookless/poll.h"
#include "request/request.h"

#include "topo.h"

static bool is_needed(void)
{
    return nbc_settings.blocking != NBC_BLOCKING_NATIVE && (!nbc_hooked || nbc_settings.check);
}

/* --- of a communicator or group --------------------------------------------------------------- */

/* run: one of the functions of calls.h. */
static int barrier(MPI_Comm comm, int (*run)(const struct nbc_call *call))
{
    const struct nbc_call call = {.coll = NBC_BARRIER, .purpose = NBC_FOR_OTHERS, .comm = comm};
    int inter = 0, error = run(&call);
    /* After one barrier of an intercommunicator a rank knows that the remote group has made the
     * call; after the second it knows the same of its own group. */
    if (!error && !NEXT(Comm_test_inter)(comm, &inter) && inter)
        error = run(&call);
    return error == NBC_CALL_BELOW ? MPI_SUCCESS : error;
}

int nbc_barrier_before(MPI_Comm comm)
{
    nbc_progress_duplicates(comm);
    return is_needed() ? barrier(comm, nbc_call_blocking) : MPI_SUCCESS;
}

int nbc_barrier_before_outside_loop(MPI_Comm comm)
{
    bool forced = nbc_hooked && nbc_comm_is_ours(comm);
    nbc_progress_duplicates(comm);
    return barrier(comm, forced ? nbc_call_forced : nbc_call_blocking);
}

int nbc_barrier_before_constructor(MPI_Comm comm)
{
    return NBC_CONSTRUCTORS_WAIT ? nbc_barrier_before_outside_loop(comm) : nbc_barrier_before(comm);
}

int nbc_barrier_before_group(struct nbc_context *c, MPI_Group group, int tag)
{
    const struct nbc_signal signal = {.kind = NBC_SIGNAL_GROUP, .number = tag};
    int me = MPI_UNDEFINED;
    if (!(is_needed() || NBC_CONSTRUCTORS_WAIT) || group == MPI_GROUP_NULL ||
        c->members.remote_size)
        return MPI_SUCCESS; /* of a wrong group or communicator the MPI raises the error */
    NEXT(Group_rank)(group, &me);
    return me == MPI_UNDEFINED ? MPI_SUCCESS
                               : nbc_signal_group(c, group, &signal, NBC_SIGNAL_BARRIER);
}

/* --- of a window or file ---------------------------------------------------------------------- */

static struct nbc_object_barrier *barriers[NBC_NOBJECTS]; /* under the lock */

uint64_t nbc_object_key(const void *handle, size_t size)
{
    uint64_t key = 0;
    memcpy(&key, handle, size < sizeof key ? size : sizeof key);
    return key;
}

static bool add(struct nbc_object_barrier *b)
{
    HASH_ADD(hh, barriers[b->object], key, sizeof b->key, b);
    return nbc_added(b);
}

int nbc_object_barrier_new(enum nbc_object object, uint64_t key, MPI_Comm comm)
{
    const struct nbc_call call = {
        .coll = NBC_BARRIER, .purpose = NBC_FOR_OTHERS, .kind = NBC_KIND_PERSISTENT, .comm = comm};
    MPI_Request handle;
    /* Where the hook misses epochs, MPI_Win_start waits for signals. */
    if (!is_needed() &&
        !(object == NBC_WINDOW && nbc_hooked && nbc_hook_has(NBC_HOOK_MISSES_EPOCHS)))
        return MPI_SUCCESS;
    int error = nbc_call_init(&call, &handle);
    if (error)
        return error == NBC_CALL_BELOW ? MPI_SUCCESS : error;
    nbc_lock();
    struct nbc_request *r = nbc_request_find(handle);
    struct nbc_object_barrier *b = malloc(sizeof *b);
    if (b)
        *b = (struct nbc_object_barrier){
            .key = key, .object = object, .request = r, .posted = {NBC_SIGNAL_POST, r->tag, 0}};
    bool made = b && add(b);
    if (made) {
        nbc_request_hide(true);
        r->context->nobjects++;
    } else {
        free(b);
        nbc_request_free(r);
    }
    nbc_unlock();
    return made ? MPI_SUCCESS : nbc_raise(comm, MPI_ERR_NO_MEM);
}

struct nbc_object_barrier *nbc_object_barrier_find(enum nbc_object object, uint64_t key)
{
    struct nbc_object_barrier *b;
    if (!nbc_enabled || nbc_inside)
        return NULL; /* unreached: no memory */
    nbc_lock();
    HASH_FIND(hh, barriers[object], &key, sizeof key, b);
    nbc_unlock();
    return b;
}

int nbc_object_barrier_pass(struct nbc_object_barrier *b, bool ends)
{
    int error = MPI_SUCCESS;
    if (!b)
        return MPI_SUCCESS;
    nbc_lock();
    if (is_needed()) {
        nbc_progress_start(b->request);
        nbc_request_wait(b->request, 0);
        error = b->request->error;
        nbc_request_set_state(b->request, NBC_INACTIVE);
    }
    if (ends && !error)
        HASH_DEL(barriers[b->object], b);
    nbc_unlock();
    return error;
}

void nbc_object_barrier_ended(struct nbc_object_barrier *b, bool freed)
{
    if (!b)
        return;
    nbc_lock();
    if (freed) {
        nbc_request_hide(false);
        b->request->context->nobjects--;
        nbc_request_free(b->request);
        free(b);
    } else {
        add(b); /* without memory it is lost, as is the object that could not be freed */
    }
    nbc_unlock();
    nbc_context_reclaim();
}

/* --- signals ---------------------------------------------------------------------------------- */

enum { INTS = sizeof(struct nbc_signal) / sizeof(int) };

static int signal_tag(const struct nbc_context *c)
{
    return c->queue.first_tag + c->tag_space->signal;
}

static int signal_send(struct nbc_context *c, int peer, const struct nbc_signal *signal,
                       MPI_Request *request)
{
    return NEXT(Isend)((void *)(uintptr_t)signal, INTS, MPI_INT, peer, signal_tag(c), c->hidden,
                       request);
}

/* Receives the signals that have arrived from a rank. */
static int mail_collect(struct nbc_context *c, int source)
{
    for (;;) {
        int flag = 0;
        int error = NEXT(Iprobe)(source, signal_tag(c), c->hidden, &flag, MPI_STATUS_IGNORE);
        if (error || !flag)
            return error;
        struct nbc_mail *mail = malloc(sizeof *mail);
        if (!mail)
            return MPI_ERR_NO_MEM; /* unreached: no memory */
        error = NEXT(Recv)(&mail->signal, INTS, MPI_INT, source, signal_tag(c), c->hidden,
                           MPI_STATUS_IGNORE);
        if (error) {
            /* unreached below: the MPI fails */
            free(mail);
            return error;
        }
        mail->source = source;
        DL_APPEND(c->mail, mail);
    }
}

static bool mail_take(struct nbc_context *c, int source, struct nbc_signal *signal)
{
    struct nbc_mail *mail;
    DL_FOREACH (c->mail, mail)
        if (mail->source == source && mail->signal.kind == signal->kind &&
            mail->signal.number == signal->number)
            break;
    if (!mail)
        return false;
    *signal = mail->signal;
    DL_DELETE(c->mail, mail);
    free(mail);
    return true;
}

/* Waits for the next signal from a rank with the kind and number of *signal. */
static int signal_wait(struct nbc_context *c, int source, struct nbc_signal *signal)
{
    int error, spins = 0;
    bool came = false;
    nbc_lock();
    while (!(error = nbc_context_is_revoked(c) ? nbc_error_revoked : mail_collect(c, source)) &&
           !(came = mail_take(c, source, signal))) {
        nbc_progress(NULL);
        nbc_progress_yield(&spins);
    }
    nbc_unlock();
    return error;
}

int nbc_signal_exchange(struct nbc_context *c, int to, int from, struct nbc_signal *signal)
{
    static NBC_PER_THREAD struct nbc_signal mine; /* after an error it may still be under way */
    MPI_Request request;
    mine = *signal;
    int error = signal_send(c, to, &mine, &request);
    if (error)
        return error; /* unreached: no memory */
    error = signal_wait(c, from, signal);
    if (!error)
        return nbc_wait_other(&request, MPI_STATUS_IGNORE);
    NEXT(Request_free)(&request);
    return error;
}

/* The processes of a group, which signal each other. */
struct peers {
    struct nbc_context *c;
    MPI_Group group, all; /* `all`: of c->hidden */
    const struct nbc_signal *signal;
};

static int rank_in_all(const struct peers *p, int i)
{
    int rank = MPI_PROC_NULL;
    NEXT(Group_translate_ranks)(p->group, 1, &i, p->all, &rank);
    return rank;
}

static int exchange(int to, int from, void *peers)
{
    const struct peers *p = peers;
    struct nbc_signal signal = *p->signal;
    return nbc_signal_exchange(p->c, rank_in_all(p, to), rank_in_all(p, from), &signal);
}

static int post_or_await(const struct peers *p, int rank, bool waits)
{
    struct nbc_signal signal = *p->signal;
    MPI_Request request;
    if (waits)
        return signal_wait(p->c, rank, &signal);
    int error = signal_send(p->c, rank, p->signal, &request);
    return error ? error : NEXT(Request_free)(&request);
}

int nbc_signal_group(struct nbc_context *c, MPI_Group group, const struct nbc_signal *signal,
                     enum nbc_signal_use use)
{
    struct peers p = {.c = c, .group = group, .signal = signal};
    int n, me, error = NEXT(Comm_group)(c->hidden, &p.all);
    if (error)
        return error; /* unreached: the MPI fails */
    NEXT(Group_size)(group, &n);
    NEXT(Group_rank)(group, &me);
    if (use == NBC_SIGNAL_BARRIER)
        error = nbc_disseminate(me, n, exchange, &p);
    for (int i = 0; i < n && !error && use != NBC_SIGNAL_BARRIER; i++)
        error = post_or_await(&p, rank_in_all(&p, i), use == NBC_SIGNAL_AWAIT_ALL);
    NEXT(Group_free)(&p.all);
    return error;
}
