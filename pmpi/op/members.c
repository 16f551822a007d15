/* SPDX-License-Identifier: MIT */
#include "op/members.h"

#include <stdlib.h>
#include <string.h>

#include "below/quirks.h"

/* --- topologies ------------------------------------------------------------------------------- */

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

/* --- ranks in MPI_COMM_WORLD ------------------------------------------------------------------ */

MPI_Group nbc_world_group;

static int translate(MPI_Comm comm, int inter, int n, int *from, int *to)
{
    MPI_Group group;
    int error = inter ? NEXT(Comm_remote_group)(comm, &group) : NEXT(Comm_group)(comm, &group);
    if (error)
        return error;
    error = NEXT(Group_translate_ranks)(group, n, from, nbc_world_group, to);
    NEXT(Group_free)(&group);
    for (int i = 0; i < n && !error; i++)
        if (to[i] == MPI_UNDEFINED)
            error = MPI_ERR_GROUP; /* unreached: the MPI fails */
    return error;
}

int nbc_world_ranks_new(MPI_Comm comm, int inter, int n, struct nbc_world_ranks **ranks)
{
    size_t size = (size_t)n * sizeof(int);
    struct nbc_world_ranks *r = malloc(sizeof *r + 2 * size), *half;
    *ranks = NULL;
    if (!r)
        return MPI_ERR_NO_MEM;
    int *own = r->of + n; /* the ranks in the communicator, behind the table */
    for (int i = 0; i < n; i++)
        own[i] = i;
    int error = translate(comm, inter, n, own, r->of);
    if (error || memcmp(own, r->of, size) == 0) {
        free(r);
        return error;
    }
    r->refs = 1;
    half = realloc(r, sizeof *r + size);
    *ranks = half ? half : r;
    return MPI_SUCCESS;
}

void nbc_world_ranks_release(struct nbc_world_ranks *ranks)
{
    if (ranks && --ranks->refs == 0)
        free(ranks);
}
