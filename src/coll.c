/* SPDX-License-Identifier: MIT */
#include "coll.h"

#include <stdio.h>

#include "block.h"

static const char *const names[NBC_NCOLLS] = {
#define COLL(NAME, name, Name) #name,
#include "colls.def"
#undef COLL
};

const char *nbc_coll_name(enum nbc_coll coll)
{
    return names[coll];
}

int nbc_coll_function(const char *coll, bool nonblocking, const char *suffix, char *text,
                      size_t room)
{
    if (nonblocking)
        return snprintf(text, room, "MPI_I%s%s", coll, suffix);
    return snprintf(text, room, "MPI_%c%s%s", nbc_upper(coll[0]), coll + 1, suffix);
}

bool nbc_same_word(const char *a, const char *b)
{
    while (*a && nbc_lower(*a) == nbc_lower(*b))
        a++, b++;
    return *a == *b;
}

enum nbc_coll nbc_coll_by_name(const char *name)
{
    int i = 0;
    while (i < NBC_NCOLLS && !nbc_same_word(names[i], name))
        i++;
    return i;
}

static const char *const orders[] = {"any", "ranks", "tree"};

const char *nbc_order_name(enum nbc_order order)
{
    return orders[order];
}

bool nbc_order_by_name(const char *name, void *order)
{
    for (int i = 0; i <= NBC_ORDER_TREE; i++)
        if (nbc_same_word(name, orders[i])) {
            *(enum nbc_order *)order = i;
            return true;
        }
    return false;
}

bool nbc_coll_reduces(enum nbc_coll coll)
{
    return coll >= NBC_REDUCE && coll <= NBC_EXSCAN;
}

bool nbc_coll_has_edges(enum nbc_coll coll)
{
    const uint32_t alltoall = NBC_BIT(ALLTOALL) | NBC_BIT(ALLTOALLV) | NBC_BIT(ALLTOALLW);
    return nbc_coll_is_neighborhood(coll) || alltoall >> coll & 1;
}

bool nbc_coll_has_counts(enum nbc_coll coll, bool send)
{
    const uint32_t both = NBC_BIT(ALLTOALLV) | NBC_BIT(ALLTOALLW) | NBC_BIT(NEIGHBOR_ALLTOALLV) |
                          NBC_BIT(NEIGHBOR_ALLTOALLW);
    const uint32_t one =
        send ? NBC_BIT(SCATTERV) | NBC_BIT(REDUCE_SCATTER)
             : NBC_BIT(GATHERV) | NBC_BIT(ALLGATHERV) | NBC_BIT(NEIGHBOR_ALLGATHERV);
    return (both | one) >> coll & 1;
}

bool nbc_coll_has_types(enum nbc_coll coll)
{
    return coll == NBC_ALLTOALLW || coll == NBC_NEIGHBOR_ALLTOALLW;
}

static int64_t side_bytes(const struct nbc_shape *s, const struct nbc_side *side)
{
    return side->count * s->types[side->type].size;
}

/* Bytes of the blocks of a side that has an array of counts, one for each rank of the group. */
static int64_t sum_bytes(const struct nbc_shape *s, const struct nbc_side *side)
{
    int64_t sum = 0;
    for (int i = 0; i < s->size; i++)
        sum += nbc_ints_at(side->counts, i);
    return sum * s->types[side->type].size;
}

/* Both groups must come to the same number. */
static int64_t inter_bytes(const struct nbc_shape *s)
{
    int ranks = s->size + s->remote_size;
    switch (s->coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_ALLGATHER:
    case NBC_ALLTOALL:
        return (side_bytes(s, &s->send) + side_bytes(s, &s->recv)) / 2;
    case NBC_ALLREDUCE:
        return side_bytes(s, &s->recv);
    case NBC_REDUCE_SCATTER_BLOCK:
        return 2 * s->size * side_bytes(s, &s->recv) / ranks;
    case NBC_REDUCE_SCATTER:
        return 2 * sum_bytes(s, &s->send) / ranks;
    default:
        return -1;
    }
}

static int64_t intra_bytes(const struct nbc_shape *s)
{
    switch (s->coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_BCAST:
    case NBC_ALLGATHER:
    case NBC_ALLTOALL:
    case NBC_ALLREDUCE:
    case NBC_REDUCE_SCATTER_BLOCK:
        return side_bytes(s, &s->recv);
    case NBC_REDUCE:
    case NBC_SCAN:
    case NBC_EXSCAN:
        return side_bytes(s, &s->send);
    case NBC_GATHER:
        /* In place only the receive side counts, elsewhere only the send side is significant. */
        return side_bytes(s, s->in_place ? &s->recv : &s->send);
    case NBC_SCATTER:
        return side_bytes(s, s->in_place ? &s->send : &s->recv);
    case NBC_ALLGATHERV:
        return sum_bytes(s, &s->recv) / s->size;
    case NBC_REDUCE_SCATTER:
        return sum_bytes(s, &s->send) / s->size;
    default:
        return -1;
    }
}

int64_t nbc_shape_bytes(const struct nbc_shape *s)
{
    return s->remote_size ? inter_bytes(s) : intra_bytes(s);
}
