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

struct nbc_fold nbc_fold_onto(int rank, int size, int onto, int keep)
{
    struct nbc_fold f = {.onto = onto, .rest = size - onto, .partner = -1, .keep = keep};
    if (rank >= 2 * f.rest) {
        f.virtual = rank - f.rest;
        return f;
    }
    f.partner = rank ^ 1;
    f.takes = nbc_unfold(&f, rank / 2) == rank;
    f.virtual = f.takes ? rank / 2 : -1;
    return f;
}
