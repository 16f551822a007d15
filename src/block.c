/* SPDX-License-Identifier: MIT */
#include "block.h"

int64_t nbc_elements_before(const struct nbc_side *side, int i)
{
    int64_t elements = 0;
    if (!side->displs_implied)
        return i * side->count;
    for (int k = 0; k < i; k++)
        elements += nbc_ints_at(side->counts, k);
    return elements;
}

/* Returns the displacement of block i, in bytes. */
static int64_t displ(const struct nbc_side *side, int64_t extent, int i)
{
    if (side->displs.data)
        return nbc_ints_at(side->displs, i) * (side->displs_bytes ? 1 : extent);
    return nbc_elements_before(side, i) * extent;
}

static struct nbc_ref block(const struct nbc_shape *s, const struct nbc_side *side,
                            enum nbc_buf buf, int i)
{
    int type = side->peer_types ? side->type + i : side->type;
    return (struct nbc_ref){
        .off = displ(side, s->types[type].extent, i),
        .count = side->counts.data ? nbc_ints_at(side->counts, i) : side->count,
        .type = type,
        .buf = buf,
    };
}

/* Whether MPI_IN_PLACE replaces the receive buffer: in a scatter, at the root. */
static bool in_place_recv(const struct nbc_shape *s)
{
    return s->coll == NBC_SCATTER || s->coll == NBC_SCATTERV;
}

/* The collectives that send the same data to every peer. */
static const uint32_t one_send_block = NBC_BIT(GATHER) | NBC_BIT(GATHERV) | NBC_BIT(ALLGATHER) |
                                       NBC_BIT(ALLGATHERV) | NBC_BIT(NEIGHBOR_ALLGATHER) |
                                       NBC_BIT(NEIGHBOR_ALLGATHERV);

/* This rank's input of a call in place, which is in the receive buffer. */
static struct nbc_ref in_place_input(const struct nbc_shape *s, int i)
{
    if (one_send_block >> s->coll & 1)
        return block(s, &s->recv, NBC_BUF_RECV, s->rank);
    bool scatters = s->coll == NBC_REDUCE_SCATTER_BLOCK || s->coll == NBC_REDUCE_SCATTER;
    return block(s, scatters ? &s->send : &s->recv, NBC_BUF_RECV, i);
}

struct nbc_ref nbc_send_block(const struct nbc_shape *s, int i)
{
    if (s->coll == NBC_BCAST)
        return block(s, &s->recv, NBC_BUF_RECV, 0);
    if (s->in_place && !in_place_recv(s))
        return in_place_input(s, i);
    return block(s, &s->send, NBC_BUF_SEND, one_send_block >> s->coll & 1 ? 0 : i);
}

struct nbc_ref nbc_send_vector(const struct nbc_shape *s)
{
    return nbc_ref_part(s, nbc_send_block(s, 0), 0, nbc_elements_before(&s->send, s->size));
}

struct nbc_ref nbc_recv_block(const struct nbc_shape *s, int i)
{
    if (s->in_place && in_place_recv(s))
        return block(s, &s->send, NBC_BUF_SEND, s->rank);
    if (in_place_recv(s))
        i = 0; /* a scatter has one block per rank */
    return block(s, &s->recv, NBC_BUF_RECV, i);
}

struct nbc_ref nbc_ref_part(const struct nbc_shape *s, struct nbc_ref r, int64_t first, int64_t n)
{
    r.off += first * s->types[r.type].extent;
    r.count = n;
    return r;
}

struct nbc_ref nbc_ref_split(const struct nbc_shape *s, struct nbc_ref r, int parts, int i)
{
    int64_t first = nbc_part_start(r.count, parts, i);
    return nbc_ref_part(s, r, first, nbc_part_start(r.count, parts, i + 1) - first);
}

int64_t nbc_ref_bytes(const struct nbc_shape *s, struct nbc_ref r)
{
    return r.count * s->types[r.type].size;
}

void nbc_ref_span(const struct nbc_shape *s, struct nbc_ref r, int64_t *low, int64_t *high)
{
    const struct nbc_type *t = &s->types[r.type];
    *low = *high = 0;
    if (r.count == 0 || t->size == 0)
        return;
    int64_t last = (r.count - 1) * t->extent; /* negative where the extent is */
    *low = r.off + t->true_lb + (last < 0 ? last : 0);
    *high = r.off + t->true_lb + t->true_extent + (last > 0 ? last : 0);
}
