/* SPDX-License-Identifier: MIT */
#include "bytes.h"
#include "select.h"
#include "topo.h"

/* Scatter along a k-nomial tree: the gather backwards. Ranks are counted from the root, so that a
 * subtree is a contiguous range of blocks; inner ranks receive theirs as bytes and deal it out. */
struct deal {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    struct nbc_knomial tree;
    int64_t each; /* bytes of a block */
    int radix;
};

static int subtree(const struct deal *d, int child)
{
    return nbc_knomial_subtree(child, d->shape->size, d->radix);
}

/* The blocks of neighbors in rank order are neighbors in the root's buffer: it sends them as they
 * are. Only a subtree that goes past the last rank is put together in temporary room. */
static void deal_child(struct deal *d, int child)
{
    const struct nbc_shape *shape = d->shape;
    int n = subtree(d, child), first = nbc_absolute(child, shape->root, shape->size);
    struct nbc_ref blocks = nbc_send_block(shape, first);
    int64_t count = blocks.count;
    if (n <= shape->size - first) {
        blocks.count = n * count;
        nbc_send(d->s, blocks, first, NBC_NONE);
        return;
    }
    int above = shape->size - first; /* so many up to the last rank; the others from rank 0 on */
    struct nbc_ref bytes = nbc_temp_bytes(d->s, n * d->each);
    blocks.count = above * count;
    nbc_id copied = nbc_copy(d->s, nbc_byte_range(bytes, 0, above * d->each), blocks, NBC_NONE);
    blocks = nbc_send_block(shape, 0);
    blocks.count = (n - above) * count;
    struct nbc_ref rest = nbc_byte_range(bytes, above * d->each, (n - above) * d->each);
    nbc_send(d->s, bytes, first, nbc_copy(d->s, rest, blocks, copied));
}

static void deal_from_root(struct deal *d)
{
    for (int i = 0; i < d->tree.nchild; i++)
        deal_child(d, d->tree.child[i]);
    nbc_copy(d->s, nbc_recv_block(d->shape, 0), nbc_send_block(d->shape, d->shape->rank), NBC_NONE);
}

static void hand_down(struct deal *d)
{
    const struct nbc_shape *shape = d->shape;
    int me = nbc_relative(shape->rank, shape->root, shape->size);
    int parent = nbc_absolute(d->tree.parent, shape->root, shape->size);
    struct nbc_ref mine = nbc_recv_block(shape, 0);
    bool as_bytes = d->tree.parent > 0; /* the root sends a single block as it is */
    if (d->tree.subtree == 1 && (!as_bytes || shape->types[mine.type].packed)) {
        nbc_recv(d->s, mine, parent, NBC_NONE);
        return;
    }
    struct nbc_ref all = nbc_temp_bytes(d->s, d->tree.subtree * d->each);
    nbc_id got = nbc_recv(d->s, all, parent, NBC_NONE);
    for (int i = 0; i < d->tree.nchild; i++) {
        int child = d->tree.child[i];
        struct nbc_ref part =
            nbc_byte_range(all, (child - me) * d->each, subtree(d, child) * d->each);
        nbc_send(d->s, part, nbc_absolute(child, shape->root, shape->size), got);
    }
    nbc_copy(d->s, mine, nbc_byte_range(all, 0, d->each), got);
}

static struct nbc_sched *along_knomial(const struct nbc_shape *shape, int radix)
{
    struct deal d = {.shape = shape, .each = nbc_shape_bytes(shape), .radix = radix};
    int me = nbc_relative(shape->rank, shape->root, shape->size);
    nbc_knomial(me, shape->size, radix, &d.tree);
    d.s = nbc_sched_new(shape, d.tree.nchild + 3);
    if (!d.s || d.each == 0)
        return nbc_sched_finish(d.s);
    if (me == 0)
        deal_from_root(&d);
    else
        hand_down(&d);
    return nbc_sched_finish(d.s);
}

/* Binomial tree: each rank gets the blocks of its subtree in one message, keeps its own and sends
 * the others on, the largest part first.
 *
 *   0 → 2 CD
 *   0 → 1 B    2 → 3 D
 *
 * Cost: ⌈log₂P⌉ α + (P − 1) nβ, n bytes a block; inner ranks copy their block. For small blocks.
 * Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH",
 * 2005. */
struct nbc_sched *nbc_scatter_binomial(const struct nbc_shape *shape)
{
    return along_knomial(shape, 2);
}

/* 4-nomial tree: as binomial with half the depth and up to three children a level.
 *
 *   0 → 1 B    0 → 2 C    0 → 3 D
 *
 * Cost: ⌈log₄P⌉ (α + 2o) + (P − 1) nβ, o the time the sender is busy with a message. For small
 * blocks where o is much less than α. Bar-Noy, Kipnis, "Designing broadcasting algorithms in the
 * postal model for message-passing systems", 1992. */
struct nbc_sched *nbc_scatter_knomial4(const struct nbc_shape *shape)
{
    return along_knomial(shape, 4);
}

/* The root sends every rank its block, in the order of ranks from its own on. Serves scatter and
 * scatterv: blocks without data are not sent, which both sides know. */
static struct nbc_sched *straight(const struct nbc_shape *shape, bool windowed)
{
    int rank = shape->rank, root = shape->root, size = shape->size;
    struct nbc_sched *s = nbc_sched_new(shape, rank == root ? size : 1);
    if (!s)
        return NULL;
    struct nbc_ref mine = nbc_recv_block(shape, 0);
    if (rank != root) {
        if (nbc_ref_bytes(shape, mine) > 0)
            nbc_recv(s, mine, root, NBC_NONE);
        return nbc_sched_finish(s);
    }
    struct nbc_window out = {0};
    for (int i = 1; i < size; i++) {
        int peer = nbc_absolute(i, root, size);
        struct nbc_ref theirs = nbc_send_block(shape, peer);
        if (nbc_ref_bytes(shape, theirs) == 0)
            continue;
        nbc_id sent = nbc_send(s, theirs, peer, NBC_NONE);
        if (windowed)
            nbc_window_add(s, &out, sent);
    }
    nbc_copy(s, mine, nbc_send_block(shape, rank), NBC_NONE);
    return nbc_sched_finish(s);
}

/* Linear: all sends posted at once, every block goes straight to its place.
 *
 *   0 → 1 B    0 → 2 C    0 → 3 D
 *
 * Cost: α + (P − 2) o + (P − 1) nβ. For few ranks and for blocks that no rank should handle twice.
 * The only choice for scatterv, windowed or not: there none but the root knows the counts, so no
 * rank could make room for a subtree. */
struct nbc_sched *nbc_scatter_linear(const struct nbc_shape *shape)
{
    return straight(shape, false);
}

/* Linear with a window: as linear, but the root has only so many sends under way at a time.
 *
 *   0 → 1 B    0 → 2 C    (window of two)
 *   0 → 3 D
 *
 * Cost: P/w α + (P − 1) nβ for a window of w. For large blocks on many ranks, where all at once
 * would share the root's link so thin that even the first comes late. */
struct nbc_sched *nbc_scatter_windowed(const struct nbc_shape *shape)
{
    return straight(shape, true);
}
