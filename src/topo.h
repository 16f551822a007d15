/* SPDX-License-Identifier: MIT */
/* Trees and partner sequences: arithmetic on (rank, size, radix), shared by all collectives.
 * No state, no memory, no O(size) work. */
#ifndef NBC_TOPO_H
#define NBC_TOPO_H

#include <stdbool.h>
#include <stdint.h>

/* rank − root modulo size, and back. */
static inline int nbc_relative(int rank, int root, int size)
{
    return rank >= root ? rank - root : rank - root + size;
}

static inline int nbc_absolute(int relative, int root, int size)
{
    return relative < size - root ? relative + root : relative - (size - root);
}

/* Largest power of two that is ≤ n, for n ≥ 1. */
static inline int nbc_pow2_floor(int n)
{
    return 1 << (31 - __builtin_clz((unsigned)n));
}

/* Smallest k with 2^k ≥ n, for n ≥ 1. */
static inline int nbc_log2_ceil(int n)
{
    return n <= 1 ? 0 : 32 - __builtin_clz((unsigned)(n - 1));
}

/* The k-nomial tree on ranks 0 … size−1 with root 0. In base k the parent of a rank is the rank
 * with its lowest nonzero digit cleared, so every subtree is a contiguous range of ranks.
 *
 *   k = 2, size 8:  0 → 4, 2, 1    4 → 6, 5    2 → 3    6 → 7
 */
struct nbc_knomial {
    int parent;  /* −1 at the root */
    int subtree; /* ranks in the subtree of this rank, itself included: rank … rank+subtree−1 */
    int nchild;
    int child[120]; /* largest subtree first; 120 is enough for 2 ≤ k ≤ 16 and any size */
};

void nbc_knomial(int rank, int size, int k, struct nbc_knomial *tree);

/* Ranks in the subtree of a rank, for asking about another one than oneself. */
int nbc_knomial_subtree(int rank, int size, int k);

/* Two binary trees on the nodes 1 … size, none of which has children in both: so a rank that sends
 * half of its data down each sends as much as it receives. The first one is in order: the parent of
 * an odd number is even. The second one is the same for the nodes counted from the other end, or,
 * where size is odd, from the next one.
 *
 *   size 5:  4 → 2, 5   2 → 1, 3        2 → 4, 1   4 → 5, 3
 *
 * Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
 * 2009. */
enum { NBC_TREES = 2 };

struct nbc_branch {
    int parent; /* 0 at the root */
    int nchild;
    int child[2];
};

struct nbc_branch nbc_two_tree(int node, int size, int tree);

/* The same on the ranks 1 … size − 1, and rank 0 above both. */
struct nbc_branch nbc_two_tree_below(int rank, int size, int tree);

/* The same on the ranks 0 … size − 1, counted from either end, so that every subtree is a range of
 * ranks: for reductions in rank order. Where size is odd the last rank stands above both. */
struct nbc_inner {
    int parent;       /* −1: the root */
    int below, above; /* the children, heads of the ranks next to this one; −1: none */
    bool low, high;   /* there are ranks below the subtree, or above it */
};

struct nbc_inner nbc_two_tree_inner(int rank, int size, int tree);

/* Folding size ranks onto fewer, for algorithms that want a power of two (or another number that
 * divides well). The first 2·rest ranks form pairs (0,1), (2,3), …: the even one hands its data to
 * the odd one and waits, or, where it is `keep` (a root), the odd one to the even. Those left get
 * consecutive numbers 0 … onto−1 in rank order, so that non-commutative operations stay in order.
 */
struct nbc_fold {
    int onto;
    int rest;    /* size − onto */
    int virtual; /* number among the `onto`, or −1: this rank hands over to its partner */
    int partner; /* the other one of the pair, or −1 */
    bool takes;  /* this rank takes over for its partner */
    int keep;
};

/* size/2 ≤ onto ≤ size; keep = −1: none in particular. */
struct nbc_fold nbc_fold_onto(int rank, int size, int onto, int keep);

/* Onto the largest power of two. */
static inline struct nbc_fold nbc_fold(int rank, int size)
{
    return nbc_fold_onto(rank, size, nbc_pow2_floor(size), -1);
}

/* The real rank of a virtual one. */
static inline int nbc_unfold(const struct nbc_fold *f, int virtual)
{
    if (virtual >= f->rest)
        return virtual + f->rest;
    return f->keep == 2 * virtual ? f->keep : 2 * virtual + 1;
}

#endif
