/* SPDX-License-Identifier: MIT */
#include "op/topology.h"

#include <stdlib.h>

#include "below/quirks.h"

static struct nbc_topology *topology_allocate(int indegree, int outdegree)
{
    struct nbc_topology *t = calloc(1, sizeof *t + ((size_t)indegree + outdegree) * sizeof(int));
    if (!t)
        return NULL;
    t->neighbors = (struct nbc_neighbors){.sources = t->list,
                                          .destinations = t->list + indegree,
                                          .indegree = indegree,
                                          .outdegree = outdegree};
    return t;
}

/* Per dimension the negative neighbor, then the positive one; both are source and destination. */
static struct nbc_topology *cartesian_topology(MPI_Comm comm)
{
    int dims;
    NEXT(Cartdim_get)(comm, &dims);
    struct nbc_topology *t = topology_allocate(2 * dims, 2 * dims);
    if (!t)
        return NULL;
    t->neighbors.cartesian = true;
    int *destinations = t->list + 2 * dims;
    for (int d = 0; d < dims; d++) {
        NEXT(Cart_shift)(comm, d, 1, &t->list[2 * d], &t->list[2 * d + 1]);
        destinations[2 * d] = t->list[2 * d];
        destinations[2 * d + 1] = t->list[2 * d + 1];
    }
    return t;
}

static struct nbc_topology *graph_topology(MPI_Comm comm)
{
    int rank, n;
    NEXT(Comm_rank)(comm, &rank);
    NEXT(Graph_neighbors_count)(comm, rank, &n);
    struct nbc_topology *t = topology_allocate(n, n);
    if (!t)
        return NULL;
    NEXT(Graph_neighbors)(comm, rank, n, t->list);
    NEXT(Graph_neighbors)(comm, rank, n, t->list + n);
    return t;
}

static struct nbc_topology *dist_graph_topology(MPI_Comm comm)
{
    int in, out, weighted;
    NEXT(Dist_graph_neighbors_count)(comm, &in, &out, &weighted);
    struct nbc_topology *t = topology_allocate(in, out);
    int *weights = calloc(in + out + 1, sizeof *weights);
    if (t && weights)
        NEXT(Dist_graph_neighbors)
    (comm, in, t->list, weighted ? weights : MPI_UNWEIGHTED, out, t->list + in,
     weighted ? weights + in : MPI_UNWEIGHTED);
    if (!weights) {
        free(t);
        t = NULL;
    }
    free(weights);
    return t;
}

struct nbc_topology *nbc_topology_new(MPI_Comm comm, int *error)
{
    int kind;
    struct nbc_topology *t;
    *error = nbc_quirks_topo_test(comm, &kind);
    if (*error)
        return NULL;
    *error = MPI_ERR_NO_MEM;
    if (kind == MPI_CART)
        t = cartesian_topology(comm);
    else if (kind == MPI_GRAPH)
        t = graph_topology(comm);
    else if (kind == MPI_DIST_GRAPH)
        t = dist_graph_topology(comm);
    else {
        *error = MPI_ERR_TOPOLOGY;
        return NULL;
    }
    if (!t)
        return NULL;
    *error = MPI_SUCCESS;
    for (int i = 0; i < t->neighbors.indegree + t->neighbors.outdegree; i++)
        if (t->list[i] == MPI_PROC_NULL)
            t->list[i] = -1;
    return t;
}

void nbc_topology_free(struct nbc_topology *t)
{
    free(t);
}
