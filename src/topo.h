/* SPDX-License-Identifier: MIT */
/* Trees, pairings and other virtual topologies, as functions of (rank, size, radix) that all
 * collectives share. They keep no state and allocate no memory, and their time does not grow
 * linearly with the size. */
#ifndef NBC_TOPO_H
#define NBC_TOPO_H

#include <stdbool.h>
#include <stdint.h>

/* Return rank − root modulo size, and the rank for such a relative rank. */
static inline int nbc_relative(int rank, int root, int size)
{
    return rank >= root ? rank - root : rank - root + size;
}

static inline int nbc_absolute(int relative, int root, int size)
{
    return relative < size - root ? relative + root : relative - (size - root);
}

/* A barrier by dissemination, as in src/alg_barrier.c: in round k a rank sends to the one 2^k above
 * it and receives from the one 2^k below. Returns the error of an exchange, or 0. */
static inline int nbc_disseminate(int rank, int size, int (*exchange)(int to, int from, void *arg),
                                  void *arg)
{
    int error = 0;
    for (int64_t step = 1; step < size && !error; step *= 2)
        error = exchange((int)((rank + step) % size), nbc_relative(rank, (int)step, size), arg);
    return error;
}

/* Returns the largest power of two that is ≤ n, for n ≥ 1. */
static inline int nbc_pow2_floor(int n)
{
    return 1 << (31 - __builtin_clz((unsigned)n));
}

/* Returns the smallest k with 2^k ≥ n, for n ≥ 1. */
static inline int nbc_log2_ceil(int n)
{
    return n <= 1 ? 0 : 32 - __builtin_clz((unsigned)(n - 1));
}

/* A range of ranks. */
struct nbc_range {
    int first, n;
};

/* A rank's place in the k-nomial tree on the ranks 0 … size−1 with root 0. The parent of a rank is
 * the rank with its lowest nonzero digit in base k cleared, so every subtree is a contiguous range
 * of ranks.
 *
 *   k = 2, size 8:  0 → 4, 2, 1    4 → 6, 5    2 → 3    6 → 7
 *
 * The Bine tree (binomial negabinary) has the shape of the binomial one, but its ranks are counted
 * in base −2: at the distances 1, 1, 3, 5, 11 …, by turns in either direction, partners are nearer
 * by a third than at 1, 2, 4, 8, 16 …, and a subtree extends to both sides of its head. Ranks
 * beyond a power of two are leaves below a neighbor (nbc_fold). De Sensi et al., "Bine trees:
 * enhancing collective operations by optimizing communication locality", 2025.
 *
 *   size 8:  0 → 3, 7, 1    3 → 4, 2    7 → 6    4 → 5
 */
enum { NBC_BINE = -2 };

struct nbc_knomial {
    int parent;             /* −1 at the root */
    struct nbc_range below; /* its subtree, itself included */
    int nchild;
    int child[120]; /* largest subtree first; 120 suffice for 2 ≤ k ≤ 16 and any size */
};

/* Fills *tree for a rank; 2 ≤ k ≤ 16, or NBC_BINE. */
void nbc_knomial(int rank, int size, int k, struct nbc_knomial *tree);

/* Returns the subtree of a rank, without computing its children. */
struct nbc_range nbc_knomial_subtree(int rank, int size, int k);

/* Two binary trees on the nodes 1 … size. No node has children in both, so a rank that sends half
 * of its data down each tree sends as much as it receives. The first tree is in order: odd numbers
 * are leaves. The second one is the first with the nodes counted from the other end or, if size is
 * odd, shifted by one.
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

/* Returns the place of a node in tree 0 or 1. */
struct nbc_branch nbc_two_tree(int node, int size, int tree);

/* The same on the ranks 1 … size − 1; rank 0 is the parent of both roots. */
struct nbc_branch nbc_two_tree_below(int rank, int size, int tree);

/* The same on the ranks 0 … size − 1, counted from either end, so that every subtree is a
 * contiguous range of ranks: for reductions in rank order. If size is odd, the last rank is the
 * parent of both roots. */
struct nbc_inner {
    int parent;       /* −1: the root */
    int below, above; /* the children, of lower and of higher ranks; −1: none */
    bool low, high;   /* there are ranks below the subtree; above the subtree */
};

struct nbc_inner nbc_two_tree_inner(int rank, int size, int tree);

/* Folds size ranks onto fewer, for algorithms that need a power of two or another suitable number.
 * The first 2·rest ranks form pairs (0,1), (2,3), …: the even rank hands its data to the odd one
 * and waits; if the even rank is `keep` (a root), the odd rank hands its data to the even one. The
 * remaining ranks get the virtual ranks 0 … onto−1 in rank order, which keeps the order of
 * non-commutative operations. */
struct nbc_fold {
    int onto;
    int rest;    /* size − onto */
    int virtual; /* virtual rank, or −1: this rank hands its data to its partner */
    int partner; /* the other rank of its pair, or −1 */
    bool takes;  /* its partner hands it data */
    int keep;
    /* The butterfly on the virtual ranks: its distances halve, or it is that of Bine trees. Both
     * are false from nbc_fold. */
    bool far_first, bine;
};

/* Requires size/2 ≤ onto ≤ size. keep: a rank that must not fold away, or −1. */
struct nbc_fold nbc_fold_onto(int rank, int size, int onto, int keep);

/* Folds onto the largest power of two. */
static inline struct nbc_fold nbc_fold(int rank, int size)
{
    return nbc_fold_onto(rank, size, nbc_pow2_floor(size), -1);
}

/* Returns the rank for a virtual rank. */
static inline int nbc_unfold(const struct nbc_fold *f, int virtual)
{
    if (virtual >= f->rest)
        return virtual + f->rest;
    return f->keep == 2 * virtual ? f->keep : 2 * virtual + 1;
}

/* Returns the lowest rank that a virtual rank stands for: it, or the partner folded onto it; the
 * size for the virtual rank `onto`. */
static inline int nbc_first_of(const struct nbc_fold *f, int virtual)
{
    return virtual < f->rest ? 2 * virtual : virtual + f->rest;
}

/* A butterfly on the virtual ranks of a fold onto a power of two: in round k each has one partner,
 * the one that differs in bit k, or if far_first in the k-th highest; in that of Bine trees the one
 * at their distance, which Swing has too (De Sensi et al., "Swing: short-cutting rings for higher
 * bandwidth allreduce", 2024). */
int nbc_butterfly_partner(const struct nbc_fold *f, int k);

/* The bits of the rounds in which data of virtual rank `from` takes a step on its way to this one,
 * if the rounds ascend. For each `from` they are one to one. Partners of round k differ in bit k
 * and agree in all lower ones. */
int nbc_butterfly_path(const struct nbc_fold *f, int from);

/* Return the virtual rank to which a path leads from this one, and the one from which it leads
 * here. */
int nbc_butterfly_to(const struct nbc_fold *f, int path);
int nbc_butterfly_from(const struct nbc_fold *f, int path);

/* If partners of each round divide what they share, and the one with that bit of its path from 0
 * keeps the upper half, virtual ranks end with one part each: that whose number is the path with
 * its bits reversed. Returns the part of this rank, and the virtual rank that has a part. */
int nbc_butterfly_part(const struct nbc_fold *f);
int nbc_butterfly_holder(const struct nbc_fold *f, int part);

#endif
