/* SPDX-License-Identifier: MIT */
/* Scan and exscan: each rank receives the combined vectors of the ranks up to it, or below it. */
#include "bytes.h"
#include "reduction.h"
#include "select.h"

static bool exclusive(const struct nbc_shape *shape)
{
    return shape->coll == NBC_EXSCAN;
}

/* Receives a vector of lower ranks and prepends it to acc; for a commutative operator, where that
 * saves a copy, acc is appended to it. If acc was not writable, it moves to `place`. Returns the
 * receive. */
static nbc_id scan_in(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                      struct nbc_acc *acc, struct nbc_ref place, int peer)
{
    if (!shape->commutative || acc->writable)
        return nbc_prepend_rank(s, room, acc, place, peer);
    nbc_id received = nbc_recv(s, place, peer, NBC_NONE);
    nbc_append(s, acc, place, received);
    return received;
}

/* Sends to the rank d above. Only a rank that receives in this round overwrites acc, and so must
 * wait for the send: a rank that receives nothing in a round receives nothing later either. */
static void send_up(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_acc *acc,
                    int64_t d)
{
    int peer = (int)(shape->rank + d);
    if (shape->rank >= d)
        nbc_acc_send(s, acc, peer);
    else
        nbc_send(s, acc->at, peer, acc->ready);
}

static void scan_doubling(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room)
{
    struct nbc_acc acc = nbc_acc_input(shape);
    struct nbc_ref result = nbc_recv_block(shape, 0);
    for (int64_t d = 1; d < shape->size; d *= 2) { /* mutants: <= for <: a round of nothing */
        if (shape->rank + d < shape->size)
            send_up(s, shape, &acc, d);
        if (shape->rank >= d)
            scan_in(s, shape, room, &acc, result, (int)(shape->rank - d));
    }
    /* mutants: drop a dependency of a message or copy: nothing was received to wait for */
    nbc_copy(s, result, acc.at, acc.ready);
}

/* Two partial results: `sum` includes this rank and is sent to others; `result` ends at the rank
 * below. */
static void exscan_doubling(struct nbc_sched *s, const struct nbc_shape *shape,
                            struct nbc_room *room)
{
    int rank = shape->rank, size = shape->size;
    struct nbc_acc sum = nbc_acc_input(shape);
    struct nbc_acc result = {nbc_recv_block(shape, 0), NBC_NONE, NBC_NONE, true};
    sum.writable = false; /* in place, the result goes there */
    if (shape->in_place && rank > 0 && rank < size - 1)
        nbc_own(s, &sum, nbc_temp_like(s, result.at));
    for (int64_t d = 1; d < size; d *= 2) { /* mutants: <= for <: a round of nothing */
        if (rank + d < size)
            send_up(s, shape, &sum, d);
        if (rank < d)
            continue;
        nbc_id received;
        struct nbc_ref theirs = result.at;
        if (d == 1)
            received = nbc_recv(s, theirs, rank - 1, shape->in_place ? sum.ready : NBC_NONE);
        else
            theirs = nbc_room_recv(s, room, result.at.count, (int)(rank - d), &received);
        nbc_id used = NBC_NONE;
        if (rank + 2 * d < size) {
            if (sum.writable)
                nbc_prepend(s, &sum, theirs, received);
            else
                nbc_prepend_to(s, &sum, nbc_temp_like(s, result.at), theirs, received);
            used = sum.ready;
        }
        if (d == 1) {
            result.ready = received;
            result.read = used;
            continue;
        }
        nbc_prepend(s, &result, theirs, received);
        nbc_room_give(room, theirs, nbc_join(s, used, result.ready));
    }
}

/* Recursive doubling. In round k every rank sends its partial result to the rank 2^k above and
 * prepends the one of the rank 2^k below. exscan keeps a second partial result, without the rank's
 * own vector.
 *
 *   rank   0       1       2       3
 *   k = 0  → 1     → 2     → 3
 *   k = 1  → 2     → 3
 *
 * Cost: ⌈log₂P⌉ (α + nβ + nγ), any P; exscan up to twice the γ, but not on the longest path.
 * Temporary: ⌈log₂P⌉ vectors up to 128 KiB in all, else two; exscan one more. For small vectors.
 * Hillis, Steele, "Data parallel algorithms", 1986. */
void nbc_scan_recursive_doubling(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rounds = nbc_log2_ceil(shape->size);
    struct nbc_ref input = nbc_send_block(shape, 0);
    if (!nbc_has_bytes(shape, input))
        return;
    struct nbc_room room = nbc_room_new(shape, input, rounds, 2);
    if (exclusive(shape))
        exscan_doubling(s, shape, &room);
    else
        scan_doubling(s, shape, &room);
}

/* One round: every rank sends its vector to all higher ranks and reduces those of all lower ranks,
 * beginning with its own or, where the order of ranks is required, with rank 0's.
 *
 *   rank   0            1         2      3
 *          → 1, 2, 3    → 2, 3    → 3
 *
 * Cost: α + (P − 2) o + (P − 1) (nβ + nγ). Temporary: one vector per lower rank up to 128 KiB in
 * all, else 8. For the smallest vectors on a few ranks, in particular on ranks that share
 * processors, where every round is a context switch. */
void nbc_scan_one_round(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank, size = shape->size;
    struct nbc_acc acc = nbc_acc_input(shape);
    struct nbc_ref result = nbc_recv_block(shape, 0);
    if (!nbc_has_bytes(shape, result))
        return;
    struct nbc_room room = nbc_room_new(shape, result, size, NBC_ROOM_LIMIT);
    if (exclusive(shape) && shape->in_place && rank > 0 && rank < size - 1)
        nbc_own(s, &acc, nbc_temp_like(s, result));
    for (int peer = rank + 1; peer < size; peer++)
        nbc_acc_send(s, &acc, peer);
    if (rank == 0) {
        if (!exclusive(shape))
            nbc_copy(s, result, acc.at, NBC_NONE);
        return;
    }
    nbc_id copied = shape->in_place ? acc.ready : NBC_NONE;
    if (shape->order == NBC_ORDER_RANKS) {
        nbc_fold_ranks(s, shape, &room, &acc, result, copied, exclusive(shape) ? rank : rank + 1);
        return;
    }
    if (exclusive(shape)) /* the others are prepended to the vector of the rank below */
        acc = (struct nbc_acc){result, nbc_recv(s, result, rank - 1, copied), NBC_NONE, true};
    else
        scan_in(s, shape, &room, &acc, result, rank - 1);
    for (int peer = rank - 2; peer >= 0; peer--)
        nbc_prepend_rank(s, &room, &acc, result, peer);
}

/* The streams of pieces that a rank sends and receives in one tree. */
enum stream { FROM_BELOW, FROM_ABOVE, FROM_PARENT, TO_BELOW, TO_ABOVE, TO_PARENT, STREAMS };

/* The trees of a pipeline, between which the pieces alternate. */
struct trees {
    struct nbc_sched *s;
    const struct nbc_shape *shape;
    struct nbc_room room;
    int ntrees;
    struct nbc_inner at[NBC_TREES];
    struct nbc_window window[NBC_TREES][STREAMS];
};

/* A piece that moves up and down one tree. */
struct piece {
    struct nbc_inner at;
    struct nbc_window *window; /* by stream */
    struct nbc_acc acc;        /* partial result with this rank; of a scan, in the end its result */
    struct nbc_acc before;     /* exscan: that of the lower ranks only, in the result's place */
};

static nbc_id send_piece(struct trees *w, struct piece *p, enum stream to, struct nbc_ref what,
                         nbc_id ready)
{
    int peer = to == TO_BELOW ? p->at.below : to == TO_ABOVE ? p->at.above : p->at.parent;
    nbc_id sent = nbc_send(w->s, what, peer, ready);
    nbc_window_add(w->s, &p->window[to], sent);
    return sent;
}

/* Sends the subtree's partial result to the parent. Returns an id that is done when acc is not read
 * any more. */
static nbc_id send_subtree(struct trees *w, struct piece *p, const struct nbc_acc *acc)
{
    if (p->at.above < 0) /* mutants: <= for <: rank 0 is above nobody */
        return send_piece(w, p, TO_PARENT, acc->at, acc->ready);
    struct nbc_acc all = *acc;
    nbc_id received;
    struct nbc_ref theirs = nbc_room_recv(w->s, &w->room, acc->at.count, p->at.above, &received);
    nbc_window_add(w->s, &p->window[FROM_ABOVE], received);
    nbc_append(w->s, &all, theirs, received);
    nbc_room_give(&w->room, theirs, send_piece(w, p, TO_PARENT, all.at, all.ready));
    return all.ready;
}

/* Receives the partial result of all ranks below the subtree: sends it to the lower child, and
 * prepends it to acc. */
static void take_lower(struct trees *w, struct piece *p, struct nbc_acc *acc)
{
    nbc_id received;
    struct nbc_ref theirs = nbc_room_recv(w->s, &w->room, acc->at.count, p->at.parent, &received);
    nbc_window_add(w->s, &p->window[FROM_PARENT], received);
    nbc_id sent = send_piece(w, p, TO_BELOW, theirs, received);
    nbc_prepend(w->s, acc, theirs, received);
    nbc_room_give(&w->room, theirs, nbc_join(w->s, sent, acc->ready));
}

static void scan_up(struct trees *w, struct piece *p)
{
    struct nbc_ref result = p->before.at;
    if (p->at.below >= 0)
        nbc_window_add(w->s, &p->window[FROM_BELOW],
                       scan_in(w->s, w->shape, &w->room, &p->acc, result, p->at.below));
    if (p->at.high)
        p->acc.read = send_subtree(w, p, &p->acc);
}

static void scan_down(struct trees *w, struct piece *p)
{
    struct nbc_ref result = p->before.at;
    if (p->at.low && p->at.below >= 0)
        take_lower(w, p, &p->acc);
    else if (p->at.low)
        nbc_window_add(w->s, &p->window[FROM_PARENT],
                       scan_in(w->s, w->shape, &w->room, &p->acc, result, p->at.parent));
    else
        nbc_copy(w->s, result, p->acc.at, NBC_NONE);
    if (p->at.above >= 0) /* mutants: > for >=: rank 0 is above nobody */
        send_piece(w, p, TO_ABOVE, p->acc.at, p->acc.ready);
}

/* Returns the partial result of the lower ranks with this rank's piece appended, in temporary
 * space. */
static struct nbc_acc with_own(struct trees *w, struct piece *p)
{
    nbc_id free;
    struct nbc_acc sum = p->acc;
    struct nbc_ref place = nbc_room_take(w->s, &w->room, sum.at.count, &free);
    nbc_prepend_to(w->s, &sum, place, p->before.at, p->before.ready);
    nbc_after(w->s, sum.ready, free);
    p->before.read = sum.ready;
    return sum;
}

static void exscan_up(struct trees *w, struct piece *p)
{
    struct nbc_acc sum = p->acc;
    bool below = p->at.below >= 0;
    if (below) {
        p->before.ready = nbc_recv(w->s, p->before.at, p->at.below, p->before.ready);
        nbc_window_add(w->s, &p->window[FROM_BELOW], p->before.ready);
    }
    if (!p->at.high)
        return;
    if (below)
        sum = with_own(w, p);
    if (below && w->ntrees == 1)
        nbc_room_give(&w->room, p->acc.at, sum.ready);
    nbc_id used = send_subtree(w, p, &sum);
    if (below)
        nbc_room_give(&w->room, sum.at, used);
}

static void exscan_down(struct trees *w, struct piece *p)
{
    bool below = p->at.below >= 0;
    if (p->at.low && below) {
        take_lower(w, p, &p->before);
    } else if (p->at.low) {
        p->before.ready = nbc_recv(w->s, p->before.at, p->at.parent, p->before.ready);
        nbc_window_add(w->s, &p->window[FROM_PARENT], p->before.ready);
    }
    if (p->at.above < 0) /* mutants: <= for <: rank 0 is above nobody */
        return;
    if (!p->at.low && !below) {
        send_piece(w, p, TO_ABOVE, p->acc.at, p->acc.ready);
        return;
    }
    struct nbc_acc sum = with_own(w, p);
    nbc_room_give(&w->room, sum.at, send_piece(w, p, TO_ABOVE, sum.at, sum.ready));
}

/* copies: in place the result of an exscan goes to the place of the input, which is therefore
 * copied to temporary space: in a chain for a short time. */
static struct piece piece_of(struct trees *w, int g, int pieces, bool copies)
{
    const struct nbc_shape *shape = w->shape;
    struct piece p = {.at = w->at[g % w->ntrees], .window = w->window[g % w->ntrees]};
    struct nbc_ref result = nbc_ref_split(shape, nbc_recv_block(shape, 0), pieces, g);
    p.acc = nbc_acc_input(shape);
    p.acc.at = nbc_ref_split(shape, p.acc.at, pieces, g);
    p.before = (struct nbc_acc){result, NBC_NONE, NBC_NONE, true};
    if (copies) {
        struct nbc_ref place = w->ntrees > 1
                                   ? nbc_temp_like(w->s, p.acc.at)
                                   : nbc_room_take(w->s, &w->room, p.acc.at.count, &p.acc.ready);
        nbc_own(w->s, &p.acc, place);
        p.before.ready = p.acc.ready;
    }
    return p;
}

/* Moves the vector in pieces. hops: of a piece, up and down. lag: so many pieces go up before the
 * first one comes down, about as many as are in flight. Two ranks that are neighbors in both trees
 * send each other pieces up and pieces down, which must not wait for each other. */
static void along_trees(struct trees *w, int hops, int lag)
{
    const struct nbc_shape *shape = w->shape;
    bool inclusive = !exclusive(shape), inner = shape->rank > 0 && shape->rank < shape->size - 1;
    struct nbc_ref input = nbc_send_block(shape, 0);
    int pieces = nbc_pieces(shape, input, input.count, hops);
    struct piece *piece = nbc_scratch(w->s, (size_t)pieces, sizeof *piece);
    if (!piece || !nbc_has_bytes(shape, input))
        return;
    w->room =
        nbc_room_new(shape, nbc_ref_split(shape, input, pieces, 0), 3LL * pieces, NBC_ROOM_LIMIT);
    lag = lag < pieces ? lag : pieces;
    for (int g = 0; g < pieces + lag; g++) {
        if (g < pieces) {
            piece[g] = piece_of(w, g, pieces, !inclusive && inner && shape->in_place);
            (inclusive ? scan_up : exscan_up)(w, &piece[g]);
        }
        if (g >= lag)
            (inclusive ? scan_down : exscan_down)(w, &piece[g - lag]);
    }
}

/* Pipelined chain: pieces of the result move from rank to rank. Each rank reduces its piece into
 * the result and sends it on while the next one is in flight. A tree in which every rank has the
 * one below it as its only child.
 *
 *   0 → 1 → 2 → 3
 *
 * Cost, S pieces: (P − 2 + S) (α + (n/S)(β + γ)): the time of a long vector hardly depends on P.
 * Temporary: 8 pieces. For large vectors. Sanders, Träff, "Parallel prefix (scan) algorithms for
 * MPI", 2006. */
void nbc_scan_chain(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank, size = shape->size;
    struct trees w = {.s = s, .shape = shape, .ntrees = 1};
    w.at[0] = (struct nbc_inner){
        .parent = rank + 1, .below = rank - 1, .above = -1, .high = rank < size - 1};
    along_trees(&w, size - 2, 0);
}

/* Two trees (nbc_two_tree_inner) in which every subtree is a contiguous range of ranks. Pieces
 * alternate between the trees. Up: a rank prepends the partial result of its lower child to its
 * piece, appends that of its upper child, and sends the result to its parent. Down: a rank receives
 * the partial result of all ranks below its subtree, sends it to its lower child, prepends it to
 * its piece, and sends that to its upper child. A rank that has children in one tree has none in
 * the other.
 *
 *   first    up  1 ← 0, 2   3 ← 1     down  1 → 2
 *   second   up  2 ← 1                down  0 → 2   2 → 1, 3
 *
 * Cost, S pieces: (4 log₂P + S) (α + 2 (n/S)(β + γ)). Temporary: 8 pieces; exscan in place one
 * vector more. For large vectors on many ranks. Sanders, Speck, Träff, "Two-tree algorithms for
 * full bandwidth broadcast, reduction and scan", 2009. */
void nbc_scan_two_tree(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int hops = 4 * nbc_log2_ceil(shape->size);
    struct trees w = {.s = s, .shape = shape, .ntrees = NBC_TREES};
    for (int t = 0; t < NBC_TREES; t++)
        w.at[t] = nbc_two_tree_inner(shape->rank, shape->size, t);
    along_trees(&w, hops, hops);
}
