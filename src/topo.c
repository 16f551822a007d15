/* SPDX-License-Identifier: MIT */
#include "topo.h"

/* Returns the weight of the lowest nonzero digit; for the root, that of a digit above all others.
 */
static int64_t lowest_digit(int rank, int size, int k)
{
    int64_t weight = 1;
    /* mutants: <= for <: of the root any weight of size or more will do */
    while (weight < size && rank / weight % k == 0)
        weight *= k;
    return weight;
}

/* The odd digits in base −2 have a negative weight. */
enum { NEGATIVE = 0x2AAAAAAA };

static int negabinary(int n, int pow2)
{
    return ((n + (NEGATIVE & (pow2 - 1))) ^ NEGATIVE) & (pow2 - 1);
}

/* The rank at the distance of round k, 1 − 2 + 4 − … ± 2^k: of even ranks in the one direction, of
 * odd ones in the other. */
static int bine_partner(int rank, int k, int pow2)
{
    int far = (k % 2 ? 1 - (2 << k) : 1 + (2 << k)) / 3;
    return (rank % 2 ? rank - far : rank + far) & (pow2 - 1);
}

/* Returns the round in which the root reaches a rank, if the rounds descend: a path over the rounds
 * a > b > c … ends at the rank whose digits in base −2 change above the digits a, b, c …; for the
 * root, the number of rounds. */
static int bine_round(int rank, int pow2)
{
    int digits = negabinary(rank, pow2);
    return __builtin_ctz((unsigned)((digits ^ digits >> 1) | pow2));
}

/* The subtree of virtual rank v, which has k more rounds to go, begins as many ranks below it as
 * the steps that go down reach. */
static struct nbc_range bine_subtree(const struct nbc_fold *f, int k)
{
    int v = f->virtual, down = (v % 2 ? ~NEGATIVE : NEGATIVE) & ((1 << k) - 1);
    int first = nbc_first_of(f, v - down);
    return (struct nbc_range){first, nbc_first_of(f, v - down + (1 << k)) - first};
}

static struct nbc_fold bine_fold(int rank, int size)
{
    return nbc_fold_onto(rank, size, nbc_pow2_floor(size), 0);
}

static void bine_tree(int rank, int size, struct nbc_knomial *tree)
{
    struct nbc_fold f = bine_fold(rank, size);
    tree->parent = f.partner;
    if (f.virtual < 0)
        return;
    int k = bine_round(f.virtual, f.onto);
    tree->parent = rank ? nbc_unfold(&f, bine_partner(f.virtual, k, f.onto)) : -1;
    while (k-- > 0)
        tree->child[tree->nchild++] = nbc_unfold(&f, bine_partner(f.virtual, k, f.onto));
    if (f.takes)
        tree->child[tree->nchild++] = f.partner;
}

struct nbc_range nbc_knomial_subtree(int rank, int size, int k)
{
    if (rank == 0)
        return (struct nbc_range){0, size};
    if (k == NBC_BINE) {
        struct nbc_fold f = bine_fold(rank, size);
        /* mutants: <= for <: virtual rank 0 is the root */
        return f.virtual < 0 ? (struct nbc_range){rank, 1}
                             : bine_subtree(&f, bine_round(f.virtual, f.onto));
    }
    int64_t weight = lowest_digit(rank, size, k);
    return (struct nbc_range){rank, (int)(size - rank < weight ? size - rank : weight)};
}

void nbc_knomial(int rank, int size, int k, struct nbc_knomial *tree)
{
    tree->below = nbc_knomial_subtree(rank, size, k);
    tree->nchild = 0;
    if (k == NBC_BINE) {
        bine_tree(rank, size, tree);
        return;
    }
    int64_t weight = lowest_digit(rank, size, k);
    tree->parent = rank ? (int)(rank - rank / weight % k * weight) : -1;
    for (weight /= k; weight >= 1; weight /= k)
        for (int digit = 1; digit < k && rank + digit * weight < size; digit++)
            tree->child[tree->nchild++] = (int)(rank + digit * weight);
}

/* Maps the number of a node in the second tree to that in the first, and vice versa. */
static int other_tree(int node, int size, bool back)
{
    if (size % 2 == 0)
        return size + 1 - node;
    return back ? node % size + 1 : (node + size - 2) % size + 1;
}

/* A node whose lowest bit is b has the children node ± b/2. If the upper one exceeds the size, it
 * is replaced by the head of the existing part of its subtree. */
static struct nbc_branch in_order(int node, int size)
{
    struct nbc_branch at = {0};
    int bit = node & -node;
    if (node != nbc_pow2_floor(size)) {
        at.parent = node;
        for (int b = bit; at.parent == node || at.parent > size; b *= 2)
            at.parent = (at.parent ^ b) | 2 * b;
    }
    if (bit > 1)
        at.child[at.nchild++] = node - bit / 2;
    for (int b = bit / 2; b >= 1; b /= 2)
        if (node + b <= size) {
            at.child[at.nchild++] = node + b;
            break;
        }
    return at;
}

struct nbc_branch nbc_two_tree(int node, int size, int tree)
{
    if (tree == 0)
        return in_order(node, size);
    struct nbc_branch at = in_order(other_tree(node, size, false), size);
    if (at.parent)
        at.parent = other_tree(at.parent, size, true);
    for (int i = 0; i < at.nchild; i++)
        at.child[i] = other_tree(at.child[i], size, true);
    return at;
}

struct nbc_branch nbc_two_tree_below(int rank, int size, int tree)
{
    if (rank > 0)
        return nbc_two_tree(rank, size - 1, tree);
    /* mutants: >= for >: a tree of one rank has no head */
    int head = size > 1 ? nbc_pow2_floor(size - 1) : 0;
    return (struct nbc_branch){-1, size > 1, {tree == 0 ? head : other_tree(head, size - 1, true)}};
}

struct nbc_inner nbc_two_tree_inner(int rank, int size, int tree)
{
    int even = size - size % 2;
    if (rank == even) { /* the last of an odd number of ranks: the parent of both roots */
        int head = even ? nbc_pow2_floor(even) : 0;
        int below = even && tree ? other_tree(head, even, true) : head;
        return (struct nbc_inner){.parent = -1, .below = below - 1, .above = -1};
    }
    struct nbc_branch b = nbc_two_tree(rank + 1, even, tree);
    struct nbc_inner at = {.parent = b.parent - 1, .below = -1, .above = -1};
    if (b.parent == 0 && even < size)
        at.parent = even;
    for (int i = 0; i < b.nchild; i++)
        *(b.child[i] <= rank ? &at.below : &at.above) = b.child[i] - 1;
    /* The subtree of a node whose lowest bit is b is the nodes at distances less than b. */
    int node = tree ? other_tree(rank + 1, even, false) : rank + 1, bit = node & -node;
    /* mutants: > for >=: node - 1 + bit is odd */
    bool first = node == bit, last = node - 1 >= even - bit;
    at.low = !(tree ? last : first);
    at.high = even < size || !(tree ? first : last);
    return at;
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

/* Returns a number below a power of two with its bits reversed. */
static int reversed(int number, int pow2)
{
    int r = 0;
    for (int bit = 1; bit < pow2; bit *= 2)
        r = 2 * r + (number & bit ? 1 : 0);
    return r;
}

/* Unless the butterfly is that of Bine trees: the bits in which the ends of a path differ, and the
 * path between two ranks that differ in these bits. */
static int flipped(const struct nbc_fold *f, int bits)
{
    return f->far_first ? reversed(bits, f->onto) : bits;
}

int nbc_butterfly_partner(const struct nbc_fold *f, int k)
{
    return f->bine ? bine_partner(f->virtual, k, f->onto) : f->virtual ^ flipped(f, 1 << k);
}

/* A path over the rounds a < b < c … of an odd number of steps ends at the distance whose digits in
 * base −2 change above the digits a, b, c …; one of an even number at the same distance in the
 * other direction. */
int nbc_butterfly_path(const struct nbc_fold *f, int from)
{
    if (!f->bine)
        return flipped(f, f->virtual ^ from);
    int far = from % 2 ? from - f->virtual : f->virtual - from;
    int digits = negabinary(far % 2 ? far : -far, f->onto);
    return digits ^ digits >> 1;
}

/* Returns the distance that a path leads up from an even rank, or down from an odd one. */
static int bine_distance(int path, int pow2)
{
    int digits = path, negative = NEGATIVE & (pow2 - 1);
    for (int shift = 1; shift <= 16; shift *= 2)
        digits ^= digits >> shift;
    int far = (digits ^ negative) - negative;
    return __builtin_popcount((unsigned)path) % 2 ? far : -far;
}

int nbc_butterfly_to(const struct nbc_fold *f, int path)
{
    if (!f->bine)
        return f->virtual ^ flipped(f, path);
    int far = bine_distance(path, f->onto);
    return (f->virtual % 2 ? f->virtual - far : f->virtual + far) & (f->onto - 1);
}

int nbc_butterfly_from(const struct nbc_fold *f, int path)
{
    if (!f->bine)
        return f->virtual ^ flipped(f, path);
    int far = bine_distance(path, f->onto);
    return ((f->virtual ^ far) & 1 ? f->virtual + far : f->virtual - far) & (f->onto - 1);
}

int nbc_butterfly_part(const struct nbc_fold *f)
{
    return reversed(nbc_butterfly_path(f, 0), f->onto);
}

int nbc_butterfly_holder(const struct nbc_fold *f, int part)
{
    struct nbc_fold zero = *f;
    zero.virtual = 0;
    return nbc_butterfly_to(&zero, reversed(part, f->onto));
}
