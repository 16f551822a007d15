/* SPDX-License-Identifier: MIT */
#include "circulant.h"

#include "bytes.h"
#include "reduction.h"
#include "topo.h"

/* Parts are counted in cyclic order from this rank's own. A range of them is one contiguous run of
 * elements, or two. */
struct arc {
    int n;
    struct nbc_ref run[2];
};

static struct arc arc(const struct nbc_circulant *c, struct nbc_ref vector, int from, int n)
{
    struct arc arc = {0};
    int size = c->shape->size, start = (int)(((int64_t)c->shape->rank + from) % size);
    for (int k; n > 0; n -= k, start = 0) {
        k = size - start < n ? size - start : n;
        int64_t first = c->first(c->layout, start), end = c->first(c->layout, start + k);
        if (end > first)
            arc.run[arc.n++] = nbc_ref_part(c->shape, vector, first, end - first);
    }
    return arc;
}

static nbc_id send_arc(struct nbc_sched *s, const struct arc *arc, int peer, nbc_id after)
{
    nbc_id sent = NBC_NONE;
    for (int i = 0; i < arc->n; i++)
        sent = nbc_join(s, sent, nbc_send(s, arc->run[i], peer, after));
    return sent;
}

/* Sets left[k] to the parts left before round k, and the last to 1. Returns the number of rounds.
 */
static int halve(int size, int *left)
{
    int nrounds = 0;
    left[0] = size;
    for (; left[nrounds] > 1; nrounds++)
        left[nrounds + 1] = left[nrounds] / 2 + left[nrounds] % 2;
    return nrounds;
}

/* Receives the first n parts and reduces them into this rank's. moves: this rank's are in the
 * input, the results in home. */
static nbc_id add_arc(struct nbc_sched *s, const struct nbc_circulant *c, int n, int peer,
                      nbc_id ready, bool moves)
{
    struct arc mine = arc(c, moves ? c->input : c->home, 0, n), sum = arc(c, c->home, 0, n);
    nbc_id all = NBC_NONE;
    for (int i = 0; i < sum.n; i++) {
        struct nbc_ref theirs = moves ? sum.run[i] : nbc_temp_like(s, sum.run[i]);
        nbc_id received = nbc_recv(s, theirs, peer, NBC_NONE);
        /* mutants: swap operands: the operation commutes */
        nbc_id added = moves ? nbc_reduce(s, sum.run[i], mine.run[i], theirs, received)
                             : nbc_reduce(s, sum.run[i], theirs, mine.run[i], received);
        nbc_after(s, added, ready);
        all = nbc_join(s, all, added);
    }
    return all != NBC_NONE ? all : ready;
}

/* Copies the middle part to home: with an odd number of parts it is not reduced in the first round.
 */
static nbc_id move_middle(struct nbc_sched *s, const struct nbc_circulant *c, nbc_id ready)
{
    int middle = c->shape->size / 2;
    struct arc from = arc(c, c->input, middle, 1), to = arc(c, c->home, middle, 1);
    return from.n ? nbc_join(s, ready, nbc_copy(s, to.run[0], from.run[0], NBC_NONE)) : ready;
}

nbc_id nbc_circulant_reduce(struct nbc_sched *s, struct nbc_circulant *c)
{
    int rank = c->shape->rank, size = c->shape->size;
    int left[NBC_CIRCULANT_ROUNDS], nrounds = halve(size, left);
    bool elsewhere = !nbc_same_place(c->input, c->home);
    nbc_id ready = NBC_NONE;
    for (int k = 0; k < nrounds; k++) {
        int keep = left[k + 1], give = left[k] - keep;
        int to = nbc_absolute(rank, keep, size), from = nbc_relative(rank, keep, size);
        struct arc out = arc(c, k == 0 ? c->input : c->home, keep, give);
        c->sent[k] = send_arc(s, &out, to, ready);
        ready = add_arc(s, c, give, from, ready, elsewhere && k == 0);
        if (elsewhere && k == 0 && keep > give)
            ready = move_middle(s, c, ready);
    }
    return ready;
}

/* Receives of longer messages are posted round by round: the message of a later round is twice as
 * long, and must not arrive first only because its sender is early. */
enum { LONG = 32 * 1024 };

void nbc_circulant_gather(struct nbc_sched *s, const struct nbc_circulant *c, nbc_id ready)
{
    int rank = c->shape->rank, size = c->shape->size;
    int left[NBC_CIRCULANT_ROUNDS], nrounds = halve(size, left);
    bool elsewhere = !nbc_same_place(c->input, c->home);
    for (int k = nrounds - 1; k >= 0; k--) {
        int have = left[k + 1], more = left[k] - have;
        struct arc mine = arc(c, c->home, 0, more), theirs = arc(c, c->home, have, more);
        nbc_id before = ready, free = elsewhere && k == 0 ? NBC_NONE : c->sent[k];
        send_arc(s, &mine, nbc_relative(rank, have, size), ready);
        for (int i = 0; i < theirs.n; i++) {
            nbc_id received = nbc_recv(s, theirs.run[i], nbc_absolute(rank, have, size), free);
            if (nbc_ref_bytes(c->shape, theirs.run[i]) > LONG)
                nbc_after(s, received, before);
            ready = nbc_join(s, ready, received);
        }
    }
}

/* --- the ring --------------------------------------------------------------------------------- */

/* The state of a rank of the ring. A cell is one piece of one part. */
struct ring {
    struct nbc_sched *s;
    const struct nbc_circulant *c;
    bool gathers, elsewhere; /* elsewhere: home is not the input */
    int pieces;              /* of the longest part */
    int64_t each;            /* elements of a piece */
    struct nbc_room room;
    struct nbc_window in, out;
    nbc_id *reader; /* per cell, the operation that reads the input there last */
};

static int64_t part_count(const struct nbc_circulant *c, int part)
{
    return c->first(c->layout, part + 1) - c->first(c->layout, part);
}

/* Piece g of a part of a vector; without elements if there is none. */
static struct nbc_ref cell(const struct ring *ring, struct nbc_ref vector, int part, int g)
{
    int64_t before = g * ring->each, left = part_count(ring->c, part) - before;
    if (left <= 0)
        left = before = 0;
    return nbc_ref_part(ring->c->shape, vector, ring->c->first(ring->c->layout, part) + before,
                        left < ring->each ? left : ring->each);
}

static nbc_id *reader_of(const struct ring *ring, int part, int g)
{
    return &ring->reader[(int64_t)part * ring->pieces + g];
}

static nbc_id to_right(struct ring *ring, struct nbc_ref data, nbc_id ready)
{
    const struct nbc_shape *shape = ring->c->shape;
    nbc_id sent = nbc_send(ring->s, data, (shape->rank + 1) % shape->size, ready);
    nbc_window_add(ring->s, &ring->out, sent);
    return sent;
}

static nbc_id from_left(struct ring *ring, struct nbc_ref place, nbc_id free)
{
    const struct nbc_shape *shape = ring->c->shape;
    nbc_id received = nbc_recv(ring->s, place, nbc_relative(shape->rank, 1, shape->size), free);
    nbc_window_add(ring->s, &ring->in, received);
    return received;
}

/* Receives a partial result, reduces this rank's input into it, and sends it on; if it is complete
 * then, it stays in its home, and is sent on to be gathered. */
static void reduce_cell(struct ring *ring, int part, int g, bool last)
{
    bool stays = last && !ring->elsewhere, at_home = last && ring->elsewhere;
    struct nbc_acc acc = {cell(ring, ring->c->input, part, g), NBC_NONE, NBC_NONE, stays};
    nbc_id free = NBC_NONE;
    struct nbc_ref place = at_home ? cell(ring, ring->c->home, part, g)
                                   : nbc_room_take(ring->s, &ring->room, acc.at.count, &free);
    nbc_id received = from_left(ring, place, free);
    if (stays)
        nbc_prepend(ring->s, &acc, place, received);
    else
        nbc_append(ring->s, &acc, place, received);
    *reader_of(ring, part, g) = acc.ready;
    nbc_id sent = !last || ring->gathers ? to_right(ring, acc.at, acc.ready) : NBC_NONE;
    if (!at_home)
        nbc_room_give(&ring->room, place, stays ? acc.ready : sent);
}

/* Receives a result, and sends it on unless the next rank has it. */
static void gather_cell(struct ring *ring, int part, int g, bool last)
{
    struct nbc_ref place = cell(ring, ring->c->home, part, g);
    nbc_id received =
        from_left(ring, place, ring->elsewhere ? NBC_NONE : *reader_of(ring, part, g));
    if (!last)
        to_right(ring, place, received);
}

/* The number of pieces of a part in the ring at a time. It is less than the slots of a rank: a rank
 * whose slots are full waits for its neighbor, and a cycle of such waits would be a deadlock. */
enum { BATCH = NBC_ROOM_LIMIT / 2 };

/* Moves a batch of pieces around the ring: the partial result of a part from the rank above that
 * whose part it is, then the result from there. */
static void go_round(struct ring *ring, int first)
{
    int rank = ring->c->shape->rank, size = ring->c->shape->size;
    for (int step = 1; step < (ring->gathers ? 2 * size : size + 1); step++) {
        int part = nbc_relative(rank, step % size, size);
        for (int g = first; g < first + BATCH && g * ring->each < part_count(ring->c, part); g++)
            if (step == 1)
                *reader_of(ring, part, g) =
                    to_right(ring, cell(ring, ring->c->input, part, g), NBC_NONE);
            else if (step <= size)
                reduce_cell(ring, part, g, step == size);
            else
                gather_cell(ring, part, g, step == 2 * size - 1);
    }
}

nbc_id nbc_ring(struct nbc_sched *s, const struct nbc_circulant *c, bool gathers)
{
    int size = c->shape->size;
    struct ring ring = {.s = s, .c = c, .gathers = gathers};
    struct nbc_ref longest = c->input;
    longest.count = 0;
    for (int i = 0; i < size; i++)
        if (part_count(c, i) > longest.count) /* mutants: >= for >: another part as long will do */
            longest.count = part_count(c, i);
    ring.elsewhere = !nbc_same_place(c->input, c->home);
    ring.pieces = nbc_pieces(c->shape, longest, longest.count, 0);
    ring.each = nbc_div_up(longest.count, ring.pieces);
    longest.count = ring.each;
    ring.room = nbc_room_new(c->shape, longest, (int64_t)size * ring.pieces, NBC_ROOM_LIMIT);
    size_t ncells = (size_t)size * (size_t)ring.pieces;
    ring.reader = nbc_scratch(s, ncells, sizeof *ring.reader);
    if (!ring.reader)
        return NBC_NONE;
    const bool joins = c->shape->in_place && !gathers;
    for (size_t i = 0; joins && i < ncells; i++) /* short parts have fewer pieces */
        ring.reader[i] = NBC_NONE;
    for (int first = 0; first < ring.pieces; first += BATCH) /* mutants: <= for <: moves nothing */
        go_round(&ring, first);
    return joins ? nbc_join_of(s, ring.reader, (int)ncells) : NBC_NONE;
}
