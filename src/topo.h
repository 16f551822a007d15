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
    return relative < size - root ? relative + root : relative + root - size;
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

/* Folding size ranks onto a power of two, for hypercube algorithms. Of the first 2·(size − pow2)
 * ranks the even ones hand their data to the odd one above and wait; the others get consecutive
 * numbers 0 … pow2−1 in rank order, so that non-commutative operations stay in order. */
struct nbc_fold {
    int pow2;
    int rest;    /* size − pow2 */
    int virtual; /* number among the pow2, or −1: this rank hands over to rank + 1 */
    bool takes;  /* this rank takes over for rank − 1 */
};

struct nbc_fold nbc_fold(int rank, int size);

/* The real rank of a virtual one. */
static inline int nbc_unfold(const struct nbc_fold *f, int virtual)
{
    return virtual < f->rest ? 2 * virtual + 1 : virtual + f->rest;
}

#endif
