/* SPDX-License-Identifier: MIT */
/* Reduce_scatter and reduce_scatter_block: the vectors of all ranks are combined, and each rank
 * receives its block of the result. */
#include "bytes.h"
#include "circulant.h"
#include "reduction.h"
#include "select.h"

/* The vector as one block per rank, and the place of this rank's result. In place the input is in
 * the receive buffer and the result goes to its start, so it is written after all reads. */
struct blocks {
    struct nbc_sched *s;
    const struct nbc_shape *shape;
    struct nbc_ref input, result;
    int64_t each;   /* elements of a block, if all have the same number */
    int64_t *start; /* else: first element of each block, and the end */
};

static int64_t first_of(const struct blocks *b, int rank)
{
    return b->start ? b->start[rank] : rank * b->each;
}

/* Returns n blocks of a vector. */
static struct nbc_ref blocks_at(const struct blocks *b, struct nbc_ref vector, int rank, int n)
{
    int64_t first = first_of(b, rank);
    return nbc_ref_part(b->shape, vector, first, first_of(b, rank + n) - first);
}

static struct nbc_ref block(const struct blocks *b, int rank)
{
    return blocks_at(b, b->input, rank, 1);
}

/* The common begin of all builders here. Returns false if there is nothing more to emit. */
static bool open_blocks(struct blocks *b, struct nbc_sched *s, const struct nbc_shape *shape)
{
    int size = shape->size;
    *b = (struct blocks){.s = s, .shape = shape, .each = shape->send.count};
    if (shape->send.counts.data) {
        b->start = nbc_scratch(s, (size_t)size + 1, sizeof *b->start);
        if (!b->start)
            return false;
        b->start[0] = 0;
        for (int i = 0; i < size; i++)
            b->start[i + 1] = b->start[i] + nbc_ints_at(shape->send.counts, i);
    }
    b->input = nbc_send_vector(shape);
    b->result = nbc_recv_block(shape, 0);
    b->result.count = block(b, shape->rank).count;
    if (size == 1)
        nbc_copy(s, b->result, b->input, NBC_NONE);
    return size > 1 && nbc_has_bytes(shape, b->input);
}

/* Returns this rank's input as an accumulator that is not writable. */
static struct nbc_acc whole(const struct blocks *b)
{
    return (struct nbc_acc){b->input, NBC_NONE, NBC_NONE, false};
}

/* Returns a place for the partial result. */
static struct nbc_ref result_room(const struct blocks *b)
{
    return b->shape->in_place ? nbc_temp_like(b->s, b->result) : b->result;
}

/* Copies the result to its place. input_sent: done when all sends of the input are. */
static void keep_block(const struct blocks *b, struct nbc_ref from, nbc_id ready, nbc_id input_sent)
{
    if (nbc_ref_bytes(b->shape, b->result) == 0 || nbc_same_place(b->result, from))
        return;
    nbc_id copied = nbc_copy(b->s, b->result, from, ready);
    if (b->shape->in_place)
        nbc_after(b->s, copied, input_sent);
}

/* In place: returns one id for many sends of the input. */
static nbc_id also(const struct blocks *b, nbc_id all, nbc_id sent)
{
    return b->shape->in_place ? nbc_join(b->s, all, sent) : NBC_NONE;
}

static int64_t circulant_part(const void *layout, int part)
{
    return first_of(layout, part);
}

/* The blocks as parts, whose results go to `home`: there are the elements of a vector from `from`
 * on. */
static struct nbc_circulant circulant_of(const struct blocks *b, struct nbc_ref home, int64_t from)
{
    struct nbc_circulant c = {
        .shape = b->shape, .first = circulant_part, .layout = b, .input = b->input};
    /* mutants: one element less: only its blocks are used */
    c.home = nbc_ref_part(b->shape, home, -from, b->input.count);
    return c;
}

/* Circulant: ⌈log₂P⌉ rounds on any number of ranks. Rank r counts the blocks from its own.
 * When s of them are left, it sends those from h = ⌈s/2⌉ on to rank r + h, which reduces them with
 * its first ones.
 *
 *   rank     0            1            2            3
 *   s = 4    CD → 2       DA → 3       AB → 0       BC → 1
 *   s = 2    B → 1        C → 2        D → 3        A → 0
 *
 * Cost: ⌈log₂P⌉ α + (P − 1)/P (nβ + nγ), any P, commutative operators; blocks that wrap
 * around past the last one are two messages. Temporary: one and a half vectors. For medium vectors
 * on numbers of ranks that are no power of two. Träff, "Optimal, non-pipelined reduce-scatter and
 * allreduce algorithms", 2024. */
void nbc_reduce_scatter_circulant(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct blocks blocks, *b = &blocks;
    if (!open_blocks(b, s, shape))
        return;
    struct nbc_circulant circulant = circulant_of(b, nbc_temp_like(b->s, b->input), 0);
    nbc_id ready = nbc_circulant_reduce(b->s, &circulant);
    keep_block(b, blocks_at(b, circulant.home, b->shape->rank, 1), ready, circulant.sent[0]);
}

/* A block moves in pieces where they avoid handshakes. All ranks know its length. */
static int pairwise_pieces(const struct blocks *b, int rank)
{
    struct nbc_ref data = block(b, rank);
    return b->shape->sockets ? nbc_pieces_at_once(b->shape, data, data.count) : 1;
}

/* Returns false behind the last piece. */
static bool piece_of(const struct blocks *b, int rank, int g, struct nbc_ref *piece)
{
    int pieces = pairwise_pieces(b, rank);
    *piece = nbc_ref_split(b->shape, block(b, rank), pieces, g < pieces ? g : 0);
    return g < pieces && nbc_has_bytes(b->shape, *piece);
}

/* Returns an id that is done when all sends are; in place only. */
static nbc_id send_blocks(struct blocks *b)
{
    int rank = b->shape->rank, size = b->shape->size;
    struct nbc_window out = {0};
    nbc_id all_sent = NBC_NONE;
    bool more = true;
    for (int g = 0; more; g++) {
        more = false;
        for (int i = 1; i < size; i++) {
            int peer = (rank + i) % size;
            struct nbc_ref piece;
            if (!piece_of(b, peer, g, &piece))
                continue;
            nbc_id sent = nbc_send(b->s, piece, peer, NBC_NONE);
            nbc_window_add(b->s, &out, sent);
            all_sent = also(b, all_sent, sent);
            more = true;
        }
    }
    return all_sent;
}

/* Pairwise exchange: every rank sends each other rank its block, and reduces the blocks that it
 * receives, in descending cyclic order from the rank below; in rank order, from rank 0 on. Nothing
 * is forwarded.
 *
 *   rank   0               1               2               3
 *          B→1, C→2, D→3   C→2, D→3, A→0   D→3, A→0, B→1   A→0, B→1, C→2
 *
 * Cost: P/8 α + 2 (P − 2) o + (P − 1)/P (nβ + nγ), any P: at most 8 sends are in flight. Temporary:
 * P − 1 blocks up to 128 KiB in all, else 8. For large blocks, and for small ones
 * on a few ranks. Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations
 * in MPICH", 2005. */
void nbc_reduce_scatter_pairwise(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct blocks blocks, *b = &blocks;
    if (!open_blocks(b, s, shape))
        return;
    int rank = b->shape->rank, size = b->shape->size, pieces = pairwise_pieces(b, rank);
    nbc_id all_sent = send_blocks(b), ready = NBC_NONE;
    struct nbc_ref piece, place = result_room(b);
    if (!piece_of(b, rank, 0, &piece))
        return;
    struct nbc_room room = nbc_room_new(b->shape, piece, (int64_t)size * pieces, NBC_ROOM_LIMIT);
    for (int g = 0; piece_of(b, rank, g, &piece); g++) {
        struct nbc_acc acc = whole(b);
        acc.at = piece;
        nbc_reduce_from_all(b->s, b->shape, &room, &acc, nbc_ref_split(b->shape, place, pieces, g));
        ready = nbc_join(b->s, ready, acc.ready);
    }
    keep_block(b, place, ready, all_sent);
}

/* A rank that folds away: sends its vector to its partner, receives its result from `from`. */
static void hand_over(struct blocks *b, int partner, int from)
{
    nbc_id sent = nbc_send(b->s, b->input, partner, NBC_NONE);
    if (nbc_has_bytes(b->shape, b->result))
        nbc_recv(b->s, b->result, from, b->shape->in_place ? sent : NBC_NONE);
}

/* Sends the blocks of virtual rank `part` to their ranks; keeps this rank's own. */
static void distribute(struct blocks *b, const struct nbc_fold *fold, int part,
                       const struct nbc_acc *acc, nbc_id input_sent)
{
    int first = nbc_first_of(fold, part), end = nbc_first_of(fold, part + 1);
    /* mutants: one element less: only its blocks are used */
    struct nbc_ref vector = nbc_ref_part(b->shape, acc->at, -first_of(b, first), b->input.count);
    for (int to = first; to < end; to++) {
        struct nbc_ref data = blocks_at(b, vector, to, 1);
        if (to == b->shape->rank)
            keep_block(b, data, acc->ready, input_sent);
        else if (nbc_has_bytes(b->shape, data))
            nbc_send(b->s, data, to, acc->ready);
    }
}

/* Recursive doubling: every rank reduces whole vectors, as in allreduce, and keeps its block.
 *
 *   rank   0         1         2         3
 *          0 ↔ 1 ABCD          2 ↔ 3 ABCD
 *          0 ↔ 2 ABCD, 1 ↔ 3 ABCD
 *
 * Cost: log₂P (α + nβ + nγ), with α + nβ + nγ and a block more when P is not a power of two. Keeps
 * rank order with the fewest rounds. Temporary: 1 + log₂P vectors up to 128 KiB in all, else
 * three. For small vectors and non-commutative operators. Thakur, Rabenseifner,
 * Gropp, "Optimization of collective communication operations in MPICH", 2005. */
void nbc_reduce_scatter_recursive_doubling(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct blocks blocks, *b = &blocks;
    if (!open_blocks(b, s, shape))
        return;
    int radix[32], nrounds = 0;
    struct nbc_fold fold = nbc_fold(b->shape->rank, b->shape->size);
    if (fold.virtual < 0) {
        hand_over(b, fold.partner, fold.partner);
        return;
    }
    while (1 << nrounds < fold.onto)
        radix[nrounds++] = 2;
    struct nbc_acc acc = whole(b);
    struct nbc_exchange x = {b->shape, &fold, radix, nrounds, nbc_temp_like(b->s, b->input)};
    nbc_id input_sent = nbc_exchange(b->s, &x, &acc);
    int first = nbc_first_of(&fold, fold.virtual), end = nbc_first_of(&fold, fold.virtual + 1);
    acc.at = blocks_at(b, acc.at, first, end - first);
    distribute(b, &fold, fold.virtual, &acc, input_sent);
}

/* The blocks as the parts of a halving, one part per virtual rank. */
struct parts {
    const struct blocks *b;
    const struct nbc_fold *fold;
};

static int64_t part_start(const void *layout, int part)
{
    const struct parts *p = layout;
    return first_of(p->b, nbc_first_of(p->fold, part));
}

enum butterfly { NEAR_FIRST, FAR_FIRST, BINE };

static void halves(struct nbc_sched *s, const struct nbc_shape *shape, enum butterfly kind)
{
    struct blocks blocks, *b = &blocks;
    if (!open_blocks(b, s, shape))
        return;
    int rank = b->shape->rank;
    struct nbc_fold fold = nbc_fold(rank, b->shape->size);
    fold.far_first = kind == FAR_FIRST;
    fold.bine = kind == BINE;
    /* The rank that will have this rank's block: by its virtual rank, or the one it folds onto. */
    /* mutants: <= for <: both ways give 0 */
    int virtual = fold.virtual < 0 ? rank / 2 : fold.virtual;
    int from = nbc_unfold(&fold, nbc_butterfly_holder(&fold, virtual));
    if (fold.virtual < 0) {
        hand_over(b, fold.partner, from);
        return;
    }
    struct nbc_acc acc = whole(b);
    struct parts parts = {b, &fold};
    struct nbc_halving h = {
        .shape = b->shape, .fold = &fold, .first = part_start, .layout = &parts};
    if (fold.far_first && !fold.takes && !b->shape->in_place)
        h.result = &b->result;
    if (fold.takes)
        nbc_take_over(b->s, b->shape, &fold, &acc, nbc_temp_like(s, acc.at), NULL);
    else if (!h.result || fold.onto > 2) /* else no half needs a place of its own */
        nbc_halving_home(b->s, &h, b->input);
    /* mutants: >= for >: fold.onto is 1 on one rank alone, which does not get here */
    bool sends_input = !acc.writable && fold.onto > 1;
    nbc_halve(b->s, &h, &acc);
    nbc_id input_sent = sends_input ? h.sent[0] : NBC_NONE;
    distribute(b, &fold, h.part, &acc, input_sent);
    if (from == rank || !nbc_has_bytes(b->shape, b->result))
        return;
    bool late = b->shape->in_place; /* the result goes where the input was */
    nbc_id received = nbc_recv(b->s, b->result, from, late ? acc.ready : NBC_NONE);
    if (late)
        nbc_after(b->s, received, input_sent);
}

/* Butterfly: vector halving with distance doubling, which keeps the order of ranks but leaves the
 * blocks in bit-reversed order; then each goes to its owner. Ranks beyond a power of two fold onto
 * a neighbor.
 *
 *   rank   0         1         2         3
 *   k = 0  0 ↔ 1 CD, AB        2 ↔ 3 CD, AB
 *   k = 1  0 ↔ 2 B, A   1 ↔ 3 D, C                  now 0 has A, 1 has C, 2 has B, 3 has D
 *          1 ↔ 2 C, B
 *
 * Cost: (1 + log₂P) α + (P − 1)/P (nβ + nγ) and a block, with α + nβ + nγ more when P is not a
 * power of two. Temporary: one vector, half a vector more for non-commutative operators; one or two
 * more for a rank that another folds onto. For medium vectors and non-commutative operators.
 * Träff, "An improved algorithm for (non-commutative) reduce-scatter with an application", 2005. */
NBC_VARIANT(reduce_scatter_butterfly, halves, NEAR_FIRST)

/* Recursive halving. In each round, at half the previous distance, two ranks send each other the
 * half of their common blocks that is on the other's side, and reduce the other half; in the end
 * that is their own block. Ranks beyond a power of two fold onto a neighbor, which reduces the
 * blocks of both.
 *
 *   rank   0         1         2         3
 *          0 ↔ 2 CD, AB        1 ↔ 3 CD, AB
 *          0 ↔ 1 B, A          2 ↔ 3 D, C
 *
 * Cost: log₂P α + (P − 1)/P (nβ + nγ), with α + nβ + nγ and a block more when P is not a power of
 * two. For commutative operators. Temporary: less than one vector, two for a rank that another
 * folds onto. For small and medium vectors. Thakur, Rabenseifner, Gropp, "Optimization of
 * collective communication operations in MPICH", 2005. */
NBC_VARIANT(reduce_scatter_recursive_halving, halves, FAR_FIRST)

/* Bine butterfly: as butterfly, with nearer partners, for commutative operators.
 *
 *   8 ranks, k = 0   0 ↔ 1    2 ↔ 3    4 ↔ 5    6 ↔ 7    halves
 *            k = 1   0 ↔ 7    1 ↔ 2    3 ↔ 4    5 ↔ 6    quarters
 *            k = 2   0 ↔ 3    1 ↔ 6    2 ↔ 5    4 ↔ 7    eighths, then to their owners
 *                    1 → 4 E  2 → 6 G  3 → 1 B  4 → 3 D  5 → 7 H  6 → 5 F  7 → 2 C
 *
 * Cost: as butterfly. For medium vectors of ranks in groups with few links between
 * them, if the groups do not begin at multiples of a power of two (doc/scaling.md). The rules of
 * doc/tuning/groups select it. De Sensi et al., "Bine trees: enhancing
 * collective operations by optimizing communication locality", 2025. */
NBC_VARIANT(reduce_scatter_bine, halves, BINE)

/* Ring. The partial result of block i starts at the rank above i and moves around the ring to rank
 * i; each rank reduces its block into it. Large blocks are divided into pieces that move
 * independently: a piece is reduced while the next one is in flight, and while it is in the cache.
 *
 *   rank   0       1       2       3
 *          D0      A1      B2      C3      to the right, there
 *          C30     D01     A12     B23     to the right, there
 *          B230    C301    D012    A123    to the right, where 0 has all of A, 1 of B, …
 *
 * Cost: (P − 1) α + (P − 1)/P (nβ + nγ), any P, commutative operators; only neighbors communicate.
 * Temporary: the incoming block of each step, at most 8 pieces from 128 KiB on; in place one block
 * more. For the largest blocks. Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", 2009. */
void nbc_reduce_scatter_ring(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct blocks blocks, *b = &blocks;
    if (!open_blocks(b, s, shape))
        return;
    struct nbc_ref kept = result_room(b);
    struct nbc_circulant ring = circulant_of(b, kept, first_of(b, b->shape->rank));
    keep_block(b, kept, nbc_ring(s, &ring, false), NBC_NONE);
}
