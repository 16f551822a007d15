/* SPDX-License-Identifier: MIT */
/* Gather and gatherv: the root receives a block of every rank. Scatter and scatterv: every rank
 * receives its block from the root. */
#include "bytes.h"
#include "sched.h"
#include "select.h"
#include "topo.h"

/* A rank's place in a k-nomial tree. Ranks are counted from the root, so that a subtree is a
 * contiguous range of blocks. */
struct gather_scatter {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    struct nbc_knomial tree;
    int64_t each; /* bytes of a block */
    int radix;
};

static struct nbc_range subtree_of(const struct gather_scatter *g, int child)
{
    return nbc_knomial_subtree(child, g->shape->size, g->radix);
}

/* The blocks of some ranks among those of this rank's subtree. */
static struct nbc_ref part_of(const struct gather_scatter *g, struct nbc_ref all,
                              struct nbc_range ranks)
{
    return nbc_byte_range(all, (ranks.first - g->tree.below.first) * g->each, ranks.n * g->each);
}

static void keep_own(struct nbc_sched *s, const struct nbc_shape *shape)
{
    bool in = nbc_coll_is_to_root(shape->coll);
    nbc_copy(s, nbc_recv_block(shape, in ? shape->rank : 0),
             nbc_send_block(shape, in ? 0 : shape->rank), NBC_NONE);
}

/* At the root: a child's message, with the blocks of its subtree. Blocks of consecutive ranks are
 * contiguous in the root's buffer, which is therefore used directly. Temporary space is used only
 * for a subtree that wraps around past the last rank, or to gather elements that are not packed. */
static void move_subtree(struct gather_scatter *g, int child)
{
    const struct nbc_shape *shape = g->shape;
    bool in = nbc_coll_is_to_root(shape->coll);
    struct nbc_range below = subtree_of(g, child);
    int n = below.n, peer = nbc_absolute(child, shape->root, shape->size);
    int first = nbc_absolute(below.first, shape->root, shape->size);
    int above = n <= shape->size - first ? n : shape->size - first; /* up to the last rank */
    struct nbc_ref high = in ? nbc_recv_block(shape, first) : nbc_send_block(shape, first);
    struct nbc_ref low = in ? nbc_recv_block(shape, 0) : nbc_send_block(shape, 0); /* from rank 0 */
    low.count *= n - above;
    high.count *= above;
    if (n == 1 || (n == above && (!in || shape->types[high.type].packed))) {
        (in ? nbc_recv : nbc_send)(g->s, high, peer, NBC_NONE);
        return;
    }
    struct nbc_ref bytes = nbc_temp_bytes(g->s, n * g->each);
    struct nbc_ref begin = nbc_byte_range(bytes, 0, above * g->each);
    struct nbc_ref end = nbc_byte_range(bytes, above * g->each, (n - above) * g->each);
    if (in) {
        nbc_id got = nbc_recv(g->s, bytes, peer, NBC_NONE);
        nbc_copy(g->s, high, begin, got);
        nbc_copy(g->s, low, end, got);
    } else {
        nbc_id copied = nbc_copy(g->s, begin, high, NBC_NONE);
        nbc_send(g->s, bytes, peer, nbc_copy(g->s, end, low, copied));
    }
}

/* Gather: inner ranks collect the blocks of their subtree as bytes and send them to their parent in
 * one message. Scatter, in reverse: they receive them so, and send each child those of its subtree.
 */
static void hand_on(struct gather_scatter *g)
{
    const struct nbc_shape *shape = g->shape;
    const struct nbc_knomial *tree = &g->tree;
    bool up = nbc_coll_is_to_root(shape->coll);
    int me = nbc_relative(shape->rank, shape->root, shape->size);
    int parent = nbc_absolute(tree->parent, shape->root, shape->size);
    struct nbc_ref mine = up ? nbc_send_block(shape, 0) : nbc_recv_block(shape, 0);
    bool as_bytes = !up && tree->parent > 0; /* the root sends a single block as elements */
    if (tree->below.n == 1 && (!as_bytes || shape->types[mine.type].packed)) {
        (up ? nbc_send : nbc_recv)(g->s, mine, parent, NBC_NONE);
        return;
    }
    struct nbc_ref all = nbc_temp_bytes(g->s, tree->below.n * g->each);
    struct nbc_ref own = part_of(g, all, (struct nbc_range){me, 1});
    nbc_id there = up ? NBC_NONE : nbc_recv(g->s, all, parent, NBC_NONE);
    nbc_id moved[sizeof tree->child / sizeof *tree->child];
    for (int i = 0; i < tree->nchild; i++) {
        int child = tree->child[i], peer = nbc_absolute(child, shape->root, shape->size);
        moved[i] =
            (up ? nbc_recv : nbc_send)(g->s, part_of(g, all, subtree_of(g, child)), peer, there);
    }
    if (!up) {
        nbc_copy(g->s, mine, own, there);
        return;
    }
    nbc_id sent = nbc_send(g->s, all, parent, nbc_copy(g->s, own, mine, NBC_NONE));
    nbc_after_all(g->s, sent, moved, tree->nchild);
}

/* Gather or scatter along the tree. */
static void knomial(struct nbc_sched *s, const struct nbc_shape *shape, int radix)
{
    struct gather_scatter g = {.s = s, .shape = shape, .radix = radix};
    g.each = nbc_shape_bytes(shape);
    int me = nbc_relative(shape->rank, shape->root, shape->size);
    nbc_knomial(me, shape->size, radix, &g.tree);
    if (me != 0) {
        if (g.each > 0)
            hand_on(&g);
        return;
    }
    for (int i = 0; g.each > 0 && i < g.tree.nchild; i++)
        move_subtree(&g, g.tree.child[i]);
    keep_own(s, shape);
}

/* Sends or receives a block, if it has bytes. */
static nbc_id move_block(struct nbc_sched *s, const struct nbc_shape *shape, bool in, int block,
                         int peer, nbc_id after)
{
    struct nbc_ref ref = in ? nbc_recv_block(shape, block) : nbc_send_block(shape, block);
    return nbc_move_pieces(s, shape, in, ref, peer, after);
}

/* Builds a schedule in which every block travels directly between its rank and the root. The root
 * takes the ranks in ascending order from its own, within a window or all at once. Blocks without
 * bytes are not sent, which both sides know. */
static void linear(struct nbc_sched *s, const struct nbc_shape *shape, bool windowed)
{
    int rank = shape->rank, root = shape->root, size = shape->size;
    if (rank != root) {
        move_block(s, shape, !nbc_coll_is_to_root(shape->coll), 0, root, NBC_NONE);
        return;
    }
    struct nbc_window window = {0};
    for (int i = 1; i < size; i++) {
        int peer = nbc_absolute(i, root, size);
        nbc_id moved = move_block(s, shape, nbc_coll_is_to_root(shape->coll), peer, peer,
                                  nbc_window_next(&window));
        if (windowed && moved != NBC_NONE)
            nbc_window_put(&window, moved);
    }
    keep_own(s, shape);
}

/* Binomial tree. Gather: every rank waits for its subtree, then sends it up. Scatter: each rank
 * receives the blocks of its subtree in one message, keeps its own and forwards the others, the
 * largest subtree first.
 *
 *   gather   1 → 0 B    3 → 2 D        scatter   0 → 2 CD
 *            2 → 0 CD                            0 → 1 B    2 → 3 D
 *
 * Cost: ⌈log₂P⌉ α + (P − 1) nβ, n the bytes of a block; inner ranks copy their block. For small
 * blocks. Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
 * MPICH", 2005. */
NBC_VARIANT(gather_scatter_binomial, knomial, 2)

/* 4-nomial tree: as binomial, but with half the depth and up to three children per level.
 *
 *   gather   1 → 0 B    2 → 0 C    3 → 0 D        scatter   0 → 1 B    0 → 2 C    0 → 3 D
 *
 * Cost: ⌈log₄P⌉ (α + 2o) + (P − 1) nβ, o the time to process a message that has arrived, or that
 * the sender is busy with one. For small blocks where o is much less than α. Bar-Noy, Kipnis,
 * "Designing broadcasting algorithms in the postal model for message-passing systems", 1992. */
NBC_VARIANT(gather_scatter_knomial4, knomial, 4)

/* Bine tree (nbc_knomial): the binomial tree with nearer partners.
 *
 *   8 ranks, gather:  1 → 0 B    2 → 3 C    5 → 4 F    6 → 7 G        scatter: in reverse
 *                     7 → 0 GH   4 → 3 EF
 *                     3 → 0 CDEF
 *
 * Cost: as binomial. For small blocks of ranks in groups, as the broadcast. De Sensi et al., "Bine
 * trees: enhancing collective operations by optimizing communication locality", 2025. */
NBC_VARIANT(gather_scatter_bine, knomial, NBC_BINE)

/* Linear: the root posts all its messages at once; every block is received in its place.
 *
 *   gather   1 → 0 B    2 → 0 C    3 → 0 D        scatter   0 → 1 B    0 → 2 C    0 → 3 D
 *
 * Cost: α + (P − 2) o + (P − 1) nβ. For few ranks, and for blocks that are too large to be
 * forwarded. The only algorithm, windowed or not, for gatherv and scatterv: only the root knows the
 * counts, so no other rank could allocate space for a subtree. */
NBC_VARIANT(gather_scatter_linear, linear, false)

/* Linear with a window: as linear, but the root has a limited number of messages in flight. Blocks
 * of the rendezvous protocol then move a few at a time.
 *
 *   gather   1 → 0 B    2 → 0 C        scatter   0 → 1 B    0 → 2 C        (window of two)
 *            3 → 0 D                             0 → 3 D
 *
 * Cost: P/w α + (P − 1) nβ for a window of w. For large blocks on many ranks, which would flood the
 * root all at once, or share its link so thinly that even the first one arrives late. */
NBC_VARIANT(gather_scatter_windowed, linear, true)
