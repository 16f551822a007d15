/* SPDX-License-Identifier: MIT */
/* Scatter and scatterv: every rank receives its block from the root. */
#include "bytes.h"
#include "gather_scatter.h"
#include "select.h"

/* Scatter along a k-nomial tree, the gather in reverse: inner ranks receive the blocks of their
 * subtree as bytes and send each child those of its subtree. */

/* Blocks of consecutive ranks are contiguous in the root's buffer, which therefore sends a subtree
 * directly. It uses temporary space only for a subtree that wraps around past the last rank. */
static void deal_child(struct nbc_gather_scatter *d, int child)
{
    const struct nbc_shape *shape = d->shape;
    int n = nbc_gather_scatter_subtree(d, child),
        first = nbc_absolute(child, shape->root, shape->size);
    struct nbc_ref blocks = nbc_send_block(shape, first);
    int64_t count = blocks.count;
    if (n <= shape->size - first) {
        blocks.count = n * count;
        nbc_send(d->s, blocks, first, NBC_NONE);
        return;
    }
    int above = shape->size - first; /* blocks up to the last rank; the others start at rank 0 */
    struct nbc_ref bytes = nbc_temp_bytes(d->s, n * d->each);
    blocks.count = above * count;
    nbc_id copied = nbc_copy(d->s, nbc_byte_range(bytes, 0, above * d->each), blocks, NBC_NONE);
    blocks = nbc_send_block(shape, 0);
    blocks.count = (n - above) * count;
    struct nbc_ref rest = nbc_byte_range(bytes, above * d->each, (n - above) * d->each);
    nbc_send(d->s, bytes, first, nbc_copy(d->s, rest, blocks, copied));
}

static void deal_from_root(struct nbc_gather_scatter *d)
{
    for (int i = 0; i < d->tree.nchild; i++)
        deal_child(d, d->tree.child[i]);
    nbc_copy(d->s, nbc_recv_block(d->shape, 0), nbc_send_block(d->shape, d->shape->rank), NBC_NONE);
}

static void hand_down(struct nbc_gather_scatter *d)
{
    const struct nbc_shape *shape = d->shape;
    int me = nbc_relative(shape->rank, shape->root, shape->size);
    int parent = nbc_absolute(d->tree.parent, shape->root, shape->size);
    struct nbc_ref mine = nbc_recv_block(shape, 0);
    bool as_bytes = d->tree.parent > 0; /* the root sends a single block as elements */
    if (d->tree.subtree == 1 && (!as_bytes || shape->types[mine.type].packed)) {
        nbc_recv(d->s, mine, parent, NBC_NONE);
        return;
    }
    struct nbc_ref all = nbc_temp_bytes(d->s, d->tree.subtree * d->each);
    nbc_id got = nbc_recv(d->s, all, parent, NBC_NONE);
    for (int i = 0; i < d->tree.nchild; i++) {
        int child = d->tree.child[i];
        struct nbc_ref part = nbc_byte_range(all, (child - me) * d->each,
                                             nbc_gather_scatter_subtree(d, child) * d->each);
        nbc_send(d->s, part, nbc_absolute(child, shape->root, shape->size), got);
    }
    nbc_copy(d->s, mine, nbc_byte_range(all, 0, d->each), got);
}

/* Binomial tree: each rank receives the blocks of its subtree in one message, keeps its own and
 * forwards the others, the largest subtree first.
 *
 *   0 → 2 CD
 *   0 → 1 B    2 → 3 D
 *
 * Cost: ⌈log₂P⌉ α + (P − 1) nβ, n the bytes of a block; inner ranks copy their block. For small
 * blocks. Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
 * MPICH", 2005. */
struct nbc_sched *nbc_scatter_binomial(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_knomial(shape, 2, deal_from_root, hand_down);
}

/* 4-nomial tree: as binomial, but with half the depth and up to three children per level.
 *
 *   0 → 1 B    0 → 2 C    0 → 3 D
 *
 * Cost: ⌈log₄P⌉ (α + 2o) + (P − 1) nβ, o the time the sender is busy with a message. For small
 * blocks where o is much less than α. Bar-Noy, Kipnis, "Designing broadcasting algorithms in the
 * postal model for message-passing systems", 1992. */
struct nbc_sched *nbc_scatter_knomial4(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_knomial(shape, 4, deal_from_root, hand_down);
}

/* Linear: all sends are posted at once; every block is received in its place.
 *
 *   0 → 1 B    0 → 2 C    0 → 3 D
 *
 * Cost: α + (P − 2) o + (P − 1) nβ. For few ranks, and for blocks that are too large to be
 * forwarded. The only algorithm, windowed or not, for scatterv: only the root knows the counts, so
 * no other rank could allocate space for a subtree. */
struct nbc_sched *nbc_scatter_linear(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_linear(shape, false);
}

/* Linear with a window: as linear, but the root has a limited number of sends in flight.
 *
 *   0 → 1 B    0 → 2 C    (window of two)
 *   0 → 3 D
 *
 * Cost: P/w α + (P − 1) nβ for a window of w. For large blocks on many ranks, which would
 * share the root's link so thinly that even the first one arrives late. */
struct nbc_sched *nbc_scatter_windowed(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_linear(shape, true);
}
