/* SPDX-License-Identifier: MIT */
#include "gather_scatter.h"

#include "bytes.h"

int nbc_gather_scatter_subtree(const struct nbc_gather_scatter *g, int child)
{
    return nbc_knomial_subtree(child, g->shape->size, g->radix);
}

struct nbc_sched *nbc_gather_scatter_knomial(const struct nbc_shape *shape, int radix,
                                             void (*at_root)(struct nbc_gather_scatter *g),
                                             void (*elsewhere)(struct nbc_gather_scatter *g))
{
    struct nbc_gather_scatter g = {.shape = shape, .each = nbc_shape_bytes(shape), .radix = radix};
    int me = nbc_relative(shape->rank, shape->root, shape->size);
    nbc_knomial(me, shape->size, radix, &g.tree);
    g.s = nbc_sched_new(shape, g.tree.nchild + 3);
    if (!g.s || g.each == 0)
        return nbc_sched_finish(g.s);
    (me == 0 ? at_root : elsewhere)(&g);
    return nbc_sched_finish(g.s);
}

/* Sends or receives a block, if it has bytes. */
static nbc_id move_block(struct nbc_sched *s, const struct nbc_shape *shape, bool in, int block,
                         int peer, nbc_id after)
{
    struct nbc_ref ref = in ? nbc_recv_block(shape, block) : nbc_send_block(shape, block);
    if (nbc_ref_bytes(shape, ref) == 0)
        return NBC_NONE;
    return in ? nbc_recv_pieces(s, shape, ref, peer, after)
              : nbc_send_pieces(s, shape, ref, peer, after);
}

struct nbc_sched *nbc_gather_scatter_linear(const struct nbc_shape *shape, bool windowed)
{
    int rank = shape->rank, root = shape->root, size = shape->size;
    bool gathers = shape->coll == NBC_GATHER || shape->coll == NBC_GATHERV;
    struct nbc_sched *s = nbc_sched_new(shape, rank == root ? size : 1);
    if (!s)
        return NULL;
    if (rank != root) {
        move_block(s, shape, !gathers, 0, root, NBC_NONE);
        return nbc_sched_finish(s);
    }
    struct nbc_window window = {0};
    for (int i = 1; i < size; i++) {
        int peer = nbc_absolute(i, root, size);
        nbc_id moved = move_block(s, shape, gathers, peer, peer, nbc_window_next(&window));
        if (windowed && moved != NBC_NONE)
            nbc_window_put(&window, moved);
    }
    nbc_copy(s, nbc_recv_block(shape, gathers ? rank : 0),
             nbc_send_block(shape, gathers ? 0 : rank), NBC_NONE);
    return nbc_sched_finish(s);
}
