/* SPDX-License-Identifier: MIT */
/* Where a block of data lies. Algorithms see only these references, so that gather = gatherv,
 * alltoall = alltoallv = alltoallw and a neighborhood is an alltoall on a list. */
#ifndef NBC_BLOCK_H
#define NBC_BLOCK_H

#include "coll.h"

/* `count` elements of type slot `type`, the first one at byte `off` of buffer `buf`. */
struct nbc_ref {
    int64_t off;
    int64_t count;
    int32_t type;
    int32_t buf; /* enum nbc_buf */
};

static inline bool nbc_same_place(struct nbc_ref x, struct nbc_ref y)
{
    return x.buf == y.buf && x.off == y.off;
}

/* The block this rank sends to peer i (broadcast and reductions: i = 0, the whole vector, except
 * the reduce_scatter family: the part that ends at rank i). Where the call is in place the data is
 * found in the receive buffer, as the standard says for the collective. Of an intercommunicator
 * peers are ranks of the remote group; but the parts of a reduce_scatter are those of the local
 * group, as its arguments are: the blocks 0 … size − 1 together are what the remote group reduces,
 * which cuts it in its own way. */
struct nbc_ref nbc_send_block(const struct nbc_shape *s, int i);

/* The block this rank receives from peer i. */
struct nbc_ref nbc_recv_block(const struct nbc_shape *s, int i);

/* Elements first … first + n − 1 of a reference. */
struct nbc_ref nbc_ref_part(const struct nbc_shape *s, struct nbc_ref r, int64_t first, int64_t n);

/* Bytes of data in a reference. */
int64_t nbc_ref_bytes(const struct nbc_shape *s, struct nbc_ref r);

/* Lowest byte touched and highest + 1, as offsets in the buffer; both 0 for no data. */
void nbc_ref_span(const struct nbc_shape *s, struct nbc_ref r, int64_t *low, int64_t *high);

/* n / by, rounded up, for n ≥ 0 and by > 0: n + by − 1 may be more than there are numbers. */
static inline int64_t nbc_div_up(int64_t n, int64_t by)
{
    return n / by + (n % by > 0);
}

/* The first of `parts` nearly equal parts of n starts at 0, the i-th at this element. */
static inline int64_t nbc_part_start(int64_t n, int parts, int i)
{
    int64_t each = n / parts, rest = n % parts;
    return i * each + (i < rest ? i : rest);
}

/* The i-th of `parts` nearly equal parts of a reference. */
struct nbc_ref nbc_ref_split(const struct nbc_shape *s, struct nbc_ref r, int parts, int i);

#endif
