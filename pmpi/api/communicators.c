/* SPDX-License-Identifier: MIT */
/* The constructors of communicators, and their end. A new communicator gets its context right after
 * the native call, where a collective call on it is legal. If the parent has no context, the new
 * communicator gets none either, on any rank. */
#include <stdlib.h>

#include "api/calls.h"
#include "api/presync.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/export.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "engine/signal.h"
#include "op/call.h"
#include "request/request.h"

#include "coll.h"

static int comm_attach(MPI_Comm parent, MPI_Comm *comm, MPI_Info hints)
{
    int error = nbc_context_attach(*comm);
    if (!error && hints != MPI_INFO_NULL)
        error = nbc_context_hint(*comm, hints);
    if (!error)
        return MPI_SUCCESS;
    NEXT(Comm_free)(comm);
    return nbc_raise(parent, error);
}

#define CONSTRUCTOR(name, params, args, parent) HINTED(name, params, args, parent, MPI_INFO_NULL)

#define HINTED(name, params, args, parent, hints)                   \
    EXPORT(int, name, params, args)                                 \
    {                                                               \
        if (!nbc_knows(parent))                                     \
            return NEXT(name) args;                                 \
        int error = nbc_presync(parent);                            \
        if (!error)                                                 \
            error = NEXT(name) args;                                \
        return error ? error : comm_attach(parent, newcomm, hints); \
    }

CONSTRUCTOR(Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm), comm)

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
HINTED(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm), (comm, info, newcomm),
       comm, info)
#endif

#ifdef HAVE_MPI_COMM_SPLIT_TYPE
CONSTRUCTOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *newcomm),
            (comm, type, key, info, newcomm), comm)
#endif

/* --- constructors that not all ranks of a communicator call ----------------------------------- */

static struct nbc_context *context_of(MPI_Comm comm)
{
    if (!nbc_knows(comm))
        return NULL;
    nbc_lock();
    struct nbc_context *c = nbc_context_find(comm);
    nbc_unlock();
    return c;
}

#ifdef HAVE_MPI_COMM_CREATE_GROUP
/* A barrier of the ranks in the group, by signals. The tag distinguishes the calls of several
 * threads for groups that overlap. */
static int sync_group(struct nbc_context *c, MPI_Group group, int tag)
{
    int n, me;
    NEXT(Group_size)(group, &n);
    NEXT(Group_rank)(group, &me);
    if (me == MPI_UNDEFINED || c->members.remote_size)
        return MPI_SUCCESS; /* the MPI raises the error */
    int *ranks = nbc_ranks_of(group, n, c->hidden);
    if (!ranks)
        return MPI_ERR_NO_MEM;
    const struct nbc_signal signal = {.kind = NBC_SIGNAL_GROUP, .number = tag};
    int error = nbc_signal_barrier(c, ranks, n, me, signal);
    free(ranks);
    return error;
}

EXPORT(int, Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm),
       (comm, group, tag, newcomm))
{
    struct nbc_context *c = context_of(comm);
    if (!c)
        return NEXT(Comm_create_group)(comm, group, tag, newcomm);
    bool sync = group != MPI_GROUP_NULL && nbc_settings.blocking != NBC_BLOCKING_NATIVE;
    int error = sync ? sync_group(c, group, tag) : MPI_SUCCESS;
    if (error)
        return nbc_raise(comm, error);
    error = NEXT(Comm_create_group)(comm, group, tag, newcomm);
    return error ? error : comm_attach(comm, newcomm, MPI_INFO_NULL);
}
#endif

/* Exchanges a signal with the other leader: each says whether its local communicator has a context.
 * *both: they both have. If the peer communicator has no context, neither leader sends a signal. */
static int sync_leaders(MPI_Comm peer, int remote_leader, int tag, bool known, int *both)
{
    struct nbc_context *c = context_of(peer);
    *both = 0;
    if (!c || remote_leader < 0 ||
        remote_leader >= (c->members.remote_size ? c->members.remote_size : c->members.size))
        return MPI_SUCCESS;
    struct nbc_signal signal = {.kind = NBC_SIGNAL_LEADER, .number = tag, .value = known};
    int error = nbc_signal_send(c, remote_leader, signal);
    if (!error)
        error = nbc_signal_wait(c, remote_leader, &signal);
    *both = known && signal.value;
    return error;
}

/* When this returns all ranks of both groups have made the call: a leader sends its signal after
 * the presync of its group, and the broadcast follows the signal of the other leader. */
static int sync_both_groups(MPI_Comm local, int leader, MPI_Comm peer, int remote_leader, int tag,
                            int *both)
{
    int rank, size, inter;
    NEXT(Comm_size)(local, &size);
    NEXT(Comm_test_inter)(local, &inter);
    if (inter || leader < 0 || leader >= size)
        return MPI_SUCCESS; /* the MPI raises the error */
    int error = nbc_presync(local);
    if (error)
        return error;
    NEXT(Comm_rank)(local, &rank);
    if (rank == leader)
        error = sync_leaders(peer, remote_leader, tag, true, both);
    if (error)
        return nbc_raise(local, error);
    const struct nbc_call bcast = {
        .coll = NBC_BCAST,
        .purpose = NBC_FOR_OTHERS,
        .comm = local,
        .root = leader,
        .recv = {.buf = both, .count = 1, .type = MPI_INT},
    };
    return nbc_call_forced(&bcast);
}

/* The local communicator has no context, but that of the other group may have one: answers the
 * signal of its leader. */
static int sync_unknown(MPI_Comm local, int leader, MPI_Comm peer, int remote_leader, int tag)
{
    int rank, both;
    if (!nbc_enabled || nbc_inside || NEXT(Comm_rank)(local, &rank) || rank != leader)
        return MPI_SUCCESS;
    int error = sync_leaders(peer, remote_leader, tag, false, &both);
    return error ? nbc_raise(local, error) : MPI_SUCCESS;
}

EXPORT(int, Intercomm_create,
       (MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
        MPI_Comm *newcomm),
       (local, local_leader, peer, remote_leader, tag, newcomm))
{
    int both = 0;
    int error = nbc_knows(local)
                    ? sync_both_groups(local, local_leader, peer, remote_leader, tag, &both)
                    : sync_unknown(local, local_leader, peer, remote_leader, tag);
    if (!error)
        error = NEXT(Intercomm_create)(local, local_leader, peer, remote_leader, tag, newcomm);
    return error || !both ? error : comm_attach(local, newcomm, MPI_INFO_NULL);
}

/* --- the end of a communicator --------------------------------------------------------------- */

/* Waits until a context has neither pending operations nor signals in flight. No operation can be
 * started in it any more. Under the lock, which is released between polls. */
static void comm_drain(const struct nbc_context *c)
{
    struct nbc_request *r;
    int spins = 0;
    while ((r = nbc_progress_pending(c)) || nbc_signal_pending(c)) {
        nbc_progress(r);
        nbc_progress_yield(&spins);
    }
}

/* Disconnects the hidden duplicate while all ranks are in MPI_Comm_disconnect. Later they would
 * make this collective call at different times, and some would wait for ranks that still have a
 * request. Persistent operations cannot be started after it. If windows or files of the
 * communicator exist, the duplicate stays. Under the lock, which is released to wait. */
static void comm_disconnect_hidden(struct nbc_context *c)
{
    if (c->ngates > 0)
        return;
    comm_drain(c);
    MPI_Comm hidden = nbc_context_take_hidden(c);
    if (hidden == MPI_COMM_NULL)
        return;
    nbc_unlock();
    NEXT(Comm_disconnect)(&hidden);
    nbc_lock();
}

static void comm_settle_end(struct nbc_context *c, bool disconnect)
{
    MPI_Errhandler handler;
    nbc_lock();
    if (nbc_context_end(c, &handler)) {
        if (disconnect)
            comm_disconnect_hidden(c);
        nbc_context_release(c);
    }
    nbc_unlock();
    nbc_context_reclaim();
    if (handler != MPI_ERRHANDLER_NULL)
        NEXT(Errhandler_free)(&handler);
}

/* The native call runs attribute callbacks of the program, which may use the communicator. */
static int comm_end(MPI_Comm *comm, int (*native)(MPI_Comm *), bool disconnect)
{
    struct nbc_context *c = nbc_context_ending(*comm);
    int error = native(comm);
    if (c)
        comm_settle_end(c, disconnect);
    return error;
}

/* Local on the MPIs that nbcshim supports. */
EXPORT(int, Comm_free, (MPI_Comm * comm), (comm))
{
    return comm && nbc_knows(*comm) ? comm_end(comm, NEXT(Comm_free), false)
                                    : NEXT(Comm_free)(comm);
}

/* Collective. The hidden duplicate is disconnected too, or the processes would stay connected. */
EXPORT(int, Comm_disconnect, (MPI_Comm * comm), (comm))
{
    if (!comm || !nbc_knows(*comm))
        return NEXT(Comm_disconnect)(comm);
    int error = nbc_presync(*comm);
    return error ? error : comm_end(comm, NEXT(Comm_disconnect), true);
}
