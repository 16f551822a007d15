/* SPDX-License-Identifier: MIT */
/* Allreduce and reduce in two rounds, of which the first reduces parts of the vector on all ranks.
 */
#include "reduction.h"
#include "select.h"

/* A rank's view of the two rounds. */
struct rounds {
    struct nbc_sched *s;
    const struct nbc_shape *shape;
    int pieces; /* of the vector, which follow one another; each has a part for every rank */
    struct nbc_room room;
    struct nbc_ref result; /* the vector; a rank that has no result uses its own part only */
    bool to_all;           /* all ranks get the result, else only the root */
};

static bool gets_result(const struct rounds *r)
{
    return r->to_all || r->shape->rank == r->shape->root;
}

/* Part i of piece g of a vector. */
static struct nbc_ref cell_of(const struct rounds *r, struct nbc_ref vector, int g, int i)
{
    struct nbc_ref piece = nbc_ref_split(r->shape, vector, r->pieces, g);
    return nbc_ref_split(r->shape, piece, r->shape->size, i);
}

/* The first round. Sets sent[i] to the send of part i. Short vectors have fewer elements than there
 * are parts. */
static void reduce_piece(struct rounds *r, int g, struct nbc_acc *acc, nbc_id *sent)
{
    const struct nbc_shape *shape = r->shape;
    struct nbc_ref input = nbc_send_block(shape, 0);
    for (int i = 1; i < shape->size; i++) {
        int peer = (shape->rank + i) % shape->size;
        struct nbc_ref cell = cell_of(r, input, g, peer);
        sent[peer] = nbc_has_bytes(shape, cell) ? nbc_send(r->s, cell, peer, NBC_NONE) : NBC_NONE;
    }
    *acc = nbc_acc_input(shape);
    acc->at = cell_of(r, input, g, shape->rank);
    if (!nbc_has_bytes(shape, acc->at))
        return;
    struct nbc_ref place = cell_of(r, r->result, g, shape->rank);
    if (!gets_result(r))
        place = nbc_temp_like(r->s, place);
    nbc_reduce_from_all(r->s, shape, &r->room, acc, place);
}

/* The second round. */
static void spread_piece(struct rounds *r, int g, const struct nbc_acc *acc, const nbc_id *sent)
{
    const struct nbc_shape *shape = r->shape;
    for (int i = 1; i < shape->size && nbc_has_bytes(shape, acc->at); i++) {
        int peer = (shape->rank + i) % shape->size;
        if (r->to_all || peer == shape->root)
            nbc_send(r->s, acc->at, peer, acc->ready);
    }
    for (int i = 1; i < shape->size && gets_result(r); i++) {
        int peer = nbc_relative(shape->rank, i, shape->size);
        struct nbc_ref cell = cell_of(r, r->result, g, peer);
        if (nbc_has_bytes(shape, cell))
            nbc_recv(r->s, cell, peer, shape->in_place ? sent[peer] : NBC_NONE);
    }
}

/* While one piece is sent in the second round, the next one is reduced in the first. */
static void emit_pieces(struct rounds *r, nbc_id *sent)
{
    int size = r->shape->size, pieces = r->pieces;
    struct nbc_acc acc[2];
    for (int g = 0; g <= pieces; g++) {
        if (g < pieces)
            reduce_piece(r, g, &acc[g % 2], sent + g % 2 * size);
        if (g > 0)
            spread_piece(r, g - 1, &acc[(g - 1) % 2], sent + (g - 1) % 2 * size);
    }
}

static void two_rounds(struct nbc_sched *s, const struct nbc_shape *shape, bool to_all)
{
    int size = shape->size;
    struct nbc_ref input = nbc_send_block(shape, 0);
    struct rounds r = {.s = s, .shape = shape, .to_all = to_all};
    r.pieces = nbc_pieces_at_once(shape, input, input.count / size);
    nbc_id *sent = nbc_scratch(s, 2 * (size_t)size, sizeof *sent);
    if (!sent || !nbc_has_bytes(shape, input))
        return;
    r.result = gets_result(&r) ? nbc_recv_block(shape, 0) : input;
    r.room =
        nbc_room_new(shape, cell_of(&r, input, 0, 0), (int64_t)size * r.pieces, NBC_ROOM_LIMIT);
    emit_pieces(&r, sent);
}

/* Two rounds: every rank receives one part of all vectors, reduces it, and sends the result to all.
 * Large vectors are divided into pieces: one piece is reduced while the previous one is sent, and
 * incoming data is reduced while it is in the cache.
 *
 *   rank   0               1               2               3
 *          B→1, C→2, D→3   C→2, D→3, A→0   D→3, A→0, B→1   A→0, B→1, C→2
 *          A→1, 2, 3       B→2, 3, 0       C→3, 0, 1       D→0, 1, 2
 *
 * Cost: 2 (α + 2 (P − 2) o) + (P − 1)/P (2nβ + nγ), any P. Temporary: the incoming
 * vectors of a part, at most 8 from 128 KiB on. For medium and large vectors on a few ranks. The
 * first round is the pairwise exchange of Thakur, Rabenseifner, Gropp, "Optimization of collective
 * communication operations in MPICH", 2005, with all partners at once. */
NBC_VARIANT(allreduce_two_rounds, two_rounds, true)

/* The same, but the results of the parts are sent to the root alone.
 *
 *   rank   0               1               2               3
 *          B→1, C→2, D→3   C→2, D→3, A→0   D→3, A→0, B→1   A→0, B→1, C→2
 *                          B→0             C→0             D→0              root 0
 *
 * Cost: 2 (α + (P − 2) o) + (P − 1)/P (2nβ + nγ), any P. Temporary: as above, and a part on every
 * rank. For large vectors in the order of ranks. The same paper. */
NBC_VARIANT(reduce_two_rounds, two_rounds, false)
