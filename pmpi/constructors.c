/* SPDX-License-Identifier: MIT */
/* Every function that makes a communicator: right after it, where a collective call is legal, the
 * new one gets its context. */
#include "context.h"
#include "export.h"
#include "call.h"
#include "init.h"
#include "lock.h"

static int attach(MPI_Comm parent, MPI_Comm comm)
{
    int error = nbc_context_attach(comm);
    return error ? nbc_raise(parent, error) : MPI_SUCCESS;
}

#define CONSTRUCTOR(name, params, args, parent, made)                                              \
    EXPORT(int, name, params, args)                                                                \
    {                                                                                              \
        int error = NEXT(name) args;                                                               \
        return error || !nbc_on || nbc_inside ? error : attach(parent, made);                      \
    }

CONSTRUCTOR(Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm), comm, *newcomm)

CONSTRUCTOR(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm),
            (comm, group, newcomm), comm, *newcomm)

CONSTRUCTOR(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm),
            (comm, color, key, newcomm), comm, *newcomm)

CONSTRUCTOR(Cart_create,
            (MPI_Comm comm, int ndims, NBC_CONST int dims[], NBC_CONST int periods[], int reorder,
             MPI_Comm *newcomm),
            (comm, ndims, dims, periods, reorder, newcomm), comm, *newcomm)

CONSTRUCTOR(Cart_sub, (MPI_Comm comm, NBC_CONST int remain[], MPI_Comm *newcomm),
            (comm, remain, newcomm), comm, *newcomm)

CONSTRUCTOR(Graph_create,
            (MPI_Comm comm, int nnodes, NBC_CONST int index[], NBC_CONST int edges[], int reorder,
             MPI_Comm *newcomm),
            (comm, nnodes, index, edges, reorder, newcomm), comm, *newcomm)

CONSTRUCTOR(Dist_graph_create,
            (MPI_Comm comm, int n, NBC_CONST int sources[], NBC_CONST int degrees[],
             NBC_CONST int destinations[], NBC_CONST int weights[], MPI_Info info, int reorder,
             MPI_Comm *newcomm),
            (comm, n, sources, degrees, destinations, weights, info, reorder, newcomm), comm,
            *newcomm)

CONSTRUCTOR(Dist_graph_create_adjacent,
            (MPI_Comm comm, int indegree, NBC_CONST int sources[], NBC_CONST int sourceweights[],
             int outdegree, NBC_CONST int destinations[], NBC_CONST int destweights[],
             MPI_Info info, int reorder, MPI_Comm *newcomm),
            (comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info,
             reorder, newcomm),
            comm, *newcomm)

CONSTRUCTOR(Intercomm_create,
            (MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
             MPI_Comm *newcomm),
            (local, local_leader, peer, remote_leader, tag, newcomm), local, *newcomm)

CONSTRUCTOR(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *newcomm), (comm, high, newcomm),
            comm, *newcomm)

#ifdef HAVE_MPI_COMM_DUP_WITH_INFO
CONSTRUCTOR(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm),
            (comm, info, newcomm), comm, *newcomm)
#endif

#ifdef HAVE_MPI_COMM_SPLIT_TYPE
CONSTRUCTOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *newcomm),
            (comm, type, key, info, newcomm), comm, *newcomm)
#endif

#ifdef HAVE_MPI_COMM_CREATE_GROUP
CONSTRUCTOR(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm),
            (comm, group, tag, newcomm), comm, *newcomm)
#endif
