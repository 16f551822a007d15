/* SPDX-License-Identifier: MIT */
/* Alltoall, alltoallv and alltoallw: every rank has a block for every peer. All algorithms but
 * Bruck's also serve intercommunicators, there allgather too: it is an alltoall whose blocks to all
 * peers are the same. In the v and w forms a rank knows the sizes of its own blocks only, so the
 * order of messages may depend on nothing but the number of ranks. Both ends of a message know its
 * bytes and omit it if there are none. */
#include "bytes.h"
#include "select.h"
#include "topo.h"

#include <limits.h>

/* Number of steps in which every rank exchanges with every peer once. */
static int nsteps(const struct nbc_shape *shape)
{
    return shape->remote_size > shape->size ? shape->remote_size : shape->size;
}

/* The ranks that this rank sends to and receives from in a step; -1: none. */
struct step {
    int to, from;
};

static int peer_or_none(const struct nbc_shape *shape, int peer)
{
    if (shape->remote_size)
        return peer < shape->remote_size ? peer : -1;
    return peer == shape->rank ? -1 : peer;
}

/* In each step every rank sends to one peer and receives from one, which balances the load. If the
 * number of ranks is a power of two, both are the same, which uses the links of a network best. In
 * place they must be the same, since the incoming block overwrites the outgoing one. */
static struct step step_at(const struct nbc_shape *shape, int k)
{
    int rank = shape->rank, n = nsteps(shape);
    struct step step = {nbc_absolute(k, rank, n), nbc_relative(rank, k, n)};
    if (!shape->remote_size && (n & (n - 1)) == 0)
        step.to = step.from = rank ^ k;
    else if (shape->in_place)
        step.to = step.from = nbc_relative(k, rank, n);
    step.to = peer_or_none(shape, step.to);
    step.from = peer_or_none(shape, step.from);
    return step;
}

/* Copies the rank's block to itself. Last in the schedule, so that messages are in flight
 * meanwhile. */
static void copy_own(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank;
    if (!shape->remote_size && !shape->in_place)
        nbc_copy(s, nbc_recv_block(shape, rank), nbc_send_block(shape, rank), NBC_NONE);
}

/* Steps k, k + W, k + 2W … of W slots follow one another. In place the outgoing and the incoming
 * block of a peer share a place: the incoming one is kept as bytes in `room` until both messages
 * are done. */
struct slot {
    struct nbc_ref room;
    nbc_id received, sent; /* the last messages, NBC_NONE: none yet */
    nbc_id emptied;        /* the last copy from `room` */
};

static struct slot *slots_new(struct nbc_sched *s, const struct nbc_shape *shape, int n)
{
    struct slot *slots = nbc_scratch(s, (size_t)n, sizeof *slots);
    for (int i = 0; slots && i < n; i++)
        slots[i] = (struct slot){.received = NBC_NONE, .sent = NBC_NONE, .emptied = NBC_NONE};
    if (!slots || !shape->in_place)
        return slots;
    for (int k = 0; k < shape->size; k++) {
        int peer = step_at(shape, k).from;
        int64_t bytes = peer < 0 ? 0 : nbc_ref_bytes(shape, nbc_recv_block(shape, peer));
        /* mutants: >= for >: another block as large will do */
        if (bytes > slots[k % n].room.count)
            slots[k % n].room.count = bytes;
    }
    for (int i = 0; i < n; i++)
        slots[i].room = nbc_temp_bytes(s, slots[i].room.count);
    return slots;
}

/* Sends to, or receives from, the peer of a step; −1: there is none. Without a message the next
 * step of the slot waits for those before. */
static void move(struct nbc_sched *s, const struct nbc_shape *shape, struct slot *slot, bool sends,
                 int peer)
{
    nbc_id *last = sends ? &slot->sent : &slot->received;
    if (peer < 0)
        return;
    struct nbc_ref block = sends ? nbc_send_block(shape, peer) : nbc_recv_block(shape, peer);
    if (!nbc_has_bytes(shape, block))
        return;
    if (!shape->in_place) {
        *last = nbc_move_pieces(s, shape, !sends, block, peer, *last);
        return;
    }
    struct nbc_ref room = nbc_byte_range(slot->room, 0, nbc_ref_bytes(shape, block));
    *last = (sends ? nbc_send : nbc_recv)(s, sends ? block : room, peer, *last);
    if (!sends) {
        nbc_after(s, slot->received, slot->emptied);
        return;
    }
    slot->emptied = nbc_copy(s, block, room, slot->received);
    nbc_after(s, slot->emptied, slot->sent);
}

/* Emits the messages of all steps, of which at most `window` are in flight in either direction: one
 * is posted when that of the step `window` before is done. These are edges, not rounds, so a slow
 * peer delays one message in `window`. On all ranks the messages of a step wait for those of
 * earlier steps only: there is no deadlock. */
static void in_steps(struct nbc_sched *s, const struct nbc_shape *shape, int window)
{
    int n = nsteps(shape), nslots = window < n ? window : n;
    struct slot *slots = slots_new(s, shape, nslots);
    for (int k = 0; slots && k < n + nslots; k++) {
        struct slot *slot = &slots[k % nslots];
        if (k >= nslots)
            move(s, shape, slot, true, step_at(shape, k - nslots).to);
        if (k < n) /* mutants: <= for <: a round more moves nothing */
            move(s, shape, slot, false, step_at(shape, k).from);
    }
    copy_own(s, shape);
}

/* Linear: all receives, then all sends. Each rank begins with another peer.
 *
 *   rank   0         1         2         3
 *          →1 →2 →3  →0 →3 →2  →3 →0 →1  →2 →1 →0
 *
 * Cost: α + (P−1) (o + nβ), with n the bytes of a block and o the time to post a message. No
 * temporary memory; in place space for all incoming blocks. For few ranks, and for small blocks
 * as long as (P−1) o is less than the rounds of Bruck's. Thakur, Rabenseifner, Gropp, "Optimization
 * of collective communication operations in MPICH", 2005. */
NBC_VARIANT(alltoall_linear, in_steps, INT_MAX)

/* Linear, throttled: as linear, but with at most 8 messages in flight in either direction.
 *
 *   rank 0, a window of 2:   recv 3, recv 2, send 1, send 2
 *                            recv 1 when recv 3 is done, send 3 when send 1 is done
 *
 * Cost: α + (P−1) (o + nβ). At most 8 P messages are in the network and the receivers' queues, and
 * a poll tests 16 of them. In place: 8 blocks of temporary memory. For many ranks. Thakur,
 * Rabenseifner, Gropp, 2005 (the tuned "irregular" algorithm of section 7). */
NBC_VARIANT(alltoall_throttled, in_steps, 8)

/* Pairwise: two exchanges at a time, in each step with other partners, so that a receive is posted
 * one step ahead and the sender never waits for it. If P is a power of two, the partner is rank
 * XOR k; otherwise a rank sends to rank + k and receives from rank − k, and in place it exchanges
 * with k − rank.
 *
 *   rank   0     1     2     3
 *   k = 1  ↔1    ↔0    ↔3    ↔2
 *   k = 2  ↔2    ↔3    ↔0    ↔1
 *   k = 3  ↔3    ↔2    ↔1    ↔0
 *
 * Cost: (P−1) (α + nβ). No temporary memory; in place two blocks. For large blocks, whose
 * messages would slow down one another on a shared link or cache. Thakur, Rabenseifner, Gropp,
 * 2005. */
NBC_VARIANT(alltoall_pairwise, in_steps, 2)

/* --- Bruck's --- */

enum { MAX_MESSAGES = 48 }; /* radix 2: at most 31; radix 4: 3 each at 16 weights */

/* Packs all blocks that an in-place call sends, by one copy to temporary memory. */
static struct nbc_ref set_all_aside(struct nbc_sched *s, const struct nbc_shape *shape,
                                    nbc_id *done)
{
    struct nbc_ref all = nbc_recv_block(shape, 0);
    all.count *= shape->size;
    struct nbc_ref aside = nbc_temp_bytes(s, nbc_ref_bytes(shape, all));
    *done = nbc_copy(s, aside, all, NBC_NONE);
    return aside;
}

/* One message: the blocks with digit d at weight w, highest number first. */
struct message {
    int64_t weight;
    int digit;
    nbc_id received; /* its receive */
    int64_t off;     /* where that places the blocks; −1: directly in the receive buffer */
};

/* The current place of a block. */
struct held {
    int64_t off;     /* packed, in temporary memory */
    nbc_id received; /* the receive that placed it; NBC_NONE: it is in the input */
};

struct bruck {
    struct nbc_sched *s;
    const struct nbc_shape *shape;
    int radix;
    int64_t bytes;        /* of a block */
    struct nbc_ref input; /* in place: the packed copy of what is sent */
    nbc_id copied;        /* done when that copy is */
    struct message messages[MAX_MESSAGES];
    int nmessages;
    struct held *held; /* by number of block */
    struct nbc_fold fold;
};

/* The blocks base … base + weight − 1, as far as they exist, are one group of a message. */
static int64_t first_group(const struct bruck *b, const struct message *m)
{
    int64_t low = m->digit * m->weight, span = m->weight * b->radix;
    return (b->shape->size - 1 - low) / span * span + low;
}

static int64_t group_end(const struct bruck *b, const struct message *m, int64_t base)
{
    int64_t end = base + m->weight, size = b->shape->size;
    return end < size ? end : size;
}

static int64_t count_blocks(const struct bruck *b, const struct message *m)
{
    int64_t span = m->weight * b->radix, base = first_group(b, m);
    int64_t groups = base / span; /* the complete groups below */
    return groups * m->weight + group_end(b, m, base) - base;
}

/* n received blocks, of the peers from `first` on. */
static struct nbc_ref recv_range(const struct bruck *b, int first, int64_t n)
{
    struct nbc_ref range = nbc_recv_block(b->shape, first);
    range.count *= n;
    return range;
}

/* The ranks that get and that send the block with a number. */
static int target_of(const struct bruck *b, int64_t i)
{
    return b->fold.bine ? nbc_butterfly_to(&b->fold, (int)i)
                        : nbc_absolute((int)i, b->shape->rank, b->shape->size);
}

static int source_of(const struct bruck *b, int64_t i)
{
    return b->fold.bine ? nbc_butterfly_from(&b->fold, (int)i)
                        : nbc_relative(b->shape->rank, (int)i, b->shape->size);
}

/* The blocks that have reached their destination are the last of a message: digit · weight and
 * those above it. Without Bine trees they are of peers below this rank, in the order of the user's
 * buffer, and wrap around at most once. */
static void deliver(struct bruck *b, const struct message *m, int64_t first, int64_t n)
{
    int64_t last = m->digit * m->weight + n - 1;
    for (int64_t i = 0, run; i < n; i += run) {
        int peer = source_of(b, last - i);
        for (run = 1; i + run < n && source_of(b, last - i - run) == peer + run;)
            run++;
        int64_t off = m->off + (first + i) * b->bytes;
        struct nbc_ref raw = {off, run * b->bytes, NBC_TYPE_BYTE, NBC_BUF_TEMP};
        nbc_id id = nbc_copy(b->s, recv_range(b, peer, run), raw, m->received);
        nbc_after(b->s, id, b->copied);
    }
}

/* Whether a message of n blocks may be received as the user's elements: see nbc_recv. A single
 * block was not packed by any rank, except in place. */
static bool as_elements(const struct bruck *b, int64_t n)
{
    const struct nbc_shape *shape = b->shape;
    return shape->types[shape->recv.type].packed || (n == 1 && !shape->in_place);
}

static void receive(struct bruck *b, struct message *m)
{
    int64_t n = count_blocks(b, m);
    int64_t last = m->digit * m->weight, final = group_end(b, m, last) - last;
    int from = source_of(b, last), lowest = source_of(b, last + final - 1);
    bool in_order = (n == 1 || !b->fold.bine) && lowest + n <= b->shape->size;
    if (n == final && in_order && as_elements(b, n)) {
        m->off = -1;
        m->received = nbc_recv(b->s, recv_range(b, lowest, n), from, b->copied);
        return;
    }
    struct nbc_ref raw = nbc_temp_bytes(b->s, n * b->bytes);
    m->off = raw.off;
    m->received = nbc_recv(b->s, raw, from, NBC_NONE);
    deliver(b, m, n - final, final);
}

/* n contiguous blocks, from number i downwards. */
static struct nbc_ref held_ref(const struct bruck *b, int64_t i, int64_t n)
{
    struct held h = b->held[i];
    if (h.received != NBC_NONE)
        return (struct nbc_ref){h.off, n * b->bytes, NBC_TYPE_BYTE, NBC_BUF_TEMP};
    int to = target_of(b, i);
    if (b->shape->in_place)
        return nbc_byte_range(b->input, to * b->bytes, n * b->bytes);
    return nbc_send_block(b->shape, to);
}

static nbc_id held_since(const struct bruck *b, int64_t i)
{
    return b->held[i].received == NBC_NONE ? b->copied : b->held[i].received;
}

/* Returns how many blocks from number i downwards are contiguous. The blocks that a message
 * forwards end with one that has not moved yet. */
static int64_t run_length(const struct bruck *b, int64_t i)
{
    const struct held *h = b->held;
    int64_t n = 1;
    while (h[i].received != NBC_NONE && h[i - n].received == h[i].received &&
           h[i - n].off == h[i].off + n * b->bytes)
        n++;
    return n;
}

static void pack_and_send(struct bruck *b, const struct message *m)
{
    int to = target_of(b, m->digit * m->weight);
    int64_t n = count_blocks(b, m), base = first_group(b, m), packed = 0;
    if (n == 1) {
        nbc_send(b->s, held_ref(b, base, 1), to, held_since(b, base));
        return;
    }
    struct nbc_ref raw = nbc_temp_bytes(b->s, n * b->bytes);
    nbc_id first = b->s->nops;
    for (; base >= 0; base -= m->weight * b->radix) /* mutants: > for >=: blocks count from 1 */
        for (int64_t i = group_end(b, m, base) - 1, run; i >= base; i -= run) {
            run = run_length(b, i);
            struct nbc_ref place = nbc_byte_range(raw, packed * b->bytes, run * b->bytes);
            nbc_copy(b->s, place, held_ref(b, i, run), held_since(b, i));
            packed += run;
        }
    nbc_id sent = nbc_send(b->s, raw, to, NBC_NONE);
    nbc_after_since(b->s, sent, first);
}

/* Records that the blocks of a message are where it was received. */
static void note_moved(struct bruck *b, const struct message *m)
{
    int64_t off = m->off;
    /* mutants: > for >=: blocks count from 1 */
    for (int64_t base = first_group(b, m); base >= 0; base -= m->weight * b->radix)
        for (int64_t i = group_end(b, m, base) - 1; i >= base; i--, off += b->bytes)
            b->held[i] = (struct held){off, m->received};
}

static void emit_bruck(struct bruck *b)
{
    /* mutants: <= for <: a round more moves nothing */
    for (int64_t w = 1; w < b->shape->size; w *= b->radix)
        for (int d = 1; d < b->radix && d * w < b->shape->size; d++)
            b->messages[b->nmessages++] = (struct message){.weight = w, .digit = d};
    for (int i = 0; i < b->nmessages; i++)
        receive(b, &b->messages[i]);
    for (int i = 0, end; i < b->nmessages; i = end) {
        /* mutants: <= for <: an entry that nobody reads */
        for (end = i; end < b->nmessages && b->messages[end].weight == b->messages[i].weight; end++)
            pack_and_send(b, &b->messages[end]);
        for (int k = i; k < end; k++)
            note_moved(b, &b->messages[k]);
    }
    copy_own(b->s, b->shape);
}

/* Bruck's, radix k. Block i is the one for rank + i. The digits of i in base k are its route: for
 * every digit d ≠ 0 at weight w = k^j it moves by d · w ranks, in one message with all blocks that
 * have the same digit there.
 *
 *   rank 0 of 4, k = 2:   w = 1: sends blocks 1, 3 to 1    receives from 3: its 1 (final), its 3
 *                         w = 2: sends block 2 and 3's block 3 to 2
 *
 * There is no rotation before or after: a block is copied from the user's buffer to its first
 * message, from message to message, and from the last one to the user's buffer. Messages hold their
 * blocks in descending order: blocks that have reached their destination are then in the order of
 * the user's buffer and are copied there at once or in two parts. The message of the last weight is
 * received there directly, unless it wraps around. Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient
 * algorithms for all-to-all communications in multiport message-passing systems", 1997. */
static void bruck(struct nbc_sched *s, const struct nbc_shape *shape, int radix, bool bine)
{
    int size = shape->size;
    struct bruck b = {.s = s, .shape = shape, .radix = radix, .copied = NBC_NONE};
    b.fold = nbc_fold(shape->rank, size);
    b.fold.bine = bine;
    b.bytes = nbc_ref_bytes(shape, nbc_recv_block(shape, 0));
    b.held = nbc_scratch(s, (size_t)size, sizeof *b.held);
    if (!b.held || b.bytes == 0)
        return;
    for (int i = 0; i < size; i++)
        b.held[i] = (struct held){-1, NBC_NONE};
    if (shape->in_place && size > 1)
        b.input = set_all_aside(s, shape, &b.copied);
    emit_bruck(&b);
}

/* Radix 2: fewest messages.
 * Cost: ⌈log₂P⌉ α + ½ P ⌈log₂P⌉ nβ, twice that in bytes of temporary memory. For small blocks on
 * many ranks. */
NBC_VARIANT(alltoall_bruck, bruck, 2, false)

/* Radix 4: half the rounds of radix 2, three messages at once in each.
 * Cost: ⌈log₄P⌉ (α + 2o) + ¾ P ⌈log₄P⌉ nβ, twice that in bytes of temporary memory. For networks
 * whose latency is high compared with o, and for blocks that are less small. */
NBC_VARIANT(alltoall_bruck4, bruck, 4, false)

/* Bine butterfly: as Bruck's of radix 2, but the bits of a block's number are its path in the
 * butterfly (nbc_butterfly_path), whose partners are nearer.
 *
 *   8 ranks:  0 ↔ 1    2 ↔ 3    4 ↔ 5    6 ↔ 7    four blocks each way
 *             0 ↔ 7    1 ↔ 2    3 ↔ 4    5 ↔ 6
 *             0 ↔ 3    1 ↔ 6    2 ↔ 5    4 ↔ 7
 *
 * Cost: log₂P α + ½ P log₂P nβ, twice that in bytes of temporary memory, powers of two; blocks that
 * arrive are copied one by one, as they are not of adjacent peers. For small blocks of many ranks
 * in groups with few links between them. De Sensi et al., "Bine trees: enhancing collective
 * operations by optimizing communication locality", 2025. */
NBC_VARIANT(alltoall_bine, bruck, 2, true)
