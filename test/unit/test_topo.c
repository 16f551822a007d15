/* SPDX-License-Identifier: MIT */
/* Arithmetic on ranks: trees are trees, folds are one to one. */
#include <limits.h>
#include <string.h>

#include "topo.h"
#include "unit.h"

enum { MOST = 300 };

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

static const int radixes[] = {2, 3, 4, 5, 7, 8, 11, 16};
enum { NRADIXES = sizeof radixes / sizeof *radixes };

/* The subtree of a rank is the rank and then the subtrees of its children, smallest first. */
static void check_tree_at(int rank, int size, int k)
{
    struct nbc_knomial tree, child;
    nbc_knomial(rank, size, k, &tree);
    int covered = rank + 1, before = INT_MAX;
    for (int i = 0; i < tree.nchild; i++) {
        need(tree.child[i] > rank && tree.child[i] < size);
        nbc_knomial(tree.child[i], size, k, &child);
        if (!(child.parent == rank))
            ck_abort_msg("size %d, k %d: child %d of %d has parent %d", size, k, tree.child[i],
                         rank, child.parent);
        /* largest first; the end of the ranks may have cut one short */
        need(child.below.n <= before || tree.child[i - 1] + before == size);
        before = child.below.n;
    }
    for (int i = tree.nchild - 1; i >= 0; i--) { /* children of one level ascend: look them up */
        int next = -1;
        for (int j = 0; j < tree.nchild; j++)
            if (tree.child[j] == covered)
                next = j;
        if (!(next >= 0))
            ck_abort_msg("size %d, k %d: nobody covers rank %d below %d", size, k, covered, rank);
        covered += nbc_knomial_subtree(tree.child[next], size, k).n;
    }
    need(tree.below.first == rank && covered == rank + tree.below.n);
    need(tree.below.n == nbc_knomial_subtree(rank, size, k).n);
}

UNIT(knomial_is_a_tree_of_contiguous_subtrees, .times = NRADIXES)
{
    int k = radixes[_i];
    for (int size = 1; size <= MOST; size++) {
        int nchildren = 0;
        for (int rank = 0; rank < size; rank++) {
            struct nbc_knomial tree;
            nbc_knomial(rank, size, k, &tree);
            need(rank ? tree.parent >= 0 && tree.parent < rank : tree.parent == -1);
            nchildren += tree.nchild;
            check_tree_at(rank, size, k);
        }
        need(nchildren == size - 1);
    }
}

UNIT(knomial_depth_is_logarithmic, .times = NRADIXES)
{
    int k = radixes[_i];
    for (int size = 1; size <= MOST; size++) {
        int levels = 0;
        for (int64_t reach = 1; reach < size; reach *= k)
            levels++;
        for (int rank = 0; rank < size; rank++) {
            struct nbc_knomial tree;
            int depth = 0;
            for (int at = rank; at != 0; at = tree.parent, depth++)
                nbc_knomial(at, size, k, &tree);
            need(depth <= levels);
        }
    }
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

/* The subtree of a rank is it and those of its children: nobody is missing, nobody is there twice.
 */
static void check_bine_at(int rank, int size)
{
    struct nbc_knomial tree, child;
    nbc_knomial(rank, size, NBC_BINE, &tree);
    struct nbc_range below = tree.below;
    unsigned char covered[MOST] = {0};
    need(below.first >= 0 && below.first <= rank);
    need(rank < below.first + below.n && below.first + below.n <= size);
    need(rank ? below.n < size : below.n == size && tree.parent == -1);
    covered[rank] = 1;
    for (int i = 0; i < tree.nchild; i++) {
        nbc_knomial(tree.child[i], size, NBC_BINE, &child);
        need(child.parent == rank);
        for (int k = 0; k < child.below.n; k++)
            need(++covered[child.below.first + k] == 1);
    }
    for (int i = 0; i < size; i++)
        need(covered[i] == (i >= below.first && i < below.first + below.n));
}

static int bine_depth(int rank, int size)
{
    struct nbc_knomial tree;
    int depth = 0;
    for (int at = rank; at != 0; at = tree.parent, depth++)
        nbc_knomial(at, size, NBC_BINE, &tree);
    return depth;
}

UNIT(bine_tree_is_a_tree_of_contiguous_subtrees)
{
    for (int size = 1; size <= MOST; size++)
        for (int rank = 0; rank < size; rank++) {
            check_bine_at(rank, size);
            need(bine_depth(rank, size) <= nbc_log2_ceil(size));
        }
    need(bine_depth(INT_MAX - 1, INT_MAX) <= 31);
    need(bine_depth((1 << 30) - 1, 1 << 30) == 1);
}

/* 1, 1, 3, 5, 11 …: each is twice the one before, one less or one more by turns. */
UNIT(bine_distances_are_those_of_the_paper)
{
    static const int far[] = {1, 1, 3, 5, 11, 21, 43, 85};
    enum { ROUNDS = sizeof far / sizeof *far, SIZE = 1 << ROUNDS };
    int met[ROUNDS] = {0};
    for (int rank = 0; rank < SIZE; rank++) {
        struct nbc_knomial tree;
        nbc_knomial(rank, SIZE, NBC_BINE, &tree);
        for (int i = 0; i < tree.nchild; i++) {
            int k = tree.nchild - 1 - i, up = nbc_relative(tree.child[i], rank, SIZE);
            need(up == far[k] || up == SIZE - far[k]);
            need((up == far[k]) == ((rank + k) % 2 == 0));
            met[k]++;
        }
    }
    for (int k = 0; k < ROUNDS; k++)
        need(met[k] == SIZE >> (k + 1));
}

static struct nbc_fold at_virtual(int virtual, int onto, bool bine)
{
    struct nbc_fold f = nbc_fold_onto(virtual, onto, onto, -1);
    f.bine = bine;
    return f;
}

/* Halving and doubling rely on this. */
static void check_butterfly(int onto, bool bine)
{
    for (int v = 0; v < onto; v++) {
        struct nbc_fold f = at_virtual(v, onto, bine);
        int path = nbc_butterfly_path(&f, 0), at = 0;
        need((v == 0) == (nbc_butterfly_part(&f) == 0));
        need(path >= 0 && path < onto && nbc_butterfly_holder(&f, nbc_butterfly_part(&f)) == v);
        for (int k = 0; 1 << k < onto; k++) {
            struct nbc_fold other = at_virtual(nbc_butterfly_partner(&f, k), onto, bine);
            need(nbc_butterfly_partner(&other, k) == v);
            int differs = path ^ nbc_butterfly_path(&other, 0);
            need(differs >> k & 1);
            need((differs & ((1 << k) - 1)) == 0);
        }
        for (int from = 0; from < onto; from++) {
            path = nbc_butterfly_path(&f, from);
            at = from;
            for (int k = 0; 1 << k < onto; k++) {
                struct nbc_fold step = at_virtual(at, onto, bine);
                at = path >> k & 1 ? nbc_butterfly_partner(&step, k) : at;
            }
            need(at == v);
            struct nbc_fold begin = at_virtual(from, onto, bine);
            need(nbc_butterfly_to(&begin, path) == v);
            need(nbc_butterfly_from(&f, path) == from);
        }
    }
}

UNIT(butterflies_lead_everywhere, .times = 2)
{
    for (int onto = 1; onto <= 256; onto *= 2)
        check_butterfly(onto, _i);
    int most = 1 << 30;
    for (int v = 0; v < 100; v++) {
        struct nbc_fold f = at_virtual(_i ? v * 7654321 : most - 1 - v, most, _i);
        need(nbc_butterfly_holder(&f, nbc_butterfly_part(&f)) == f.virtual);
        int partner = nbc_butterfly_partner(&f, 29);
        need(partner >= 0 && partner < most);
    }
}

/* Everyone is its children's parent, one node has none, and nobody has children in both trees. */
static void check_trees(int size)
{
    for (int tree = 0; tree < NBC_TREES; tree++) {
        int children = 0;
        for (int node = 1; node <= size; node++) {
            struct nbc_branch at = nbc_two_tree(node, size, tree);
            children += at.nchild;
            for (int i = 0; i < at.nchild; i++) {
                need(at.child[i] >= 1 && at.child[i] <= size);
                need(nbc_two_tree(at.child[i], size, tree).parent == node);
            }
            if (tree > 0 && at.nchild)
                need(nbc_two_tree(node, size, 0).nchild == 0);
        }
        need(children == size - 1);
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

UNIT(two_trees_share_no_inner_nodes)
{
    for (int size = 1; size <= 130; size++) {
        check_trees(size);
        for (int tree = 0; tree < NBC_TREES; tree++) {
            struct nbc_branch top = nbc_two_tree_below(0, size + 1, tree);
            need(top.parent == -1 && top.nchild == 1);
            need(nbc_two_tree_below(top.child[0], size + 1, tree).parent == 0);
            for (int node = 1; node <= size; node++)
                need(depth_of(node, size, tree) <= nbc_log2_ceil(size + 1) - 1);
        }
    }
    need(nbc_two_tree_below(0, 1, 0).nchild == 0);
    for (int tree = 0; tree < NBC_TREES; tree++)
        for (int node = INT_MAX - 4; node < INT_MAX; node++)
            need(depth_of(node, INT_MAX - 1, tree) <= 30);
}

static void check_fold(int size, int onto, int keep)
{
    int next = 0;
    for (int rank = 0; rank < size; rank++) {
        struct nbc_fold f = nbc_fold_onto(rank, size, onto, keep);
        need(f.onto == onto && f.rest == size - onto);
        if (rank == keep)
            need(f.virtual >= 0);
        if (f.virtual >= 0) {
            need(f.virtual == next); /* in rank order, none left out */
            need(nbc_unfold(&f, f.virtual) == rank);
            next++;
        }
        need(f.takes == (f.virtual >= 0 && f.partner >= 0));
        if (f.partner < 0) {
            need(rank >= 2 * f.rest);
            continue;
        }
        struct nbc_fold other = nbc_fold_onto(f.partner, size, onto, keep);
        need(f.partner == (rank ^ 1));
        need(other.partner == rank);
        need(other.takes != f.takes);
    }
    need(next == onto);
}

UNIT(folds_are_one_to_one_and_keep_order)
{
    for (int size = 1; size <= 64; size++)
        for (int onto = (size + 1) / 2; onto <= size; onto++)
            for (int keep = -1; keep < size; keep++)
                check_fold(size, onto, keep);
    for (int size = 1; size <= MOST; size++)
        for (int rank = 0; rank < size; rank++)
            need(nbc_fold(rank, size).onto == nbc_pow2_floor(size));
}
