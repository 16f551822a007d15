/* SPDX-License-Identifier: MIT */
/* Reduce: the vectors of all ranks are combined at the root. */
#include "bytes.h"
#include "reduction.h"
#include "select.h"

/* Returns the place of the result, which only the root has. */
static bool here(const struct nbc_shape *shape)
{
    return shape->rank == shape->root;
}

/* The reduction of a vector, or of a piece of it, at this rank. */
struct climb {
    struct nbc_sched *s;
    const struct nbc_shape *shape;
    struct nbc_room *room;
    struct nbc_acc acc;
    struct nbc_ref result; /* at the root */
    bool result_used;      /* something has been there already, and may still be read */
};

/* Returns a place in which acc can stay; at the root, that of the result. */
static struct nbc_ref lasting(struct climb *c, nbc_id *free)
{
    *free = NBC_NONE;
    if (here(c->shape) && !c->shape->in_place && !c->result_used) {
        c->result_used = true;
        return c->result;
    }
    return nbc_room_take(c->s, c->room, c->acc.at.count, free);
}

/* Combines acc with a child's vector. stays: acc will not move again. Returns the receive. */
static nbc_id combine(struct climb *c, int child, bool below, bool stays)
{
    nbc_id free = NBC_NONE;
    struct nbc_acc *acc = &c->acc, before = c->acc;
    bool appends = nbc_appends(c->shape, acc, below);
    struct nbc_ref theirs =
        appends && stays ? lasting(c, &free) : nbc_room_take(c->s, c->room, acc->at.count, &free);
    nbc_id received = nbc_recv(c->s, theirs, child, free);
    free = NBC_NONE;
    struct nbc_ref place = appends || acc->writable ? acc->at : lasting(c, &free);
    nbc_merge(c->s, c->shape, acc, theirs, received, below, place);
    nbc_after(c->s, acc->ready, free);
    nbc_room_give(c->room, appends ? before.at : theirs, acc->ready);
    return received;
}

/* Sends acc to the parent; at the root, keeps it. Returns the send. */
static nbc_id deliver(struct climb *c, int parent)
{
    nbc_id sent = NBC_NONE;
    if (parent >= 0)
        sent = nbc_send(c->s, c->acc.at, parent, c->acc.ready);
    struct nbc_ref at = c->acc.at;
    if (parent < 0)
        nbc_own(c->s, &c->acc, c->result);
    nbc_room_give(c->room, at, parent < 0 ? c->acc.ready : sent);
    return sent;
}

/* Pairs of ranks, of pairs, and so on, as in recursive doubling, but of each pair only one rank
 * goes on: the one in the half that has the root. Each covers a range of ranks, so the order of
 * ranks is kept, and for every root it is that of recursive doubling. */
static void along_pairs(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int onto = nbc_pow2_floor(shape->size), rounds = nbc_log2_ceil(onto);
    struct nbc_fold fold = nbc_fold_onto(shape->rank, shape->size, onto, shape->root);
    struct nbc_fold at_root = nbc_fold_onto(shape->root, shape->size, onto, shape->root);
    struct nbc_acc input = nbc_acc_input(shape);
    if (!nbc_has_bytes(shape, input.at))
        return;
    struct nbc_room room = nbc_room_new(shape, input.at, rounds + 1, NBC_ROOM_LIMIT / 2);
    struct climb c = {s, shape, &room, input, nbc_recv_block(shape, 0), false};
    int parent = fold.virtual < 0 ? fold.partner : -1;
    if (fold.takes)
        combine(&c, fold.partner, fold.partner < shape->rank, onto == 1);
    for (int bit = 1; bit < onto && parent < 0; bit *= 2) {
        int partner = nbc_unfold(&fold, fold.virtual ^ bit);
        if ((fold.virtual ^ at_root.virtual) & bit)
            parent = partner;
        else
            combine(&c, partner, partner < shape->rank, 2 * bit == onto);
    }
    deliver(&c, parent);
}

/* Reduces the whole vector along a k-nomial tree on the ranks in cyclic order from the root, the
 * nearest child first; in rank order, by pairs. */
static void along_knomial(struct nbc_sched *s, const struct nbc_shape *shape, int k)
{
    struct nbc_knomial tree;
    int root = shape->root, size = shape->size;
    struct nbc_acc input = nbc_acc_input(shape);
    if (!shape->commutative) {
        along_pairs(s, shape);
        return;
    }
    if (!nbc_has_bytes(shape, input.at))
        return;
    nbc_knomial(nbc_relative(shape->rank, root, size), size, k, &tree);
    struct nbc_room room = nbc_room_new(shape, input.at, tree.nchild, NBC_ROOM_LIMIT / 2);
    struct climb c = {s, shape, &room, input, nbc_recv_block(shape, 0), false};
    for (int i = tree.nchild - 1; i >= 0; i--)
        combine(&c, nbc_absolute(tree.child[i], root, size), false, i == tree.nchild - 1);
    deliver(&c, tree.parent < 0 ? -1 : nbc_absolute(tree.parent, root, size));
}

/* Binomial tree. A rank combines its vector with those of its children, the nearest first, as they
 * are ready first, and sends the result to its parent. Commutative operators use the tree on the
 * ranks in cyclic order from the root. Others, and where the order of a tree is required, use that
 * of along_pairs.
 *
 *   root 0:  0 ← 1, 2    2 ← 3
 *   root 2, in order:  0 ← 1    2 ← 3, 0
 *
 * Cost: ⌈log₂P⌉ (α + nβ + nγ). Temporary: one vector per child up to 128 KiB in all, else 4. For
 * small vectors. Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations
 * in MPICH", 2005. */
NBC_VARIANT(reduce_binomial, along_knomial, 2)

/* 4-nomial tree: as binomial, but with up to three children per level and half the depth.
 *
 *   0 ← 1, 2, 3
 *
 * Cost: ⌈log₄P⌉ (α + 2o + 3nβ + 3nγ), o the time a processor is busy with a message. Temporary: as
 * binomial. For the smallest vectors where o is much less than α. Bar-Noy, Kipnis, "Designing
 * broadcasting algorithms in the postal model for message-passing systems", 1992, in reverse. */
NBC_VARIANT(reduce_knomial4, along_knomial, 4)

/* Bine tree (nbc_knomial): the binomial tree with nearer partners. A subtree extends to both sides
 * of its head, so the operator must be commutative.
 *
 *   8 ranks:  0 ← 1, 7, 3    3 ← 2, 4    7 ← 6    4 ← 5
 *
 * Cost: ⌈log₂P⌉ (α + nβ + nγ). Temporary: as binomial. For small vectors on ranks in groups, as the
 * broadcast. De Sensi et al., "Bine trees: enhancing collective operations by optimizing
 * communication locality", 2025. */
NBC_VARIANT(reduce_bine, along_knomial, NBC_BINE)

/* Linear: every rank sends its vector to the root, which combines them in descending cyclic order
 * from the rank below; in rank order it begins with rank 0.
 *
 *   0 ← 1, 2, 3
 *
 * Cost: α + (P − 2) o + (P − 1) (nβ + nγ). Temporary at the root: P − 1 vectors up to 128 KiB in
 * all, else 8. For a few ranks: only the root waits for others. */
void nbc_reduce_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_acc acc = nbc_acc_input(shape);
    if (!nbc_has_bytes(shape, acc.at))
        return;
    if (!here(shape)) {
        nbc_send(s, acc.at, shape->root, NBC_NONE);
        return;
    }
    struct nbc_room room = nbc_room_new(shape, acc.at, shape->size, NBC_ROOM_LIMIT);
    nbc_reduce_from_all(s, shape, &room, &acc, nbc_recv_block(shape, 0));
}

enum { MAX_PIPELINE_CHILDREN = 2 };

/* A rank's place in a pipeline, and its messages. */
struct pipe {
    int parent; /* −1: the root */
    int nchild, child[MAX_PIPELINE_CHILDREN];
    bool below[MAX_PIPELINE_CHILDREN]; /* the child's data are of lower ranks */
    struct nbc_window in[MAX_PIPELINE_CHILDREN], out;
};

static void pipe_add(struct pipe *p, int child, bool below)
{
    p->child[p->nchild] = child;
    p->below[p->nchild++] = below;
}

/* Moves the vector in pieces, which alternate between the pipes: each is combined with this rank's
 * and sent on while the next one is in flight, and while it is in the cache. hops: from the
 * farthest rank to the root. */
static void pipelined(struct nbc_sched *s, const struct nbc_shape *shape, struct pipe *pipes,
                      int npipes, int hops)
{
    struct nbc_ref input = nbc_send_block(shape, 0);
    int pieces = nbc_pieces(shape, input, input.count, hops);
    if (!nbc_has_bytes(shape, input))
        return;
    struct nbc_room room =
        nbc_room_new(shape, nbc_ref_split(shape, input, pieces, 0), 2LL * pieces, NBC_ROOM_LIMIT);
    for (int g = 0; g < pieces; g++) {
        struct pipe *p = &pipes[g % npipes];
        struct climb c = {s, shape, &room, nbc_acc_input(shape), nbc_recv_block(shape, 0), false};
        c.acc.at = nbc_ref_split(shape, input, pieces, g);
        if (here(shape))
            c.result = nbc_ref_split(shape, c.result, pieces, g);
        for (int i = 0; i < p->nchild; i++) {
            bool stays = i == 0 || p->below[i];
            nbc_window_add(s, &p->in[i], combine(&c, p->child[i], p->below[i], stays));
        }
        nbc_id sent = deliver(&c, p->parent);
        if (sent != NBC_NONE)
            nbc_window_add(s, &p->out, sent);
    }
}

/* Pipelined chain: the vector moves from the far end to the root in pieces. A rank combines each
 * piece with its own and sends it on while the next one is in flight, and while it is in the cache.
 * For non-commutative operators two chains end at the root, one from each side.
 *
 *   root 0:  3 → 2 → 1 → 0
 *   root 2, in order:  0 → 1 → 2 ← 3
 *
 * Cost, S pieces: (P − 2 + S) (α + (n/S)(β + γ)), so the time of a long vector hardly depends on P;
 * in order twice that for a root in the middle. Temporary: 8 pieces. For large vectors. Chan,
 * Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and
 * experience", 2007. */
void nbc_reduce_chain(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank, root = shape->root, size = shape->size;
    int next = (rank + 1) % size, previous = nbc_relative(rank, 1, size);
    struct pipe pipe = {.parent = previous};
    if (rank == root)
        pipe.parent = -1;
    else if (!shape->commutative && rank < root)
        pipe.parent = next;
    /* Commutative: in cyclic order, all data comes from above. */
    if (shape->commutative ? next != root : rank >= root && rank < size - 1)
        pipe_add(&pipe, next, false);
    if (!shape->commutative && rank <= root && rank > 0)
        pipe_add(&pipe, previous, true);
    pipelined(s, shape, &pipe, 1, size - 2);
}

/* Two trees (nbc_two_tree) on the ranks other than the root. Pieces alternate between the trees. A
 * rank that has children in one tree has none in the other, so it receives no more than it sends.
 *
 *   first    2 ← 1, 3    0 ← 2
 *   second   3 ← 2, 1    0 ← 3
 *
 * Cost, S pieces: (2 log₂P + S) (α + (n/S)(β + γ)), commutative operators. Temporary: 8 pieces.
 * For large vectors on many ranks. Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth
 * broadcast, reduction and scan", 2009. */
void nbc_reduce_two_tree(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int root = shape->root, size = shape->size, me = nbc_relative(shape->rank, root, size);
    struct pipe pipes[NBC_TREES] = {0};
    for (int t = 0; t < NBC_TREES; t++) {
        struct nbc_branch at = nbc_two_tree_below(me, size, t);
        pipes[t].parent = me > 0 ? nbc_absolute(at.parent, root, size) : -1;
        for (int i = 0; i < at.nchild; i++)
            pipe_add(&pipes[t], nbc_absolute(at.child[i], root, size), false);
    }
    pipelined(s, shape, pipes, NBC_TREES, 2 * nbc_log2_ceil(size));
}

/* Reduce-scatter by halving, then gather. */
static void halve_and_gather(struct nbc_sched *s, const struct nbc_shape *shape, bool bine)
{
    struct nbc_fold fold =
        nbc_fold_onto(shape->rank, shape->size, nbc_pow2_floor(shape->size), shape->root);
    struct nbc_fold at_root =
        nbc_fold_onto(shape->root, shape->size, nbc_pow2_floor(shape->size), shape->root);
    fold.bine = bine;
    struct nbc_acc acc = nbc_acc_input(shape);
    if (!nbc_has_bytes(shape, acc.at))
        return;
    if (fold.virtual < 0) {
        nbc_send(s, acc.at, fold.partner, NBC_NONE);
        return;
    }
    struct nbc_halving h = {.shape = shape, .fold = &fold};
    if (here(shape))
        h.home = nbc_recv_block(shape, 0);
    else
        nbc_halving_home(s, &h, acc.at);
    if (fold.takes)
        nbc_take_over(s, shape, &fold, &acc, acc.writable ? acc.at : nbc_temp_like(s, acc.at),
                      NULL);
    nbc_halve(s, &h, &acc);
    nbc_gather_halves(s, &h, &acc, at_root.virtual);
}

/* Rabenseifner's algorithm: reduce-scatter by vector halving with distance doubling, then gather.
 * Partial results cover contiguous ranges of ranks, so the order of ranks is kept. Ranks beyond a
 * power of two fold onto a neighbor; the root does not.
 *
 *   rank   0         1         2         3          parts AB are the lower half, CD the upper
 *   k = 0  0 ↔ 1 CD, AB        2 ↔ 3 CD, AB
 *   k = 1  0 ↔ 2 B, A   1 ↔ 3 D, C                  then 0 has A, 1 has C, 2 has B, 3 has D
 *          0 ← 2 B      1 ← 3 D
 *          0 ← 1 CD                                 root 0
 *
 * Cost: 2 log₂P α + (P − 1)/P (2nβ + nγ), with α + nβ + nγ more when P is not a power of two.
 * Temporary: one vector, half a vector at the root; half a vector more for non-commutative
 * operators, and one or two for a rank that another folds onto. For large vectors on many ranks.
 * Rabenseifner, "Optimization of collective reduction operations", 2004. */
NBC_VARIANT(reduce_rabenseifner, halve_and_gather, false)

/* Bine butterfly: as Rabenseifner's algorithm, with nearer partners, for commutative operators.
 *
 *   8 ranks, k = 0   0 ↔ 1    2 ↔ 3    4 ↔ 5    6 ↔ 7    halves
 *            k = 1   0 ↔ 7    1 ↔ 2    3 ↔ 4    5 ↔ 6    quarters
 *            k = 2   0 ↔ 3    1 ↔ 6    2 ↔ 5    4 ↔ 7    eighths
 *   root 0           0 ← 3    1 ← 6    2 ← 5    7 ← 4
 *                    0 ← 7    1 ← 2
 *                    0 ← 1
 *
 * Cost: as Rabenseifner's. For large vectors of ranks in groups with few links between
 * them, if the groups do not begin at multiples of a power of two (doc/scaling.md). No built-in
 * rule selects it. De Sensi et al., "Bine trees: enhancing collective operations by optimizing
 * communication locality", 2025. */
NBC_VARIANT(reduce_bine_halving, halve_and_gather, true)
