/* SPDX-License-Identifier: MIT */
#include "reduction.h"

#include "bytes.h"

struct nbc_acc nbc_acc_input(const struct nbc_shape *shape)
{
    return (struct nbc_acc){nbc_send_block(shape, 0), NBC_NONE, NBC_NONE, shape->in_place};
}

nbc_id nbc_acc_send(struct nbc_sched *s, struct nbc_acc *acc, int peer)
{
    nbc_id sent = nbc_send(s, acc->at, peer, acc->ready);
    if (acc->writable)
        acc->read = nbc_join(s, acc->read, sent);
    return sent;
}

void nbc_prepend(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref left, nbc_id received)
{
    nbc_id done = nbc_reduce(s, acc->at, left, acc->at, received);
    nbc_after(s, done, acc->read != NBC_NONE ? acc->read : acc->ready);
    acc->ready = done;
    acc->read = NBC_NONE;
}

void nbc_append(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref right, nbc_id received)
{
    nbc_id done = nbc_reduce(s, right, acc->at, right, received);
    nbc_after(s, done, acc->ready);
    *acc = (struct nbc_acc){right, done, NBC_NONE, true};
}

void nbc_prepend_to(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref place,
                    struct nbc_ref left, nbc_id received)
{
    nbc_id done = nbc_reduce(s, place, left, acc->at, received);
    nbc_after(s, done, acc->ready);
    *acc = (struct nbc_acc){place, done, NBC_NONE, true};
}

void nbc_own(struct nbc_sched *s, struct nbc_acc *acc, struct nbc_ref place)
{
    *acc = (struct nbc_acc){place, nbc_copy(s, place, acc->at, acc->ready), NBC_NONE, true};
}

void nbc_merge(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_acc *acc,
               struct nbc_ref theirs, nbc_id received, bool theirs_left, struct nbc_ref place)
{
    if (nbc_appends(shape, acc, theirs_left))
        nbc_append(s, acc, theirs, received);
    else if (acc->writable)
        nbc_prepend(s, acc, theirs, received);
    else
        nbc_prepend_to(s, acc, place, theirs, received);
}

/* Up to this number of bytes in all, every incoming vector has a slot. */
enum { SMALL = 128 * 1024 };

struct nbc_room nbc_room_new(const struct nbc_shape *shape, struct nbc_ref like, int64_t expected,
                             int limit)
{
    bool shared = expected > limit && nbc_ref_bytes(shape, like) > SMALL / expected;
    return (struct nbc_room){.like = like, .shared = shared, .left = limit};
}

struct nbc_ref nbc_room_take(struct nbc_sched *s, struct nbc_room *room, int64_t count,
                             nbc_id *free)
{
    struct nbc_ref place;
    *free = NBC_NONE;
    if (!room->shared || room->left > 0) {
        room->left -= room->shared;
        place = nbc_temp_like(s, room->like);
    } else {
        place = room->free[room->first];
        *free = room->until[room->first];
        room->first = (room->first + 1) % NBC_ROOM_LIMIT;
        room->nfree--;
    }
    place.count = count;
    return place;
}

void nbc_room_give(struct nbc_room *room, struct nbc_ref place, nbc_id last)
{
    if (!room->shared || place.buf != NBC_BUF_TEMP)
        return;
    int i = (room->first + room->nfree++) % NBC_ROOM_LIMIT;
    room->free[i] = place;
    room->until[i] = last;
}

struct nbc_ref nbc_room_recv(struct nbc_sched *s, struct nbc_room *room, int64_t count, int peer,
                             nbc_id *received)
{
    nbc_id free;
    struct nbc_ref place = nbc_room_take(s, room, count, &free);
    *received = nbc_recv(s, place, peer, free);
    return place;
}

nbc_id nbc_prepend_rank(struct nbc_sched *s, struct nbc_room *room, struct nbc_acc *acc,
                        struct nbc_ref place, int peer)
{
    nbc_id received;
    struct nbc_ref theirs = nbc_room_recv(s, room, place.count, peer, &received);
    if (acc->writable)
        nbc_prepend(s, acc, theirs, received);
    else
        nbc_prepend_to(s, acc, place, theirs, received);
    nbc_room_give(room, theirs, acc->ready);
    return received;
}

void nbc_take_over(struct nbc_sched *s, const struct nbc_shape *shape, const struct nbc_fold *fold,
                   struct nbc_acc *acc, struct nbc_ref home, struct nbc_room *room)
{
    bool theirs_left = fold->partner < shape->rank; /* mutants: <= for <: never equal */
    bool appends = nbc_appends(shape, acc, theirs_left);
    nbc_id free = NBC_NONE;
    struct nbc_ref theirs = home;
    if (!appends || acc->writable)
        theirs = room ? nbc_room_take(s, room, acc->at.count, &free) : nbc_temp_like(s, acc->at);
    /* mutants: drop a dependency of a message or copy: the first places of a room are free */
    nbc_id received = nbc_recv(s, theirs, fold->partner, free);
    nbc_merge(s, shape, acc, theirs, received, theirs_left, home);
    if (room && !appends)
        nbc_room_give(room, theirs, acc->ready);
}

/* Each partial result overwrites the vector that was reduced into it last, so that only a vector
 * that may not be overwritten costs a place of its own. */
void nbc_fold_ranks(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                    struct nbc_acc *acc, struct nbc_ref place, nbc_id free, int end)
{
    const struct nbc_acc own = *acc;
    bool occupied = shape->rank < end && nbc_same_place(own.at, place);
    for (int r = 0; r < end; r++) {
        bool last = r == end - 1, mine = r == shape->rank;
        struct nbc_ref before = acc->at;
        struct nbc_acc next = own;
        if (!mine && last && !occupied)
            next = (struct nbc_acc){place, nbc_recv(s, place, r, free), NBC_NONE, true};
        else if (!mine) {
            next = (struct nbc_acc){.writable = true};
            next.at = nbc_room_recv(s, room, place.count, r, &next.ready);
        }
        if (r == 0) {
            *acc = next;
            continue;
        }
        if (next.writable) {
            nbc_append(s, acc, next.at, nbc_join(s, next.ready, next.read));
        } else {
            nbc_id empty = free;
            struct nbc_ref sum = last ? place : nbc_room_take(s, room, place.count, &empty);
            nbc_prepend_to(s, &next, sum, before, acc->ready);
            nbc_after(s, next.ready, empty);
            *acc = next;
        }
        nbc_room_give(room, before, acc->ready);
    }
    if (nbc_same_place(acc->at, place))
        return;
    struct nbc_ref before = acc->at;
    nbc_own(s, acc, place);
    nbc_room_give(room, before, acc->ready);
}

void nbc_reduce_from_all(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_room *room,
                         struct nbc_acc *acc, struct nbc_ref place)
{
    int size = shape->size, peer = nbc_relative(shape->rank, 1, size);
    if (size == 1) {
        nbc_own(s, acc, place);
        return;
    }
    if (!shape->commutative) {
        nbc_fold_ranks(s, shape, room, acc, place, NBC_NONE, size);
        return;
    }
    /* The first vector to arrive makes acc writable; after that the order does not matter. */
    if (!acc->writable) {
        nbc_append(s, acc, place, nbc_recv(s, place, peer, NBC_NONE));
        peer = nbc_relative(peer, 1, size);
    }
    for (; peer != shape->rank; peer = nbc_relative(peer, 1, size))
        nbc_prepend_rank(s, room, acc, place, peer);
}

/* A longer segment does not stay in a cache while it is reduced; for a shorter one, the costs of a
 * message exceed that gain. */
enum { SEGMENT = 256 * 1024, MAX_PIECES = 1024 };

static int cut(const struct nbc_shape *shape, struct nbc_ref vector, int64_t count, int64_t segment)
{
    int64_t bytes = count * shape->types[vector.type].size;
    int64_t n = nbc_div_up(bytes, segment);
    /* mutants: >= for >: the same value */
    if (n > MAX_PIECES) /* bounds the size of the schedule */
        n = MAX_PIECES;
    if (n > count)             /* mutants: >= for >: the same value */
        n = count;             /* unreached: only in test_algs and test_select */
    return n > 1 ? (int)n : 1; /* mutants: >= for >: the same value */
}

int nbc_pieces(const struct nbc_shape *shape, struct nbc_ref vector, int64_t count, int hops)
{
    int64_t bytes = count * shape->types[vector.type].size;
    return cut(shape, vector, count, nbc_segment_bytes(shape, bytes, hops, SEGMENT));
}

int nbc_pieces_at_once(const struct nbc_shape *shape, struct nbc_ref vector, int64_t count)
{
    int pieces = nbc_pieces(shape, vector, count, 0);
    if (shape->segment > 0 || pieces <= NBC_SHORT_PIECES)
        return pieces;
    return cut(shape, vector, count, SEGMENT);
}

/* The state of an exchange. */
struct rounds {
    const struct nbc_exchange *x;
    struct nbc_room room;
    int last_move; /* the last round in which the partial result goes to a place where one arrives:
                    */
                   /* there it comes to the final place; −1: none, or that is not free */
    bool in_place;
    struct nbc_ref input;
    nbc_id input_sent;
};

static int digit_of(const struct nbc_exchange *x, int64_t weight, int t)
{
    return (int)(x->fold->virtual / weight % x->radix[t]);
}

static struct rounds begin(const struct nbc_exchange *x, const struct nbc_acc *acc)
{
    struct rounds r = {.x = x, .last_move = -1, .input = acc->at, .input_sent = NBC_NONE};
    r.in_place = nbc_same_place(acc->at, x->result);
    int most = 2, expected = 1;
    int64_t weight = 1;
    for (int t = 0; t < x->nrounds; weight *= x->radix[t++]) {
        expected += x->radix[t] - 1;
        if (x->radix[t] > most) /* mutants: >= for >: the same value */
            most = x->radix[t];
        if (!r.in_place && digit_of(x, weight, t) < x->radix[t] - 1)
            r.last_move = t;
    }
    if (most > NBC_ROOM_LIMIT) /* mutants: >= for >: the same value */
        expected = most = 0;   /* one place for each, however large */
    r.room = nbc_room_new(x->shape, x->result, expected, most);
    return r;
}

/* Returns a place in which the partial result can stay from round t on. */
static struct nbc_ref stay(struct nbc_sched *s, struct rounds *r, int t)
{
    nbc_id free;
    if (!r->in_place && r->last_move < t)
        return r->x->result;
    return nbc_room_take(s, &r->room, r->x->result.count, &free); /* the first ones are free */
}

/* One round. All members evaluate m₀ op (m₁ op (m₂ op …)), in the vector of the highest one. */
static void exchange_round(struct nbc_sched *s, struct rounds *r, struct nbc_acc *acc, int t,
                           int64_t weight)
{
    const struct nbc_exchange *x = r->x;
    int radix = x->radix[t], digit = digit_of(x, weight, t);
    int64_t base = x->fold->virtual - digit * weight;
    bool highest = digit == radix - 1;
    struct nbc_acc mine = *acc;
    bool overwritten = mine.writable && (highest || r->room.shared);
    for (int i = 1; i < radix; i++) {
        int peer = nbc_unfold(x->fold, (int)(base + (digit + i) % radix * weight));
        nbc_id sent = nbc_send(s, mine.at, peer, mine.ready);
        if (overwritten || x->shape->in_place)
            mine.read = nbc_join(s, mine.read, sent);
    }
    if (nbc_same_place(mine.at, r->input))
        r->input_sent = mine.read;
    struct nbc_acc high = mine;
    if (!highest) {
        nbc_id free = NBC_NONE;
        int peer = nbc_unfold(x->fold, (int)(base + (radix - 1) * weight));
        high.at =
            t == r->last_move ? x->result : nbc_room_take(s, &r->room, x->result.count, &free);
        high = (struct nbc_acc){high.at, nbc_recv(s, high.at, peer, free), NBC_NONE, true};
    }
    for (int i = radix - 2; i >= 0; i--) {
        nbc_id received = mine.ready;
        struct nbc_ref theirs = mine.at;
        if (i != digit)
            theirs = nbc_room_recv(s, &r->room, x->result.count,
                                   nbc_unfold(x->fold, (int)(base + i * weight)), &received);
        if (high.writable)
            nbc_prepend(s, &high, theirs, received);
        else
            nbc_prepend_to(s, &high, stay(s, r, t), theirs, received);
        if (r->room.shared)
            nbc_room_give(&r->room, theirs,
                          i == digit ? nbc_join(s, high.ready, mine.read) : high.ready);
    }
    *acc = high;
}

nbc_id nbc_exchange(struct nbc_sched *s, const struct nbc_exchange *x, struct nbc_acc *acc)
{
    struct rounds r = begin(x, acc);
    if (x->fold->takes)
        nbc_take_over(s, x->shape, x->fold, acc, acc->writable ? acc->at : stay(s, &r, 0), &r.room);
    int64_t weight = 1;
    for (int t = 0; t < x->nrounds; weight *= x->radix[t++])
        exchange_round(s, &r, acc, t, weight);
    if (!nbc_same_place(acc->at, x->result)) {
        nbc_id copied = nbc_copy(s, x->result, acc->at, acc->ready);
        nbc_after(s, copied, r.input_sent);
        *acc = (struct nbc_acc){x->result, copied, NBC_NONE, true};
    }
    return r.input_sent;
}

static int64_t first_of(const struct nbc_halving *h, int part)
{
    if (h->first)
        return h->first(h->layout, part);
    return nbc_part_start(nbc_send_block(h->shape, 0).count, h->fold->onto, part);
}

/* Returns the elements of n parts of `vector`. */
static struct nbc_ref parts_at(const struct nbc_halving *h, struct nbc_ref vector, int part, int n)
{
    int64_t first = first_of(h, part);
    return nbc_ref_part(h->shape, vector, first, first_of(h, part + n) - first);
}

/* Combines the half that this rank keeps with its partner's vector of that half. */
static void keep_half(struct nbc_sched *s, struct nbc_halving *h, struct nbc_acc *half,
                      struct nbc_ref home, int partner, const struct nbc_ref *result)
{
    if (result) {
        nbc_append(s, half, *result, nbc_recv(s, *result, partner, NBC_NONE));
        return;
    }
    bool theirs_left = partner < h->shape->rank; /* mutants: <= for <: never equal */
    bool appends = nbc_appends(h->shape, half, theirs_left);
    struct nbc_ref theirs = appends && !half->writable ? home : nbc_temp_like(s, half->at);
    nbc_id received = nbc_recv(s, theirs, partner, NBC_NONE);
    nbc_merge(s, h->shape, half, theirs, received, theirs_left, home);
}

void nbc_halving_home(struct nbc_sched *s, struct nbc_halving *h, struct nbc_ref like)
{
    int have = h->fold->onto / 2;
    int part = nbc_butterfly_path(h->fold, 0) & 1 ? have : 0;
    struct nbc_ref kept = nbc_temp_like(s, parts_at(h, like, part, have));
    /* mutants: one element less: only its parts are named */
    h->home = nbc_ref_part(h->shape, kept, -first_of(h, part), like.count);
}

void nbc_halve(struct nbc_sched *s, struct nbc_halving *h, struct nbc_acc *acc)
{
    const struct nbc_fold *fold = h->fold;
    int have = fold->onto, path = nbc_butterfly_path(fold, 0);
    struct nbc_ref vector = acc->at; /* its part 0, even if this rank has given that away */
    h->part = h->nrounds = 0;
    for (int k = 0; have > 1; k++) {
        have /= 2;
        bool upper = path >> k & 1;
        int partner = nbc_unfold(fold, nbc_butterfly_partner(fold, k));
        int keep = h->part + (upper ? have : 0), give = h->part + (upper ? 0 : have);
        nbc_id sent = nbc_send(s, parts_at(h, vector, give, have), partner, acc->ready);
        h->sent[h->nrounds++] = sent;
        acc->at = parts_at(h, vector, keep, have);
        keep_half(s, h, acc, parts_at(h, h->home, keep, have), partner,
                  have == 1 ? h->result : NULL);
        /* mutants: one element less: only its parts are named */
        vector = nbc_ref_part(h->shape, acc->at, -first_of(h, keep), vector.count);
        h->part = keep;
    }
    if (fold->onto == 1)
        acc->at = parts_at(h, vector, 0, 1);
}

void nbc_gather_halves(struct nbc_sched *s, const struct nbc_halving *h, struct nbc_acc *acc,
                       int root)
{
    nbc_id received[32];
    const struct nbc_fold *fold = h->fold;
    int part = h->part, have = 1, nheard = 0, path = nbc_butterfly_path(fold, 0);
    int down = root < 0 ? -1 : nbc_butterfly_path(fold, root);
    nbc_own(s, acc, parts_at(h, h->home, part, 1));
    for (int k = h->nrounds - 1; k >= 0; k--, have *= 2) {
        int partner = nbc_unfold(fold, nbc_butterfly_partner(fold, k));
        if (down >> k & 1) {
            nbc_id sent = nbc_send(s, parts_at(h, h->home, part, have), partner, acc->ready);
            nbc_after_all(s, sent, received, nheard);
            if (root >= 0)
                return;
        }
        int other = path >> k & 1 ? part - have : part + have;
        received[nheard++] = nbc_recv(s, parts_at(h, h->home, other, have), partner, h->sent[k]);
        part = other < part ? other : part;
    }
    if (root >= 0 || !fold->takes)
        return;
    nbc_id sent = nbc_send(s, h->home, fold->partner, acc->ready);
    nbc_after_all(s, sent, received, nheard);
}
