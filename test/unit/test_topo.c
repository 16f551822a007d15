/* SPDX-License-Identifier: MIT */
/* Arithmetic on ranks, up to the largest numbers of them. (That trees are trees and folds one to
 * one is for test_uses and test_algs, whose algorithms would not be right otherwise, and for
 * test_cost.) */
#include <limits.h>
#include <string.h>

#include "topo.h"
#include "unit.h"

UNIT(relative_and_absolute_are_inverse)
{
    for (int size = 1; size <= 40; size++)
        for (int root = 0; root < size; root++)
            for (int rank = 0; rank < size; rank++) {
                int relative = nbc_relative(rank, root, size);
                need(relative == (rank - root + size) % size);
                need(nbc_absolute(relative, root, size) == rank);
            }
    need(nbc_absolute(INT_MAX - 2, INT_MAX - 1, INT_MAX) == INT_MAX - 3);
}

UNIT(powers_of_two)
{
    for (int n = 1; n < 5000; n++) {
        int floor = nbc_pow2_floor(n), up = nbc_log2_ceil(n);
        need(floor <= n && 2 * floor > n && (floor & (floor - 1)) == 0);
        need(1 << up >= n && (up == 0 || 1 << (up - 1) < n));
    }
    need(nbc_pow2_floor(INT_MAX) == 1 << 30);
    need(nbc_log2_ceil(INT_MAX) == 31);
}

UNIT(knomial_of_the_largest_size)
{
    struct nbc_knomial tree;
    for (int k = 2; k <= 16; k++) {
        nbc_knomial(0, INT_MAX, k, &tree);
        need(tree.below.n == INT_MAX);
        need(tree.nchild <= (int)(sizeof tree.child / sizeof *tree.child));
        for (int i = 0; i < tree.nchild; i++)
            need(tree.child[i] > 0);
        nbc_knomial(INT_MAX - 1, INT_MAX, k, &tree);
        need(tree.parent >= 0 && tree.parent < INT_MAX - 1);
    }
}

static int bine_depth(int rank, int size)
{
    struct nbc_knomial tree;
    int depth = 0;
    for (int at = rank; at != 0; at = tree.parent, depth++)
        nbc_knomial(at, size, NBC_BINE, &tree);
    return depth;
}

UNIT(bine_tree_of_the_largest_size)
{
    need(bine_depth(INT_MAX - 1, INT_MAX) <= 31);
    need(bine_depth((1 << 30) - 1, 1 << 30) == 1);
}

enum { NEAR_FIRST, FAR_FIRST, BINE, NBUTTERFLIES };

static struct nbc_fold at_virtual(int virtual, int onto, int butterfly)
{
    struct nbc_fold f = nbc_fold_onto(virtual, onto, onto, -1);
    f.far_first = butterfly == FAR_FIRST;
    f.bine = butterfly == BINE;
    return f;
}

UNIT(butterflies_of_the_largest_size, .times = NBUTTERFLIES)
{
    int most = 1 << 30;
    for (int v = 0; v < 100; v++) {
        struct nbc_fold f = at_virtual(_i ? v * 7654321 : most - 1 - v, most, _i);
        need(nbc_butterfly_holder(&f, nbc_butterfly_part(&f)) == f.virtual);
        int partner = nbc_butterfly_partner(&f, 29);
        need(partner >= 0 && partner < most);
    }
}

/* Follows the links down; returns where the ranks of the subtree end. They begin with `from`. */
static int check_range(int rank, int from, int size, int tree)
{
    struct nbc_inner at = nbc_two_tree_inner(rank, size, tree);
    int end = rank + 1;
    need(at.low == (from > 0));
    if (at.below >= 0) {
        need(nbc_two_tree_inner(at.below, size, tree).parent == rank);
        need(check_range(at.below, from, size, tree) == rank);
    } else {
        need(rank == from);
    }
    if (at.above >= 0) {
        need(nbc_two_tree_inner(at.above, size, tree).parent == rank);
        end = check_range(at.above, rank + 1, size, tree);
    }
    need(at.high == (end < size));
    return end;
}

UNIT(two_trees_of_ranges_of_ranks)
{
    for (int size = 1; size <= 130; size++)
        for (int tree = 0; tree < NBC_TREES; tree++) {
            int roots = 0;
            for (int rank = 0; rank < size; rank++) {
                struct nbc_inner at = nbc_two_tree_inner(rank, size, tree);
                if (at.parent < 0) {
                    need(check_range(rank, 0, size, tree) == size);
                    roots++;
                }
                struct nbc_inner other = nbc_two_tree_inner(rank, size, !tree);
                bool last = size % 2 && rank == size - 1;
                need(last || (at.below < 0 && at.above < 0) ||
                     (other.below < 0 && other.above < 0));
            }
            need(roots == 1);
        }
    struct nbc_inner at = nbc_two_tree_inner(INT_MAX - 1, INT_MAX, 0);
    need(at.parent == -1 && at.below == (1 << 30) - 1);
}

static int depth_of(int node, int size, int tree)
{
    int depth = 0;
    while ((node = nbc_two_tree(node, size, tree).parent) > 0)
        depth++;
    return depth;
}

UNIT(two_trees_of_the_largest_size)
{
    for (int tree = 0; tree < NBC_TREES; tree++)
        for (int node = INT_MAX - 4; node < INT_MAX; node++)
            need(depth_of(node, INT_MAX - 1, tree) <= 30);
}
