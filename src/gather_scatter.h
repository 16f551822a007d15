/* SPDX-License-Identifier: MIT */
/* The schedules that gather(v) and scatter(v) share: the root holds the blocks of all ranks. */
#ifndef NBC_GATHER_SCATTER_H
#define NBC_GATHER_SCATTER_H

#include "sched.h"
#include "topo.h"

/* A rank's place in a k-nomial tree. Ranks are counted from the root, so that a subtree is a
 * contiguous range of blocks. */
struct nbc_gather_scatter {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    struct nbc_knomial tree;
    int64_t each; /* bytes of a block */
    int radix;
};

/* Number of ranks in the subtree of a child. */
int nbc_gather_scatter_subtree(const struct nbc_gather_scatter *g, int child);

/* Builds a schedule along the tree: at_root emits the operations of the root, elsewhere those of
 * every other rank. Neither is called when blocks have no bytes. NULL: out of memory. */
struct nbc_sched *nbc_gather_scatter_knomial(const struct nbc_shape *shape, int radix,
                                             void (*at_root)(struct nbc_gather_scatter *g),
                                             void (*elsewhere)(struct nbc_gather_scatter *g));

/* Builds a schedule in which every block travels directly between its rank and the root. The root
 * takes the ranks in ascending order from its own, within a window or all at once. Blocks without
 * bytes are not sent, which both sides know. NULL: out of memory. */
struct nbc_sched *nbc_gather_scatter_linear(const struct nbc_shape *shape, bool windowed);

#endif
