/* SPDX-License-Identifier: MIT */
/* Every function that makes a communicator: right after it, where a collective call is legal, the
 * new one gets its context. One made from a communicator that we do not know is not known either,
 * on any rank. */
#include <stdlib.h>

#include "call.h"
#include "context.h"
#include "env.h"
#include "export.h"
#include "lock.h"
#include "rendezvous.h"
#include "state.h"
#include "token.h"

static int attach(MPI_Comm parent, MPI_Comm *comm, MPI_Info hints)
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

#define HINTED(name, params, args, parent, hints)              \
    EXPORT(int, name, params, args)                            \
    {                                                          \
        if (!nbc_knows(parent))                                \
            return NEXT(name) args;                            \
        int error = nbc_rendezvous(parent);                    \
        if (!error)                                            \
            error = NEXT(name) args;                           \
        return error ? error : attach(parent, newcomm, hints); \
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

/* --- those that not all ranks of a communicator call ----------------------------------------- */

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
/* The tag tells from each other calls of several threads for groups that overlap. */
static int gather_group(struct nbc_context *c, MPI_Group group, int tag)
{
    int n, me;
    NEXT(Group_size)(group, &n);
    NEXT(Group_rank)(group, &me);
    if (me == MPI_UNDEFINED || c->remote_size)
        return MPI_SUCCESS; /* the MPI has something to say about it */
    int *ranks = nbc_ranks_of(group, n, c->hidden);
    if (!ranks)
        return MPI_ERR_NO_MEM;
    const struct nbc_token token = {.kind = NBC_TOKEN_GROUP, .number = tag};
    int error = nbc_token_barrier(c, ranks, n, me, token);
    free(ranks);
    return error;
}

EXPORT(int, Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm),
       (comm, group, tag, newcomm))
{
    struct nbc_context *c = context_of(comm);
    if (!c)
        return NEXT(Comm_create_group)(comm, group, tag, newcomm);
    bool gather = group != MPI_GROUP_NULL && nbc_settings.blocking == NBC_BLOCKING_OWN;
    int error = gather ? gather_group(c, group, tag) : MPI_SUCCESS;
    if (error)
        return nbc_raise(comm, error);
    error = NEXT(Comm_create_group)(comm, group, tag, newcomm);
    return error ? error : attach(comm, newcomm, MPI_INFO_NULL);
}
#endif

/* The two leaders meet in a communicator where each is one of many. Both say whether their group is
 * known; *both: it is. Where the peer communicator is not known nobody asks. */
static int meet_leader(MPI_Comm peer, int remote_leader, int tag, bool known, int *both)
{
    struct nbc_context *c = context_of(peer);
    *both = 0;
    if (!c || remote_leader < 0 || remote_leader >= (c->remote_size ? c->remote_size : c->size))
        return MPI_SUCCESS;
    struct nbc_token token = {.kind = NBC_TOKEN_LEADER, .number = tag, .value = known};
    int error = nbc_token_send(c, remote_leader, token);
    if (!error)
        error = nbc_token_wait(c, remote_leader, &token);
    *both = known && token.value;
    return error;
}

/* All of both groups are in the call afterwards: the leader tells only when its own group is here
 * and the other leader has told. */
static int gather_both(MPI_Comm local, int leader, MPI_Comm peer, int remote_leader, int tag,
                       int *both)
{
    int rank, size, inter;
    NEXT(Comm_size)(local, &size);
    NEXT(Comm_test_inter)(local, &inter);
    if (inter || leader < 0 || leader >= size)
        return MPI_SUCCESS; /* the MPI has something to say about it */
    int error = nbc_rendezvous(local);
    if (error)
        return error;
    NEXT(Comm_rank)(local, &rank);
    if (rank == leader)
        error = meet_leader(peer, remote_leader, tag, true, both);
    if (error)
        return nbc_raise(local, error);
    const struct nbc_call tell = {
        .coll = NBC_BCAST,
        .purpose = NBC_FOR_OTHERS,
        .comm = local,
        .root = leader,
        .recv = {.buf = both, .count = 1, .type = MPI_INT},
    };
    return nbc_call_run(&tell);
}

/* This group is not known, but the other one may be, and asks. */
static int decline(MPI_Comm local, int leader, MPI_Comm peer, int remote_leader, int tag)
{
    int rank, both;
    if (!nbc_enabled || nbc_inside || NEXT(Comm_rank)(local, &rank) || rank != leader)
        return MPI_SUCCESS;
    int error = meet_leader(peer, remote_leader, tag, false, &both);
    return error ? nbc_raise(local, error) : MPI_SUCCESS;
}

EXPORT(int, Intercomm_create,
       (MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
        MPI_Comm *newcomm),
       (local, local_leader, peer, remote_leader, tag, newcomm))
{
    int both = 0;
    int error = nbc_knows(local) ? gather_both(local, local_leader, peer, remote_leader, tag, &both)
                                 : decline(local, local_leader, peer, remote_leader, tag);
    if (!error)
        error = NEXT(Intercomm_create)(local, local_leader, peer, remote_leader, tag, newcomm);
    return error || !both ? error : attach(local, newcomm, MPI_INFO_NULL);
}

/* --- the end of one -------------------------------------------------------------------------- */

/* The program's attribute callbacks are called on the way, and may use the communicator. */
static int end(MPI_Comm *comm, int (*native)(MPI_Comm *), bool disconnect)
{
    struct nbc_context *c = nbc_context_ending(*comm);
    int error = native(comm);
    if (c)
        nbc_context_end(c, disconnect);
    return error;
}

/* Local on the MPIs we know. */
EXPORT(int, Comm_free, (MPI_Comm * comm), (comm))
{
    return comm && nbc_knows(*comm) ? end(comm, NEXT(Comm_free), false) : NEXT(Comm_free)(comm);
}

/* It waits, and the hidden duplicate must be disconnected too, or the processes stay connected. */
EXPORT(int, Comm_disconnect, (MPI_Comm * comm), (comm))
{
    if (!comm || !nbc_knows(*comm))
        return NEXT(Comm_disconnect)(comm);
    int error = nbc_rendezvous(*comm);
    return error ? error : end(comm, NEXT(Comm_disconnect), true);
}
