/* SPDX-License-Identifier: MIT */
#include "coll.h"

#include <string.h>

#include "block.h"

static const char *const names[NBC_NCOLLS] = {
    [NBC_BARRIER] = "barrier",
    [NBC_BCAST] = "bcast",
    [NBC_GATHER] = "gather",
    [NBC_GATHERV] = "gatherv",
    [NBC_SCATTER] = "scatter",
    [NBC_SCATTERV] = "scatterv",
    [NBC_ALLGATHER] = "allgather",
    [NBC_ALLGATHERV] = "allgatherv",
    [NBC_ALLTOALL] = "alltoall",
    [NBC_ALLTOALLV] = "alltoallv",
    [NBC_ALLTOALLW] = "alltoallw",
    [NBC_REDUCE] = "reduce",
    [NBC_ALLREDUCE] = "allreduce",
    [NBC_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
    [NBC_REDUCE_SCATTER] = "reduce_scatter",
    [NBC_SCAN] = "scan",
    [NBC_EXSCAN] = "exscan",
    [NBC_NEIGHBOR_ALLGATHER] = "neighbor_allgather",
    [NBC_NEIGHBOR_ALLGATHERV] = "neighbor_allgatherv",
    [NBC_NEIGHBOR_ALLTOALL] = "neighbor_alltoall",
    [NBC_NEIGHBOR_ALLTOALLV] = "neighbor_alltoallv",
    [NBC_NEIGHBOR_ALLTOALLW] = "neighbor_alltoallw",
};

const char *nbc_coll_name(enum nbc_coll coll)
{
    return names[coll];
}

enum nbc_coll nbc_coll_by_name(const char *name)
{
    int i = 0;
    while (i < NBC_NCOLLS && strcmp(names[i], name) != 0)
        i++;
    return i;
}

bool nbc_coll_reduces(enum nbc_coll coll)
{
    return coll >= NBC_REDUCE && coll <= NBC_EXSCAN;
}

static int64_t mean_block(const struct nbc_shape *s, const struct nbc_side *side)
{
    int64_t sum = 0;
    for (int i = 0; i < s->size; i++)
        sum += nbc_ints_at(side->counts, i);
    return sum * s->types[side->type].size / s->size;
}

int64_t nbc_shape_bytes(const struct nbc_shape *s)
{
    switch (s->coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_BCAST:
    case NBC_ALLGATHER:
    case NBC_ALLTOALL:
    case NBC_ALLREDUCE:
    case NBC_REDUCE_SCATTER_BLOCK:
        return s->recv.count * s->types[s->recv.type].size;
    case NBC_REDUCE:
    case NBC_SCAN:
    case NBC_EXSCAN:
        return s->send.count * s->types[s->send.type].size;
    case NBC_GATHER: {
        /* In place only the receive side counts, elsewhere only the send side is significant. */
        const struct nbc_side *side = s->in_place ? &s->recv : &s->send;
        return side->count * s->types[side->type].size;
    }
    case NBC_SCATTER: {
        const struct nbc_side *side = s->in_place ? &s->send : &s->recv;
        return side->count * s->types[side->type].size;
    }
    case NBC_ALLGATHERV:
        return s->remote_size ? -1 : mean_block(s, &s->recv);
    case NBC_REDUCE_SCATTER:
        return s->remote_size ? -1 : mean_block(s, &s->send);
    default:
        return -1;
    }
}
