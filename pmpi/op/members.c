/* SPDX-License-Identifier: MIT */
#include "op/members.h"

#include <stdlib.h>
#include <string.h>

#include "below/quirks.h"

/* --- topologies ------------------------------------------------------------------------------- */

/* With n neighbors, each of which is source and destination. */
static struct nbc_topology *topology_allocate(int n)
{
    struct nbc_topology *t = calloc(1, sizeof *t + (size_t)n * sizeof(int));
    if (!t)
        return NULL;
    t->neighbors = (struct nbc_neighbors){
        .sources = t->list, .destinations = t->list, .indegree = n, .outdegree = n};
    return t;
}

/* Per dimension the negative neighbor, then the positive one. */
static struct nbc_topology *cartesian_topology(MPI_Comm comm)
{
    int dims;
    NEXT(Cartdim_get)(comm, &dims);
    struct nbc_topology *t = topology_allocate(2 * dims);
    if (!t)
        return NULL;
    t->neighbors.cartesian = true;
    for (int d = 0; d < dims; d++)
        NEXT(Cart_shift)(comm, d, 1, &t->list[2 * d], &t->list[2 * d + 1]);
    return t;
}

static struct nbc_topology *graph_topology(MPI_Comm comm)
{
    int rank, n;
    NEXT(Comm_rank)(comm, &rank);
    NEXT(Graph_neighbors_count)(comm, rank, &n);
    struct nbc_topology *t = topology_allocate(n);
    if (t)
        NEXT(Graph_neighbors)(comm, rank, n, t->list);
    return t;
}

static struct nbc_topology *dist_graph_topology(MPI_Comm comm)
{
    int in, out, weighted;
    NEXT(Dist_graph_neighbors_count)(comm, &in, &out, &weighted);
    struct nbc_topology *t = topology_allocate(in + out);
    int *weights = calloc(in + out + 1, sizeof *weights);
    if (!t || !weights) {
        free(t);
        free(weights);
        return NULL;
    }
    t->neighbors.destinations = t->list + in;
    t->neighbors.indegree = in;
    t->neighbors.outdegree = out;
    NEXT(Dist_graph_neighbors)
    (comm, in, t->list, weighted ? weights : MPI_UNWEIGHTED, out, t->list + in,
     weighted ? weights + in : MPI_UNWEIGHTED);
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
    int *end = t->list + (t->neighbors.destinations - t->list) + t->neighbors.outdegree;
    for (int *rank = t->list; rank < end; rank++)
        if (*rank == MPI_PROC_NULL)
            *rank = -1;
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
