/* SPDX-License-Identifier: MIT */
#include "op/by_mpi.h"

#include <sched.h>
#include <string.h>

#include "nbcshim.h"

#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/detect.h"
#include "below/next.h"
#include "below/quirks.h"
#include "op/stage.h"

#include "coll.h"
#include "sched.h"
#include "staged.h"

/* A function of the MPI, called with the arguments of a call. Without a call: whether the MPI has
 * it. */
typedef int by_mpi(const struct nbc_call *call, MPI_Request *request);

/* The arguments of the functions, of the call. */
#define SIDE_send call->send
#define SIDE_recv call->recv
#define SIDE_both call->send
#define ARG(kind, side, name) ARG_##kind(SIDE_##side),
#define ARG_IN(side) (void *)(uintptr_t)(side).buf
#define ARG_OUT ARG_IN
#define ARG_COUNT(side) (C)(side).count
#define ARG_COUNTS(side) (void *)(uintptr_t)(side).counts.data
#define ARG_DISPLS(side) (void *)(uintptr_t)(side).displs.data
#define ARG_ADDRESSES ARG_DISPLS
#define ARG_TYPE(side) (side).type
#define ARG_TYPES(side) (void *)(uintptr_t)(side).types
#define ARG_OP(side) call->op
#define ARG_ROOT(side) call->root

#define DEFINE(name, args)                                                      \
    static int by_mpi_##name(const struct nbc_call *call, MPI_Request *request) \
    {                                                                           \
        NBC_FIND_BELOW(name);                                                   \
        (void)request;                                                          \
        if (!call)                                                              \
            return function != NULL;                                            \
        const MPI_Comm comm = call->comm;                                       \
        return function args;                                                   \
    }
#define DEFINE_BLOCKING DEFINE
#define DEFINE_NONBLOCKING DEFINE
#define DEFINE_PERSISTENT(name, args)
#define EXTENSION_OF(...)

#define ENTRY(name, COLL, form, params, args, of, ...) DEFINE_##form(name, args)
#include "op/forms.def"
#undef ENTRY

enum { NLENGTHS = 2 }; /* of counts: int, MPI_Count */
#define PLACE(name, COLL, form) \
    [NBC_##COLL][sizeof(C) > sizeof(int)][NBC_KIND_##form] = by_mpi_##name,
#define PLACE_BLOCKING PLACE
#define PLACE_NONBLOCKING PLACE
#define PLACE_PERSISTENT(name, COLL, form)
#define ENTRY(name, COLL, form, ...) PLACE_##form(name, COLL, form)

static by_mpi *const functions[NBC_NCOLLS][NLENGTHS][NBC_NKINDS] = {
#include "op/forms.def"
};

static by_mpi *function_of(const struct nbc_call *call)
{
    return functions[call->coll][call->large][call->kind];
}

/* Where the MPI lacks the functions with MPI_Count, ranks that use either form in one call could
 * not all use the MPI's. */
static bool forms_may_differ(const struct nbc_call *call)
{
    uint32_t large =
        call->kind == NBC_KIND_BLOCKING ? UINT32_C(1) << call->coll : NBC_LARGE_REQUESTS;
    return nbc_referenced_large & large && !nbc_settings.test.same_form;
}

/* Whether the MPI's reduction gives wrong numbers. */
static bool reduces_wrongly(const struct nbc_bound *b)
{
    if (!b->reducer)
        return false;
    enum nbc_number number = b->types[NBC_TYPE_RECV]->number;
    bool is_short = number >= NBC_NUMBER_I8 && number <= NBC_NUMBER_U16;
    bool is_unsigned = number == NBC_NUMBER_U8 || number == NBC_NUMBER_U16 ||
                       number == NBC_NUMBER_U32 || number == NBC_NUMBER_U64;
    switch (b->reducer->arith) {
    case NBC_ARITH_SUM:
        return NBC_SATURATES && is_short;
    case NBC_ARITH_MIN:
    case NBC_ARITH_MAX:
        return NBC_MIXES_SIGNS && (is_unsigned || b->types[NBC_TYPE_RECV]->handle == MPI_OFFSET);
    default:
        return false;
    }
}

bool nbc_by_mpi_can(const struct nbc_call *call, const struct nbc_bound *b)
{
    by_mpi *function = function_of(call);
    return function && function(NULL, NULL) && !forms_may_differ(call) && !reduces_wrongly(b) &&
           !(nbc_quirks_wrong(call->kind == NBC_KIND_BLOCKING) >> call->coll & 1);
}

int nbc_by_mpi_call(const struct nbc_call *call, MPI_Request *request)
{
    return function_of(call)(call, request);
}

/* In the memory of a run, before its list of datatypes. */
struct native {
    struct nbc_call call; /* a side that is not significant has no buffer */
    MPI_Request request;
    MPI_Datatype apart; /* see call_apart, or MPI_DATATYPE_NULL */
    bool has_both;      /* sides are significant */
    bool started, over;

    /* With buffers that may be a device's: the run is being polled, by a thread that has released
     * the lock. */
    bool polled, begun;
};

/* Moves the send buffer, and the data in its datatype the other way. */
static int call_apart(struct native *n, struct nbc_call *call)
{
    int one = 1;
    MPI_Aint at = 64;
    call->send.buf = (const char *)call->send.buf - at;
    int error = NEXT(Type_create_struct)(1, &one, &at, &call->send.type, &n->apart);
    call->send.type = n->apart;
    return error ? error : NEXT(Type_commit)(&n->apart);
}

static void native_end(struct native *n)
{
    if (n->apart != MPI_DATATYPE_NULL)
        NEXT(Type_free)(&n->apart);
}

static int native_start(struct native *n, struct nbc_call call)
{
    int error = MPI_SUCCESS;
    n->started = true;
    if (NBC_SAME_IS_IN_PLACE && n->has_both && call.send.buf == call.recv.buf &&
        !nbc_coll_reduces(call.coll))
        error = call_apart(n, &call);
    return error ? error : nbc_by_mpi_call(&call, &n->request);
}

static int native_test(struct native *n)
{
    int flag = 0, error = NEXT(Test)(&n->request, &flag, MPI_STATUS_IGNORE);
    n->over = flag || error;
    if (n->over)
        native_end(n);
    return error;
}

static bool native_poll(struct nbc_run *run, int *error)
{
    struct native *n = run->memory;
    if (!n->started)
        return (*error = native_start(n, n->call));
    *error = native_test(n);
    return n->over;
}

/* --- buffers that may be in the memory of a device ----------------------------------------------
 *
 * Such a run is staged as others are, of a schedule that says which blocks the MPI reads, by sends
 * that are over at once, and which ones it writes, by receives that are over when its operation is.
 * On the host the blocks are as far apart as on the device. */

static int no_send(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    (void)self, (void)addr, (void)count, (void)type, (void)peer, (void)h;
    return NBC_SENT;
}

static const void *buffer_of(const struct nbc_run *run, const void *buf, enum nbc_buf which)
{
    return buf == MPI_IN_PLACE ? buf : (const void *)run->exec.base[which];
}

/* The MPI's function has ended on return if it blocks: without the lock, since the MPI may call
 * nbcshim meanwhile. */
static int staged_start(struct nbc_run *run, struct native *n)
{
    struct nbc_call call = n->call;
    call.send.buf = buffer_of(run, call.send.buf, NBC_BUF_SEND);
    call.recv.buf = buffer_of(run, call.recv.buf, NBC_BUF_RECV);
    n->over = call.kind == NBC_KIND_BLOCKING;
    if (n->over)
        nbc_unlock();
    int error = native_start(n, call);
    if (n->over) {
        native_end(n);
        nbc_lock();
    }
    return error;
}

/* The first receive is posted when all that the MPI reads is in the host's memory. */
static int staged_receive(void *self, uintptr_t addr, int64_t count, int type, int peer,
                          nbc_handle *h)
{
    struct nbc_run *run = self;
    struct native *n = run->memory;
    (void)addr, (void)count, (void)type, (void)peer;
    *h = 0;
    int error = n->started ? MPI_SUCCESS : staged_start(run, n);
    n->over = n->over || error;
    return n->over ? NBC_SENT - error : 0;
}

static int staged_look(void *self, int count, nbc_handle *h, int *done, int *ndone)
{
    struct nbc_run *run = self;
    struct native *n = run->memory;
    int failed = n->started && !n->over ? native_test(n) : MPI_SUCCESS, error = MPI_SUCCESS;
    for (int i = *ndone = 0; i < count && !error; i++) {
        bool over = n->over;
        if (nbc_stage_is_copy(run, i))
            error = nbc_stage_test(run, h[i], &over);
        if (over)
            done[(*ndone)++] = i;
    }
    return failed ? failed : error;
}

static const struct nbc_transport staged_transport = {.send = no_send,
                                                      .recv = staged_receive,
                                                      .poll = staged_look,
                                                      .stage = nbc_stage_copy,
                                                      .release = nbc_stage_release};

static bool staged_begin(struct nbc_run *run, struct native *n)
{
    n->begun = true;
    run->exec.base[NBC_BUF_SEND] = (uintptr_t)n->call.send.buf;
    run->exec.base[NBC_BUF_RECV] = (uintptr_t)n->call.recv.buf;
    int error = nbc_stage_begin(run, &staged_transport);
    if (!error)
        return nbc_exec_start(&run->exec);
    run->exec.error = error;
    return true;
}

/* The first poll waits until the data has been fetched and the MPI's operation started: one that
 * started after the call might come behind later ones of the communicator. */
static bool staged_poll(struct nbc_run *run, int *error)
{
    struct native *n = run->memory;
    if (n->polled)
        return false;
    n->polled = true;
    bool over = n->begun ? nbc_exec_poll(&run->exec) : staged_begin(run, n);
    while (!over && !n->started) {
        nbc_unlock();
        sched_yield();
        nbc_lock();
        over = nbc_exec_poll(&run->exec);
    }
    n->polled = false;
    *error = run->exec.error;
    return over;
}

/* The number of blocks of a side. */
static int blocks(const struct nbc_shape *s, bool send)
{
    const uint32_t both = NBC_BIT(ALLTOALL) | NBC_BIT(ALLTOALLV) | NBC_BIT(ALLTOALLW);
    const uint32_t out = NBC_BIT(SCATTER) | NBC_BIT(SCATTERV) | NBC_BIT(REDUCE_SCATTER_BLOCK) |
                         NBC_BIT(REDUCE_SCATTER);
    const uint32_t in =
        NBC_BIT(GATHER) | NBC_BIT(GATHERV) | NBC_BIT(ALLGATHER) | NBC_BIT(ALLGATHERV);
    return (both | (send ? out : in)) >> s->coll & 1 ? s->size : 1;
}

static void emit_flow(struct nbc_sched *flow, const struct nbc_shape *s)
{
    const struct nbc_significant both = nbc_bind_significant(s);
    const struct nbc_ref nothing = {.type = NBC_TYPE_BYTE, .buf = NBC_BUF_RECV};
    bool root = s->coll == NBC_BCAST && nbc_bind_is_root(s);
    bool scatter = s->coll == NBC_SCATTER || s->coll == NBC_SCATTERV;
    bool keeps = root || (scatter && s->in_place) || (s->coll == NBC_EXSCAN && s->rank == 0);
    int nread = both.send || (root && s->size > 1) ? blocks(s, true) : 0;
    int nwritten = both.recv && !keeps ? blocks(s, false) : 0;
    nbc_temp_bytes(flow, sizeof(struct native)); /* the first memory of the run */
    for (int i = 0; i < nread; i++)
        nbc_send(flow, nbc_send_block(s, i), i, NBC_NONE);
    nbc_id start = nbc_recv(flow, nothing, 0, NBC_NONE);
    nbc_after_since(flow, start, 0);
    for (int i = 0; i < nwritten; i++)
        nbc_recv(flow, nbc_recv_block(s, i), i, start);
}

static struct nbc_run *staged_run(const struct nbc_bound *b, MPI_Comm hidden)
{
    enum { FAR = 4096 }; /* as of other runs */
    const struct nbc_handle_refs handles = {b->types, b->shape.ntypes, b->reducer, false};
    struct nbc_sched *flow = nbc_build(emit_flow, &b->shape);
    struct nbc_staged *kept =
        flow ? nbc_staged_of(flow, b->shape.types, b->shape.ntypes, FAR) : NULL;
    struct nbc_run *run = kept ? nbc_run_new(flow, &handles, 0) : NULL;
    for (int buf = 0; buf < 2 && kept; buf++)
        for (int i = 0; i < kept->nparts[buf]; i++)
            kept->parts[buf][i].shift = 0;
    nbc_sched_release(flow);
    if (!run)
        return NULL;
    run->exec.transport = &staged_transport;
    run->poll = staged_poll;
    run->comm = hidden;
    run->device = NBC_DEVICE_STAGE;
    return run;
}

static struct nbc_run *plain_run(const struct nbc_bound *b)
{
    size_t list = (size_t)b->shape.ntypes * sizeof *b->types;
    struct nbc_run *run = nbc_run_plain(sizeof(struct native) + list, native_poll);
    if (run)
        run->handles =
            (struct nbc_handle_refs){memcpy((struct native *)run->memory + 1, b->types, list),
                                     b->shape.ntypes, b->reducer, false};
    return run;
}

struct nbc_run *nbc_by_mpi_run(const struct nbc_call *call, const struct nbc_bound *b,
                               MPI_Comm hidden, bool devices)
{
    const struct nbc_significant both = nbc_bind_significant(&b->shape);
    struct nbc_run *run = devices ? staged_run(b, hidden) : plain_run(b);
    if (!run)
        return NULL;
    struct native *n = run->memory;
    *n = (struct native){
        .call = *call, .apart = MPI_DATATYPE_NULL, .has_both = both.send && both.recv};
    if (!both.send)
        n->call.send.buf = NULL;
    if (!both.recv)
        n->call.recv.buf = NULL;
    run->bytes = nbc_shape_bytes(&b->shape);
    return run;
}
