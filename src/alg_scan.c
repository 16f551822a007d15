/* SPDX-License-Identifier: MIT */
#include "bytes.h"
#include "reduction.h"
#include "select.h"

static bool exclusive(const struct nbc_shape *shape)
{
    return shape->coll == NBC_EXSCAN;
}

/* For scan. `place` is free, or where acc is. acc = theirs op acc, in `place` where that is another
 * one; the first time the order may be any that saves the copy. Returns the receive. */
static nbc_id scan_in(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                      struct nbc_acc *acc, struct nbc_ref place, int peer)
{
    if (!shape->commutative || acc->ours)
        return nbc_prepend_rank(s, room, acc, place, peer);
    nbc_id heard = nbc_recv(s, place, peer, NBC_NONE);
    nbc_append(s, acc, place, heard);
    return heard;
}

/* To the rank d above. Only what the same round overwrites must be known to have been sent: a rank
 * that hears nothing in a round hears nothing more. */
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
    for (int64_t d = 1; d < shape->size; d *= 2) {
        if (shape->rank + d < shape->size)
            send_up(s, shape, &acc, d);
        if (shape->rank >= d)
            scan_in(s, shape, room, &acc, result, (int)(shape->rank - d));
    }
    nbc_copy(s, result, acc.at, acc.ready);
}

/* Two partial results: `sum` covers this rank and is what others need, `result` ends below it. */
static void exscan_doubling(struct nbc_sched *s, const struct nbc_shape *shape,
                            struct nbc_room *room)
{
    int rank = shape->rank, size = shape->size;
    struct nbc_acc sum = nbc_acc_input(shape);
    struct nbc_acc result = {nbc_recv_block(shape, 0), NBC_NONE, NBC_NONE, true};
    sum.ours = false; /* in place, that is where the result goes */
    if (shape->in_place && rank > 0 && rank < size - 1)
        nbc_own(s, &sum, nbc_temp_like(s, result.at));
    for (int64_t d = 1; d < size; d *= 2) {
        if (rank + d < size)
            send_up(s, shape, &sum, d);
        if (rank < d)
            continue;
        nbc_id heard;
        struct nbc_ref theirs = result.at;
        if (d == 1)
            heard = nbc_recv(s, theirs, rank - 1, shape->in_place ? sum.ready : NBC_NONE);
        else
            theirs = nbc_room_recv(s, room, result.at.count, (int)(rank - d), &heard);
        nbc_id used = NBC_NONE;
        if (rank + 2 * d < size) {
            if (sum.ours)
                nbc_prepend(s, &sum, theirs, heard);
            else
                nbc_prepend_to(s, &sum, nbc_temp_like(s, result.at), theirs, heard);
            used = sum.ready;
        }
        if (d == 1) {
            result.ready = heard;
            result.read = used;
            continue;
        }
        nbc_prepend(s, &result, theirs, heard);
        nbc_room_give(room, theirs, nbc_join(s, used, result.ready));
    }
}

/* Recursive doubling. In round k every rank sends the rank 2^k above what it has of the ranks up to
 * itself, and puts what comes from 2^k below in front of its own. exscan keeps a second partial
 * result, without its own vector.
 *
 *   rank   0       1       2       3
 *   k = 0  → 1     → 2     → 3
 *   k = 1  → 2     → 3
 *
 * Cost: ⌈log₂P⌉ (α + nβ + nγ), any P; exscan up to twice the γ, but not where another rank waits
 * for it. Temporary: ⌈log₂P⌉ vectors as long as these are 128 KiB together, else two; exscan one
 * more. For small vectors. Hillis, Steele, "Data parallel algorithms", 1986. */
struct nbc_sched *nbc_scan_recursive_doubling(const struct nbc_shape *shape)
{
    int rounds = nbc_log2_ceil(shape->size);
    struct nbc_sched *s = nbc_sched_new(shape, 4 * rounds + 2);
    struct nbc_ref input = nbc_send_block(shape, 0);
    if (!s || nbc_ref_bytes(shape, input) == 0)
        return nbc_sched_finish(s);
    struct nbc_room room = nbc_room_new(shape, input, rounds, 2);
    if (exclusive(shape))
        exscan_doubling(s, shape, &room);
    else
        scan_doubling(s, shape, &room);
    return nbc_sched_finish(s);
}

/* exscan: the result of the rank below comes straight to its place and serves all further ones. */
static void scan_all(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room)
{
    int rank = shape->rank, size = shape->size;
    struct nbc_acc acc = nbc_acc_input(shape);
    struct nbc_ref result = nbc_recv_block(shape, 0);
    bool last = rank == size - 1;
    if (exclusive(shape) && shape->in_place && rank > 0 && !last)
        nbc_own(s, &acc, nbc_temp_like(s, result));
    for (int peer = rank + 1; peer < size; peer++)
        nbc_acc_send(s, &acc, peer);
    if (rank == 0) {
        if (!exclusive(shape))
            nbc_copy(s, result, acc.at, NBC_NONE);
        return;
    }
    if (exclusive(shape)) {
        nbc_id copied = shape->in_place ? acc.ready : NBC_NONE;
        acc = (struct nbc_acc){result, nbc_recv(s, result, rank - 1, copied), NBC_NONE, true};
    } else {
        scan_in(s, shape, room, &acc, result, rank - 1);
    }
    nbc_prepend_ranks(s, shape, room, &acc, result, rank - 2, rank - 1);
}

/* One round: every rank sends its vector to all above and reduces all that come from below.
 *
 *   rank   0            1         2      3
 *          → 1, 2, 3    → 2, 3    → 3
 *
 * Cost: α + (P − 2) o + (P − 1) (nβ + nγ). Temporary: one vector a rank below as long as these
 * are 128 KiB together, else 8. For the smallest vectors on a few ranks, above all where ranks
 * share processors and every round is a change of process. */
struct nbc_sched *nbc_scan_one_round(const struct nbc_shape *shape)
{
    struct nbc_sched *s = nbc_sched_new(shape, 3 * shape->size);
    struct nbc_ref input = nbc_send_block(shape, 0);
    if (!s || nbc_ref_bytes(shape, input) == 0)
        return nbc_sched_finish(s);
    struct nbc_room room = nbc_room_new(shape, input, shape->size, NBC_ROOM_LIMIT);
    scan_all(s, shape, &room);
    return nbc_sched_finish(s);
}

/* A rank's part in a chain of pieces. */
struct chain {
    struct nbc_sched *s;
    const struct nbc_shape *shape;
    struct nbc_room room;
    struct nbc_window in, out;
};

static nbc_id pass_on(struct chain *c, const struct nbc_acc *acc)
{
    nbc_id sent = nbc_send(c->s, acc->at, c->shape->rank + 1, acc->ready);
    nbc_window_add(c->s, &c->out, sent);
    return sent;
}

static void scan_piece(struct chain *c, struct nbc_acc *acc, struct nbc_ref result)
{
    int rank = c->shape->rank;
    if (rank > 0)
        nbc_window_add(c->s, &c->in, scan_in(c->s, c->shape, &c->room, acc, result, rank - 1));
    else
        nbc_copy(c->s, result, acc->at, NBC_NONE);
    if (rank < c->shape->size - 1)
        pass_on(c, acc);
}

/* What comes is the result; with this rank's piece at its end it goes on. In place that piece must
 * make way first. */
static void exscan_piece(struct chain *c, struct nbc_acc *acc, struct nbc_ref result)
{
    int rank = c->shape->rank;
    bool last = rank == c->shape->size - 1, late = c->shape->in_place && !last;
    if (rank == 0) {
        if (!last)
            pass_on(c, acc);
        return;
    }
    nbc_id free = NBC_NONE;
    struct nbc_ref place = result;
    if (!last)
        place = nbc_room_take(c->s, &c->room, result.count, &free);
    if (late) {
        acc->ready = free;
        nbc_own(c->s, acc, place);
    }
    nbc_id heard = nbc_recv(c->s, result, rank - 1, late ? acc->ready : NBC_NONE);
    nbc_window_add(c->s, &c->in, heard);
    if (last)
        return;
    if (late) {
        nbc_prepend(c->s, acc, result, heard);
    } else {
        nbc_prepend_to(c->s, acc, place, result, heard);
        nbc_after(c->s, acc->ready, free);
    }
    nbc_room_give(&c->room, place, pass_on(c, acc));
}

/* Pipelined chain: pieces of the result go up from rank to rank; each adds its own and passes it on
 * while the next piece is on its way.
 *
 *   0 → 1 → 2 → 3
 *
 * Cost, S pieces: (P − 2 + S) (α + (n/S)(β + γ)): the time of a long vector hardly depends on P.
 * Temporary: 8 pieces. For large vectors. Sanders, Träff, "Parallel prefix (scan) algorithms for
 * MPI", 2006. */
struct nbc_sched *nbc_scan_chain(const struct nbc_shape *shape)
{
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    int pieces = nbc_pipeline_pieces(shape, input, shape->size - 2);
    struct chain c = {.s = nbc_sched_new(shape, 4 * pieces), .shape = shape};
    if (!c.s || nbc_ref_bytes(shape, input) == 0)
        return nbc_sched_finish(c.s);
    c.room = nbc_room_new(shape, nbc_ref_split(shape, input, pieces, 0), pieces, NBC_ROOM_LIMIT);
    for (int g = 0; g < pieces; g++) {
        struct nbc_acc acc = nbc_acc_input(shape);
        acc.at = nbc_ref_split(shape, input, pieces, g);
        struct nbc_ref to = nbc_ref_split(shape, result, pieces, g);
        if (exclusive(shape))
            exscan_piece(&c, &acc, to);
        else
            scan_piece(&c, &acc, to);
    }
    return nbc_sched_finish(c.s);
}
