/* SPDX-License-Identifier: MIT */
/* References to data of a call. Algorithms see no other form of arguments, so that one builder
 * serves gather and gatherv, or alltoall, alltoallv and alltoallw. */
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

/* Returns the block that this rank sends to peer i. In a call in place the data is in the receive
 * buffer, where the standard specifies it for the collective.
 *
 * bcast, reduce, allreduce, scan, exscan: i = 0, the whole vector. reduce_scatter,
 * reduce_scatter_block: the part whose result rank i receives.
 *
 * In intercommunicators a peer is a rank of the remote group. The parts of a reduce_scatter, like
 * its arguments, are those of the local group; the remote group reduces all of them, and divides
 * the vector in its own way. */
struct nbc_ref nbc_send_block(const struct nbc_shape *s, int i);

/* Returns the block that this rank receives from peer i. */
struct nbc_ref nbc_recv_block(const struct nbc_shape *s, int i);

/* Returns the number of elements of the blocks before block i of a side whose blocks are
 * contiguous.
 */
int64_t nbc_elements_before(const struct nbc_side *side, int i);

/* Returns the whole vector of a reduce_scatter or reduce_scatter_block. */
struct nbc_ref nbc_send_vector(const struct nbc_shape *s);

/* Returns the elements first … first + n − 1 of a reference. */
struct nbc_ref nbc_ref_part(const struct nbc_shape *s, struct nbc_ref r, int64_t first, int64_t n);

/* Returns the bytes of data in a reference, gaps excluded. */
int64_t nbc_ref_bytes(const struct nbc_shape *s, struct nbc_ref r);

static inline bool nbc_has_bytes(const struct nbc_shape *s, struct nbc_ref r)
{
    return nbc_ref_bytes(s, r) > 0;
}

/* Sets *low to the lowest byte that the reference covers and *high to the highest + 1, as offsets
 * in its buffer; both to 0 if it has no data. */
void nbc_ref_span(const struct nbc_shape *s, struct nbc_ref r, int64_t *low, int64_t *high);

/* Returns n / by, rounded up, for n ≥ 0 and by > 0. Unlike (n + by − 1) / by, it cannot overflow.
 */
static inline int64_t nbc_div_up(int64_t n, int64_t by)
{
    return n / by + (n % by > 0);
}

/* Divides n elements into `parts` parts that differ in length by at most one. Returns the first
 * element of part i, counted from 0; n for i = parts. */
static inline int64_t nbc_part_start(int64_t n, int parts, int i)
{
    int64_t each = n / parts, rest = n % parts;
    return i * each + (i < rest ? i : rest);
}

/* Returns part i of a reference divided in that way. */
struct nbc_ref nbc_ref_split(const struct nbc_shape *s, struct nbc_ref r, int parts, int i);

#endif
