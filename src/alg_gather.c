/* SPDX-License-Identifier: MIT */
/* Gather and gatherv: the root receives a block of every rank. */
#include "bytes.h"
#include "gather_scatter.h"
#include "select.h"

/* Gather along a k-nomial tree: inner ranks collect the blocks of their subtree as bytes and send
 * them to their parent in one message. */

/* Blocks of consecutive ranks are contiguous in the root's buffer, which therefore receives a
 * subtree directly. It uses temporary space only for a subtree that wraps around past the last
 * rank, or if the type is not packed. */
static void collect_child(struct nbc_gather_scatter *g, int child)
{
    const struct nbc_shape *shape = g->shape;
    int n = nbc_gather_scatter_subtree(g, child),
        first = nbc_absolute(child, shape->root, shape->size);
    struct nbc_ref blocks = nbc_recv_block(shape, first);
    int64_t count = blocks.count;
    int above = n <= shape->size - first ? n : shape->size - first; /* up to the last rank */
    blocks.count = above * count;
    if (n == 1 || (n == above && shape->types[blocks.type].packed)) {
        nbc_recv(g->s, blocks, first, NBC_NONE);
        return;
    }
    struct nbc_ref bytes = nbc_temp_bytes(g->s, n * g->each);
    nbc_id got = nbc_recv(g->s, bytes, first, NBC_NONE);
    nbc_copy(g->s, blocks, nbc_byte_range(bytes, 0, above * g->each), got);
    blocks = nbc_recv_block(shape, 0); /* the others from rank 0 on */
    blocks.count = (n - above) * count;
    nbc_copy(g->s, blocks, nbc_byte_range(bytes, above * g->each, (n - above) * g->each), got);
}

static void collect_at_root(struct nbc_gather_scatter *g)
{
    for (int i = 0; i < g->tree.nchild; i++)
        collect_child(g, g->tree.child[i]);
    nbc_copy(g->s, nbc_recv_block(g->shape, g->shape->rank), nbc_send_block(g->shape, 0), NBC_NONE);
}

static void hand_up(struct nbc_gather_scatter *g)
{
    const struct nbc_shape *shape = g->shape;
    const struct nbc_knomial *tree = &g->tree;
    int me = nbc_relative(shape->rank, shape->root, shape->size);
    int parent = nbc_absolute(tree->parent, shape->root, shape->size);
    struct nbc_ref mine = nbc_send_block(shape, 0);
    if (tree->subtree == 1) {
        nbc_send(g->s, mine, parent, NBC_NONE);
        return;
    }
    struct nbc_ref all = nbc_temp_bytes(g->s, tree->subtree * g->each);
    nbc_id got[sizeof tree->child / sizeof *tree->child];
    for (int i = 0; i < tree->nchild; i++) {
        int child = tree->child[i];
        struct nbc_ref part = nbc_byte_range(all, (child - me) * g->each,
                                             nbc_gather_scatter_subtree(g, child) * g->each);
        int peer = nbc_absolute(child, shape->root, shape->size);
        got[i] = nbc_recv(g->s, part, peer, NBC_NONE);
    }
    nbc_id copied = nbc_copy(g->s, nbc_byte_range(all, 0, g->each), mine, NBC_NONE);
    nbc_id sent = nbc_send(g->s, all, parent, copied);
    for (int i = 0; i < tree->nchild; i++)
        nbc_after(g->s, sent, got[i]);
}

/* Binomial tree: a broadcast in reverse. Every rank waits for its subtree, then sends it up.
 *
 *   1 → 0 B    3 → 2 D
 *   2 → 0 CD
 *
 * Cost: ⌈log₂P⌉ α + (P − 1) nβ, n the bytes of a block; inner ranks copy their block. For small
 * blocks. Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
 * MPICH", 2005. */
struct nbc_sched *nbc_gather_binomial(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_knomial(shape, 2, collect_at_root, hand_up);
}

/* 4-nomial tree: as binomial, but with half the depth and up to three children per level.
 *
 *   1 → 0 B    2 → 0 C    3 → 0 D
 *
 * Cost: ⌈log₄P⌉ (α + 2o) + (P − 1) nβ, o the time to process a message that has arrived. For small
 * blocks where o is much less than α. Bar-Noy, Kipnis, "Designing broadcasting algorithms in the
 * postal model for message-passing systems", 1992. */
struct nbc_sched *nbc_gather_knomial4(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_knomial(shape, 4, collect_at_root, hand_up);
}

/* Linear: all receives are posted at once; every block is received in its place.
 *
 *   1 → 0 B    2 → 0 C    3 → 0 D
 *
 * Cost: α + (P − 2) o + (P − 1) nβ. For few ranks, and for blocks that are too large to be
 * forwarded. The only algorithm, windowed or not, for gatherv: only the root knows the counts, so
 * no other rank could allocate space for a subtree. */
struct nbc_sched *nbc_gather_linear(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_linear(shape, false);
}

/* Linear with a window: as linear, but the root posts a limited number of receives at a time.
 * Blocks of the rendezvous protocol then arrive a few at a time.
 *
 *   1 → 0 B    2 → 0 C    (window of two)
 *   3 → 0 D
 *
 * Cost: P/w α + (P − 1) nβ for a window of w. For large blocks on many ranks, which would
 * flood the root all at once. */
struct nbc_sched *nbc_gather_windowed(const struct nbc_shape *shape)
{
    return nbc_gather_scatter_linear(shape, true);
}
