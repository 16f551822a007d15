/* SPDX-License-Identifier: MIT */
/* The constructors of communicators, and their end. Before the native call the ranks of the parent
 * agree on a range of tags for the new communicator. It gets its context right after the call,
 * where a collective call on it is legal. If the parent has no context, the new communicator gets
 * none either, on any rank. */
#include "base/errors.h"
#include "base/lock.h"
#include "base/state.h"
#include "below/export.h"
#include "below/quirks.h"
#include "comm/context.h"
#include "comm/handshake.h"
#include "engine/calls.h"
#include "engine/progress.h"
#include "hookless/barrier_before.h"
#include "op/call.h"
#include "op/members.h"
#include "op/run.h"
#include "request/request.h"

#include "hash.h"

NBC_ARCHIVE_MEMBER(communicators)

/* Makes the context of a new communicator, or frees the communicator. */
static int comm_attach(MPI_Comm parent, MPI_Comm *comm, struct nbc_origin *origin, MPI_Info hints)
{
    struct nbc_origin taken = *origin;
    origin->range = NBC_NO_RANGE;
    int error = nbc_context_attach(*comm, &taken);
    if (!error && hints != MPI_INFO_NULL)
        error = nbc_context_hint(*comm, hints);
    if (!error)
        return MPI_SUCCESS;
    NEXT(Comm_free)(comm);
    return nbc_raise(parent, error);
}

static int search_and(void *context, const uint64_t *mine, uint64_t *all, int words)
{
    return nbc_call_and(context, NBC_FOR_OTHERS, mine, all, words);
}

/* What precedes a constructor: the ranks of the parent agree on a range, if it has none to spare.
 * When this returns all ranks have made the call, where a barrier before the call has that effect:
 * without the hook a search has it, so none finds ranges to spare; nor where constructors wait,
 * which have a barrier if there are no ranges. */
static int comm_prepare(MPI_Comm parent, bool duplicate, struct nbc_origin *origin)
{
    nbc_lock();
    struct nbc_context *c = nbc_context_find(parent);
    *origin = nbc_origin_of(c, duplicate);
    bool searches = origin->range < 0 && !c->spans_jobs && nbc_ranges_on(&nbc_ranges);
    nbc_unlock();
    if (!searches)
        return nbc_barrier_before_constructor(parent);
    nbc_progress_duplicates(parent);
    struct nbc_spare_ranges *spare = nbc_hooked && !NBC_CONSTRUCTORS_WAIT ? &c->spare : NULL;
    nbc_lock();
    int error = nbc_ranges_search(&nbc_ranges, origin->key, search_and, c, spare, &origin->range);
    nbc_unlock();
    return error ? nbc_raise(parent, error) : MPI_SUCCESS;
}

#define CONSTRUCTOR(name, params, args, parent) \
    ANY_CONSTRUCTOR(name, params, args, parent, false, MPI_INFO_NULL)

#define DUPLICATOR(name, params, args, parent, hints) \
    ANY_CONSTRUCTOR(name, params, args, parent, true, hints)

/* The scope ends by an error or an exception (C++), too. */
#define ANY_CONSTRUCTOR(name, params, args, parent, duplicate, hints)        \
    EXPORT(int, name, params, args)                                          \
    {                                                                        \
        if (!nbc_comm_is_ours(parent))                                       \
            return NEXT(name) args;                                          \
        __attribute__((cleanup(nbc_origin_drop))) struct nbc_origin origin;  \
        int error = comm_prepare(parent, duplicate, &origin);                \
        if (!error)                                                          \
            error = NEXT(name) args;                                         \
        return error ? error : comm_attach(parent, newcomm, &origin, hints); \
    }

DUPLICATOR(Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm), comm, MPI_INFO_NULL)

CONSTRUCTOR(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm),
            (comm, group, newcomm), comm)

CONSTRUCTOR(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm),
            (comm, color, key, newcomm), comm)

CONSTRUCTOR(Cart_create,
            (MPI_Comm comm, int ndims, NBC_CONST int dims[], NBC_CONST int periods[], int reorder,
             MPI_Comm *newcomm),
            (comm, ndims, dims, periods, reorder, newcomm), comm)

CONSTRUCTOR(Cart_sub, (MPI_Comm comm, NBC_CONST int remain[], MPI_Comm *newcomm),
            (comm, remain, newcomm), comm)

CONSTRUCTOR(Graph_create,
            (MPI_Comm comm, int nnodes, NBC_CONST int index[], NBC_CONST int edges[], int reorder,
             MPI_Comm *newcomm),
            (comm, nnodes, index, edges, reorder, newcomm), comm)

CONSTRUCTOR(Dist_graph_create,
            (MPI_Comm comm, int n, NBC_CONST int sources[], NBC_CONST int degrees[],
             NBC_CONST int destinations[], NBC_CONST int weights[], MPI_Info info, int reorder,
             MPI_Comm *newcomm),
            (comm, n, sources, degrees, destinations, weights, info, reorder, newcomm), comm)

CONSTRUCTOR(Dist_graph_create_adjacent,
            (MPI_Comm comm, int indegree, NBC_CONST int sources[], NBC_CONST int sourceweights[],
             int outdegree, NBC_CONST int destinations[], NBC_CONST int destweights[],
             MPI_Info info, int reorder, MPI_Comm *newcomm),
            (comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info,
             reorder, newcomm),
            comm)

CONSTRUCTOR(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *newcomm), (comm, high, newcomm),
            comm)

#ifdef HAVE_MPI_COMM_DUP_WITH_INFO
DUPLICATOR(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm),
           (comm, info, newcomm), comm, info)
#endif

#ifdef HAVE_MPI_COMM_SPLIT_TYPE
CONSTRUCTOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *newcomm),
            (comm, type, key, info, newcomm), comm)
#endif

/* --- constructors that not all ranks of a communicator call ----------------------------------- */

/* Their ranks agree on a range after the native call, by the MPI below on the new communicator. */
static int created_and(void *comm, const uint64_t *mine, uint64_t *all, int words)
{
    nbc_unlock();
    int error = nbc_agree_and(*(MPI_Comm *)comm, mine, all, words);
    nbc_lock();
    return error;
}

static int comm_attach_later(MPI_Comm parent, MPI_Comm *comm, struct nbc_origin *origin)
{
    int error = MPI_SUCCESS;
    if (*comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    nbc_lock();
    if (origin->parent && !origin->parent->spans_jobs && nbc_ranges_on(&nbc_ranges))
        error =
            nbc_ranges_search(&nbc_ranges, origin->key, created_and, comm, NULL, &origin->range);
    nbc_unlock();
    if (!error)
        return comm_attach(parent, comm, origin, MPI_INFO_NULL);
    /* unreached below: the MPI fails */
    NEXT(Comm_free)(comm);
    return nbc_raise(parent, error);
}

#ifdef HAVE_MPI_COMM_CREATE_GROUP
EXPORT(int, Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm),
       (comm, group, tag, newcomm))
{
    struct nbc_context *c = nbc_context_of(comm);
    if (!c)
        return NEXT(Comm_create_group)(comm, group, tag, newcomm);
    int error = nbc_barrier_before_group(c, group, tag);
    if (error)
        return nbc_raise(comm, error); /* unreached: the MPI fails */
    error = NEXT(Comm_create_group)(comm, group, tag, newcomm);
    struct nbc_origin origin = {
        .parent = c, .key = nbc_hash_pair(c->key, (unsigned)tag), .range = NBC_NO_RANGE};
    return error ? error : comm_attach_later(comm, newcomm, &origin);
}
#endif

/* Exchanges a signal with the other leader: each says what its local communicator has, a context,
 * and maybe one that does not span jobs. *both: what both have. If the peer communicator has no
 * context, neither leader sends a signal. */
enum { HAS_NONE, HAS_CONTEXT, HAS_WORLD };

static int sync_leaders(MPI_Comm peer, int remote_leader, int tag, int has, int *both)
{
    struct nbc_context *c = nbc_context_of(peer);
    *both = HAS_NONE;
    if (!c || remote_leader < 0 ||
        remote_leader >= (c->members.remote_size ? c->members.remote_size : c->members.size))
        return MPI_SUCCESS;
    nbc_lock();
    int error = nbc_context_complete(c);
    nbc_unlock();
    if (error)
        return error; /* unreached: the MPI fails */
    const int *ranks = nbc_context_ranks(c);
    int to = ranks ? ranks[remote_leader] : remote_leader;
    struct nbc_signal signal = {.kind = NBC_SIGNAL_LEADER, .number = tag, .value = has};
    error = nbc_signal_exchange(c, to, to, &signal);
    *both = has < signal.value ? has : signal.value;
    return error;
}

/* When this returns all ranks of both groups have made the call: a leader sends its signal after
 * the barrier of its group, and the broadcast follows the signal of the other leader. Where the
 * local communicator has no context, that of the other group may have one: the leader answers.
 * Wrong arguments are left to the MPI, which raises the error. */
static int sync_groups(const struct nbc_context *c, MPI_Comm local, int leader, MPI_Comm peer,
                       int remote_leader, int tag, int *both)
{
    int rank, error = MPI_SUCCESS;
    if (!nbc_enabled || nbc_inside || local == MPI_COMM_NULL || NEXT(Comm_rank)(local, &rank))
        return MPI_SUCCESS;
    if (c && (c->members.remote_size || leader < 0 || leader >= c->members.size))
        return MPI_SUCCESS;
    if (c && (error = nbc_barrier_before(local)))
        return error; /* unreached: the MPI fails */
    if (rank == leader)
        error = sync_leaders(peer, remote_leader, tag,
                             !c              ? HAS_NONE
                             : c->spans_jobs ? HAS_CONTEXT
                                             : HAS_WORLD,
                             both);
    if (error)
        return nbc_raise(local, error); /* unreached: the MPI fails */
    const struct nbc_call bcast = {
        .coll = NBC_BCAST,
        .purpose = NBC_FOR_OTHERS,
        .comm = local,
        .root = leader,
        .recv = {.buf = both, .count = 1, .type = MPI_INT},
    };
    return c ? nbc_call_forced(&bcast) : MPI_SUCCESS;
}

/* The groups of two jobs that have met earlier have no MPI_COMM_WORLD in common. Each rank finds
 * that out by itself, in the same way. */
static bool remote_is_in_world(MPI_Comm inter, int n)
{
    struct nbc_world_ranks *ranks;
    int error = nbc_world_ranks_new(inter, true, n, &ranks);
    nbc_world_ranks_release(ranks);
    return error != MPI_ERR_GROUP;
}

static int inter_attach(struct nbc_context *c, int both, MPI_Comm *inter)
{
    struct nbc_origin origin = {.range = NBC_NO_RANGE};
    int n = c->members.size, m;
    NEXT(Comm_remote_size)(*inter, &m);
    if (both == HAS_WORLD && remote_is_in_world(*inter, m)) {
        origin.parent = c;
        origin.key = nbc_hash_pair((uint64_t)n * (unsigned)m, (unsigned)(n + m));
    }
    return comm_attach_later(c->user, inter, &origin);
}

EXPORT(int, Intercomm_create,
       (MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
        MPI_Comm *newcomm),
       (local, local_leader, peer, remote_leader, tag, newcomm))
{
    int both = HAS_NONE;
    struct nbc_context *c = nbc_context_of(local);
    int error = sync_groups(c, local, local_leader, peer, remote_leader, tag, &both);
    if (!error)
        error = NEXT(Intercomm_create)(local, local_leader, peer, remote_leader, tag, newcomm);
    return error || !both ? error : inter_attach(c, both, newcomm);
}

/* --- the end of a communicator --------------------------------------------------------------- */

/* An incomplete operation that may still communicate in a context; NULL if there is none. Under the
 * lock. */
static struct nbc_request *pending_in(const struct nbc_context *c)
{
    struct nbc_run *run = nbc_progress_first();
    if (c->queue.pending || c->blocking.pending)
        return c->queue.pending ? c->queue.pending : c->blocking.pending;
    while (run && run->request->context != c)
        run = run->next;
    return run ? run->request : NULL;
}

/* Waits until a context has no pending operations. Under the lock, which is released between polls.
 */
static void comm_drain(const struct nbc_context *c)
{
    struct nbc_request *r;
    int spins = 0;
    while ((r = pending_in(c))) {
        nbc_progress(r);
        nbc_progress_yield(&spins);
    }
}

/* Disconnects a duplicate of its own while all ranks are in MPI_Comm_disconnect. Later they would
 * make this collective call at different times, and some would wait for ranks that still have a
 * request. Persistent operations cannot be started after it. If windows or files of the
 * communicator exist, the duplicate stays. Under the lock, which is released to wait. */
static void comm_disconnect_hidden(struct nbc_context *c)
{
    comm_drain(c); /* of what attribute callbacks have started */
    if (c->nobjects > 0 || c->delivery != NBC_DELIVERY_SOUND)
        return;
    c->life = NBC_CONTEXT_DISCONNECTED;
    if (c->host)
        return;
    MPI_Comm hidden = c->hidden;
    c->hidden = MPI_COMM_NULL;
    nbc_unlock();
    NEXT(Comm_disconnect)(&hidden);
    nbc_lock();
}

struct ending {
    struct nbc_context *c;
    const MPI_Comm *comm;
    bool disconnect;
};

static void ending_settle(const struct ending *e)
{
    if (!e->c || !nbc_context_ended(e->c, *e->comm))
        return;
    nbc_lock();
    if (e->disconnect)
        comm_disconnect_hidden(e->c);
    nbc_context_release(e->c);
    nbc_unlock();
    nbc_context_reclaim();
}

/* The native call runs attribute callbacks of the program, which may use the communicator. That of
 * MPI_Comm_disconnect may wait for the other ranks without progress of nbcshim's operations. An
 * error handler may end the call by an exception (C++, -fexceptions). */
static int comm_end(MPI_Comm *comm, int (*native)(MPI_Comm *), bool disconnect)
{
    __attribute__((cleanup(ending_settle))) const struct ending e = {
        .c = nbc_context_ending(*comm), .comm = comm, .disconnect = disconnect};
    if (e.c && disconnect) {
        nbc_lock();
        comm_drain(e.c);
        nbc_unlock();
    }
    return native(comm);
}

/* Local on the MPIs that nbcshim supports. Open MPI crashes if a communicator is freed while an
 * MPI_Comm_idup of it is pending, which all ranks have called. */
EXPORT(int, Comm_free, (MPI_Comm * comm), (comm))
{
    if (!comm || !nbc_comm_is_ours(*comm))
        return NEXT(Comm_free)(comm);
    nbc_progress_duplicates(*comm);
    return comm_end(comm, NEXT(Comm_free), false);
}

/* Collective. A hidden duplicate of its own is disconnected too, or the processes would stay
 * connected. All processes that share the duplicate of MPI_COMM_WORLD are connected anyway. */
EXPORT(int, Comm_disconnect, (MPI_Comm * comm), (comm))
{
    const struct nbc_context *c = comm ? nbc_context_of(*comm) : NULL;
    if (!c)
        return NEXT(Comm_disconnect)(comm);
    /* Between jobs Open MPI waits in the launcher's library. */
    int error = c->spans_jobs ? nbc_barrier_before_outside_loop(*comm) : nbc_barrier_before(*comm);
    return error ? error : comm_end(comm, NEXT(Comm_disconnect), true);
}
