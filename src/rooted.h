/* SPDX-License-Identifier: MIT */
/* What gather and scatter share: the blocks of all ranks are at one of them, the root. */
#ifndef NBC_ROOTED_H
#define NBC_ROOTED_H

#include "sched.h"
#include "topo.h"

/* A rank's place in a k-nomial tree of ranks counted from the root, so that a subtree is a
 * contiguous range of blocks. */
struct nbc_rooted {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    struct nbc_knomial tree;
    int64_t each; /* bytes of a block */
    int radix;
};

/* How many ranks the subtree of a child has. */
int nbc_rooted_subtree(const struct nbc_rooted *r, int child);

/* A schedule along the tree: what the root emits, and every other rank. */
struct nbc_sched *nbc_rooted_knomial(const struct nbc_shape *shape, int radix,
                                     void (*at_root)(struct nbc_rooted *r),
                                     void (*elsewhere)(struct nbc_rooted *r));

/* Every block goes straight from or to the root, which takes the ranks in order from its own on,
 * with a window or all at once. Blocks without data are not sent, which both sides know. */
struct nbc_sched *nbc_rooted_straight(const struct nbc_shape *shape, bool windowed);

#endif
