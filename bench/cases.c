/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <stdlib.h>

#include "nbcshim.h"
#include "select.h"

static int blocks_of(const struct operands *o)
{
    return nbc_coll_is_neighborhood(o->coll) ? 2 : o->size;
}

size_t operands_doubles(const struct operands *o)
{
    return (size_t)blocks_of(o) * o->count + 1;
}

/* Asks once: all measured communicators have all ranks. */
static bool on_one_node(MPI_Comm comm)
{
    static int answer = -1;
    (void)comm;
#if MPI_VERSION >= 3
    MPI_Comm node;
    int size, most;
    if (answer < 0) {
        PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        PMPI_Comm_size(comm, &size);
        PMPI_Comm_size(node, &most);
        PMPI_Comm_free(&node);
        answer = most == size;
    }
#endif
    return answer != 0;
}

bool operands_make(struct operands *o, enum nbc_coll coll, MPI_Comm comm, int count)
{
    *o = (struct operands){.coll = coll, .comm = comm, .count = count, .info = MPI_INFO_NULL};
    MPI_Comm_rank(comm, &o->rank);
    MPI_Comm_size(comm, &o->size);
    o->local = on_one_node(comm);
    int blocks = blocks_of(o);
    size_t doubles = operands_doubles(o);
    o->send = malloc(doubles * sizeof *o->send);
    o->recv = calloc(doubles, sizeof *o->recv);
    o->counts = malloc(blocks * sizeof *o->counts);
    o->displs = malloc(blocks * sizeof *o->displs);
    o->byte_displs = malloc(blocks * sizeof *o->byte_displs);
    o->wide_displs = malloc(blocks * sizeof *o->wide_displs);
    o->types = malloc(blocks * sizeof *o->types);
    if (!o->send || !o->recv || !o->counts || !o->displs || !o->byte_displs || !o->wide_displs ||
        !o->types)
        return false;
    for (size_t i = 0; i < doubles; i++)
        o->send[i] = (double)(i % 7);
    for (int i = 0; i < blocks; i++) {
        o->counts[i] = count;
        o->displs[i] = i * count;
        o->byte_displs[i] = i * count * (int)sizeof(double);
        o->wide_displs[i] = (MPI_Aint)i * count * (MPI_Aint)sizeof(double);
        o->types[i] = MPI_DOUBLE;
    }
    return true;
}

void operands_free(struct operands *o)
{
    free(o->send);
    free(o->recv);
    free(o->counts);
    free(o->displs);
    free(o->byte_displs);
    free(o->wide_displs);
    free(o->types);
}

/* One row per collective, with its arguments up to the communicator. */
#define BLOCKS o->send, o->count, MPI_DOUBLE, o->recv, o->count, MPI_DOUBLE
#define TO_MANY o->send, o->count, MPI_DOUBLE, o->recv, o->counts, o->displs, MPI_DOUBLE
#define FROM_MANY o->send, o->counts, o->displs, MPI_DOUBLE, o->recv, o->count, MPI_DOUBLE
#define MANY o->send, o->counts, o->displs, MPI_DOUBLE, o->recv, o->counts, o->displs, MPI_DOUBLE
#define TYPES(displs) o->send, o->counts, displs, o->types, o->recv, o->counts, displs, o->types
#define VECTOR o->send, o->recv, o->count, MPI_DOUBLE, MPI_SUM

#define COLLECTIVES(ROW)                                                                          \
    ROW(BCAST, Bcast, Ibcast, Bcast_init, o->recv, o->count, MPI_DOUBLE, 0)                       \
    ROW(GATHER, Gather, Igather, Gather_init, BLOCKS, 0)                                          \
    ROW(GATHERV, Gatherv, Igatherv, Gatherv_init, TO_MANY, 0)                                     \
    ROW(SCATTER, Scatter, Iscatter, Scatter_init, BLOCKS, 0)                                      \
    ROW(SCATTERV, Scatterv, Iscatterv, Scatterv_init, FROM_MANY, 0)                               \
    ROW(ALLGATHER, Allgather, Iallgather, Allgather_init, BLOCKS)                                 \
    ROW(ALLGATHERV, Allgatherv, Iallgatherv, Allgatherv_init, TO_MANY)                            \
    ROW(ALLTOALL, Alltoall, Ialltoall, Alltoall_init, BLOCKS)                                     \
    ROW(ALLTOALLV, Alltoallv, Ialltoallv, Alltoallv_init, MANY)                                   \
    ROW(ALLTOALLW, Alltoallw, Ialltoallw, Alltoallw_init, TYPES(o->byte_displs))                  \
    ROW(REDUCE, Reduce, Ireduce, Reduce_init, VECTOR, 0)                                          \
    ROW(ALLREDUCE, Allreduce, Iallreduce, Allreduce_init, VECTOR)                                 \
    ROW(REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block,                        \
        Reduce_scatter_block_init, VECTOR)                                                        \
    ROW(REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, o->send, o->recv,   \
        o->counts, MPI_DOUBLE, MPI_SUM)                                                           \
    ROW(SCAN, Scan, Iscan, Scan_init, VECTOR)                                                     \
    ROW(EXSCAN, Exscan, Iexscan, Exscan_init, VECTOR)                                             \
    ROW(NEIGHBOR_ALLGATHER, Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init,     \
        BLOCKS)                                                                                   \
    ROW(NEIGHBOR_ALLGATHERV, Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init, \
        TO_MANY)                                                                                  \
    ROW(NEIGHBOR_ALLTOALL, Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, BLOCKS) \
    ROW(NEIGHBOR_ALLTOALLV, Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init,     \
        MANY)                                                                                     \
    ROW(NEIGHBOR_ALLTOALLW, Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init,     \
        TYPES(o->wide_displs))

bool operands_call(const struct calls *c, const struct operands *o)
{
    switch (o->coll) {
    case NBC_BARRIER:
        return c->Barrier && !c->Barrier(o->comm);
#define ROW(COLL, call, start, init, ...) \
    case NBC_##COLL:                      \
        return c->call && !c->call(__VA_ARGS__, o->comm);
        COLLECTIVES(ROW)
#undef ROW
    default:
        return false;
    }
}

bool operands_start(const struct calls *c, const struct operands *o, MPI_Request *r)
{
    switch (o->coll) {
    case NBC_BARRIER:
        return c->Ibarrier && !c->Ibarrier(o->comm, r);
#define ROW(COLL, call, start, init, ...) \
    case NBC_##COLL:                      \
        return c->start && !c->start(__VA_ARGS__, o->comm, r);
        COLLECTIVES(ROW)
#undef ROW
    default:
        return false;
    }
}

bool operands_init(const struct calls *c, const struct operands *o, MPI_Request *r)
{
    switch (o->coll) {
    case NBC_BARRIER:
        return c->Barrier_init && !c->Barrier_init(o->comm, o->info, r);
#define ROW(COLL, call, start, init, ...) \
    case NBC_##COLL:                      \
        return c->init && !c->init(__VA_ARGS__, o->comm, o->info, r);
        COLLECTIVES(ROW)
#undef ROW
    default:
        return false;
    }
}

void operands_ask(struct operands *o)
{
    MPI_Request r;
    long long segment;
    if (!operands_init(&shim, o, &r))
        return;
    const char *name = nbcshim_algorithm(r, &segment);
    if (name) {
        o->alg = nbc_alg_by_name(o->coll, name);
        o->segment = segment;
    }
    shim.Request_free(&r);
}
