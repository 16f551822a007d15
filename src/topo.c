/* SPDX-License-Identifier: MIT */
#include "topo.h"

/* Weight of the lowest nonzero digit; of a digit above all others at the root. */
static int64_t lowest_digit(int rank, int size, int k)
{
    int64_t weight = 1;
    while (weight < size && rank / weight % k == 0)
        weight *= k;
    return weight;
}

int nbc_knomial_subtree(int rank, int size, int k)
{
    int64_t weight = lowest_digit(rank, size, k);
    return (int)(size - rank < weight ? size - rank : weight);
}

void nbc_knomial(int rank, int size, int k, struct nbc_knomial *tree)
{
    int64_t weight = lowest_digit(rank, size, k);
    tree->parent = rank ? (int)(rank - rank / weight % k * weight) : -1;
    tree->subtree = nbc_knomial_subtree(rank, size, k);
    tree->nchild = 0;
    for (weight /= k; weight >= 1; weight /= k)
        for (int digit = 1; digit < k && rank + digit * weight < size; digit++)
            tree->child[tree->nchild++] = (int)(rank + digit * weight);
}

struct nbc_fold nbc_fold(int rank, int size)
{
    struct nbc_fold f = {.pow2 = nbc_pow2_floor(size)};
    f.rest = size - f.pow2;
    f.takes = rank < 2 * f.rest && rank % 2 == 1;
    if (rank >= 2 * f.rest)
        f.virtual = rank - f.rest;
    else
        f.virtual = f.takes ? rank / 2 : -1;
    return f;
}
