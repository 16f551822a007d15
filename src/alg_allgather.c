/* SPDX-License-Identifier: MIT */
/* Allgather: every rank has a block, which all ranks receive. */
#include "bytes.h"
#include "select.h"
#include "topo.h"

/* All builders here serve allgather and allgatherv. By the standard's matching rules the bytes of a
 * block are the same on all ranks; its place may differ. A message of several blocks holds their
 * bytes in the order of ranks, whatever the layout on either side. Messages without bytes are not
 * sent, which both sides know. */

static int64_t bytes_of(const struct nbc_shape *shape, int first, int n)
{
    if (!shape->recv.counts.data)
        return n *
               nbc_ref_bytes(shape, nbc_recv_block(shape, 0)); /* all blocks have the same size */
    int64_t count = 0;
    for (int i = 0; i < n; i++)
        count += nbc_ints_at(shape->recv.counts, first + i);
    return count * shape->types[shape->recv.type].size;
}

/* Whether n blocks are contiguous in the receive buffer; if so, *all is set to them. */
static bool adjacent(const struct nbc_shape *shape, int first, int n, struct nbc_ref *all)
{
    int64_t extent = shape->types[shape->recv.type].extent;
    *all = nbc_recv_block(shape, first);
    if (!shape->recv.counts.data) {
        all->count *= n;
        return true;
    }
    for (int i = 1; i < n; i++) {
        struct nbc_ref b = nbc_recv_block(shape, first + i);
        if (b.count == 0)
            continue; /* its displacement is not significant */
        if (all->count == 0)
            all->off = b.off;
        else if (b.off != all->off + all->count * extent)
            return false;
        all->count += b.count;
    }
    return true;
}

static nbc_id keep_own(struct nbc_sched *s, const struct nbc_shape *shape)
{
    return nbc_copy(s, nbc_recv_block(shape, shape->rank), nbc_send_block(shape, 0), NBC_NONE);
}

/* The operations that are done when the data gathered so far is there. */
struct have {
    nbc_id id[34];
    int n;
};

static void have_add(struct have *h, nbc_id id)
{
    h->id[h->n++] = id;
}

static void after_all(struct nbc_sched *s, nbc_id op, const struct have *h)
{
    nbc_after_all(s, op, h->id, h->n);
}

/* Copies n blocks, held as bytes, to the receive buffer: at once if they are contiguous there. */
static void deliver(struct nbc_sched *s, const struct nbc_shape *shape, int first, int n,
                    struct nbc_ref bytes, const struct have *after)
{
    struct nbc_ref all;
    if (bytes.count == 0)
        return;
    if (adjacent(shape, first, n, &all)) {
        after_all(s, nbc_copy(s, all, bytes, NBC_NONE), after);
        return;
    }
    int64_t off = 0;
    for (int i = 0; i < n; i++) {
        struct nbc_ref block = nbc_recv_block(shape, first + i);
        int64_t size = nbc_ref_bytes(shape, block);
        after_all(s, nbc_copy(s, block, nbc_byte_range(bytes, off, size), NBC_NONE), after);
        off += size;
    }
}

/* The same if, in addition, a message of n blocks may be received there as elements: a rank whose
 * blocks are not contiguous sends them as bytes. (In an allgather they are, on all ranks.) */
static bool direct(const struct nbc_shape *shape, int first, int n, struct nbc_ref *all)
{
    bool may_be_bytes = shape->recv.counts.data && !shape->types[shape->recv.type].packed;
    return !may_be_bytes && adjacent(shape, first, n, all);
}

/* The source and destination of messages of several blocks: the receive buffer, if the blocks are
 * in it without gaps in the order of ranks; else all blocks as bytes in temporary space. */
struct area {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    struct nbc_ref temp;
    int64_t *start; /* of each block in `temp`, and the end; NULL: the receive buffer */
};

static struct area area_new(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct area a = {.shape = shape, .s = s};
    struct nbc_ref all;
    if (!direct(shape, 0, shape->size, &all))
        a.start = nbc_scratch(s, (size_t)shape->size + 1, sizeof *a.start);
    if (!a.start)
        return a;
    a.start[0] = 0;
    for (int i = 0; i < shape->size; i++)
        a.start[i + 1] = a.start[i] + bytes_of(shape, i, 1);
    a.temp = nbc_temp_bytes(s, a.start[shape->size]);
    return a;
}

static struct nbc_ref area_blocks(const struct area *a, int first, int n)
{
    struct nbc_ref all;
    if (a->start)
        return nbc_byte_range(a->temp, a->start[first], a->start[first + n] - a->start[first]);
    adjacent(a->shape, first, n, &all);
    return all;
}

static void area_send(const struct area *a, int first, int n, int peer, const struct have *after)
{
    struct nbc_ref data = area_blocks(a, first, n);
    if (nbc_has_bytes(a->shape, data))
        after_all(a->s, nbc_send(a->s, data, peer, NBC_NONE), after);
}

/* Receives n blocks and emits the copies to the receive buffer that they need. */
static nbc_id area_recv(const struct area *a, int first, int n, int peer, nbc_id after)
{
    struct nbc_ref data = area_blocks(a, first, n);
    if (!nbc_has_bytes(a->shape, data))
        return NBC_NONE;
    nbc_id got = nbc_recv(a->s, data, peer, after);
    if (a->start)
        deliver(a->s, a->shape, first, n, data, &(struct have){{got}, 1});
    return got;
}

/* Copies this rank's block to the area, and to the receive buffer. */
static nbc_id area_own(const struct area *a)
{
    nbc_id kept = keep_own(a->s, a->shape);
    if (!a->start)
        return kept;
    return nbc_copy(a->s, area_blocks(a, a->shape->rank, 1), nbc_send_block(a->shape, 0), NBC_NONE);
}

static nbc_id send_own(struct nbc_sched *s, const struct nbc_shape *shape, int peer)
{
    struct nbc_ref mine = nbc_send_block(shape, 0);
    return nbc_has_bytes(shape, mine) ? nbc_send(s, mine, peer, NBC_NONE) : NBC_NONE;
}

/* A rank that folds away: sends its block to its partner, receives all blocks. */
static void hand_over(struct area *a)
{
    int rank = a->shape->rank;
    nbc_id sent = send_own(a->s, a->shape, rank + 1);
    /* All blocks include its own, which in place is the one being sent. */
    area_recv(a, 0, a->shape->size, rank + 1, a->shape->in_place ? sent : NBC_NONE);
}

/* Round `bit` of recursive doubling, at a rank that began with the blocks of virtual rank `place`:
 * exchanges the blocks of its group for those of the partner's. Those of this rank, if it gave them
 * away, come back after `given`. */
static void double_group(const struct area *a, const struct nbc_fold *f, int place, int partner,
                         int bit, nbc_id given, struct have *have)
{
    int mine = place & -bit, theirs = mine ^ bit;
    int low = nbc_first_of(f, mine), n = nbc_first_of(f, mine + bit) - low;
    int low2 = nbc_first_of(f, theirs), n2 = nbc_first_of(f, theirs + bit) - low2;
    bool back = (f->virtual & -bit) == theirs;
    if (n > 1 || place != f->virtual) {
        area_send(a, low, n, partner, have);
        have_add(have, area_recv(a, low2, n2, partner, back ? given : NBC_NONE));
        return;
    }
    /* In the first round, this rank's block is sent before it is copied to its place. */
    send_own(a->s, a->shape, partner);
    have_add(have, area_recv(a, low2, n2, partner, NBC_NONE));
    have_add(have, area_own(a));
}

static void doubling(struct nbc_sched *s, const struct nbc_shape *shape, bool bine)
{
    int rank = shape->rank, rounds = nbc_log2_ceil(nbc_pow2_floor(shape->size));
    struct nbc_fold fold = nbc_fold(rank, shape->size);
    fold.bine = bine;
    fold.far_first = !bine;
    struct area a = area_new(s, shape);
    struct have have = {.n = 0};
    nbc_id given = NBC_NONE;
    if (fold.virtual < 0) {
        hand_over(&a);
        return;
    }
    int place = nbc_butterfly_part(&fold);
    if (place != fold.virtual) {
        nbc_id sent = send_own(s, shape, nbc_butterfly_holder(&fold, rank));
        given = shape->in_place ? sent : NBC_NONE;
        have_add(&have, area_recv(&a, place, 1, place, NBC_NONE));
    }
    if (fold.takes)
        have_add(&have, area_recv(&a, rank - 1, 1, rank - 1, NBC_NONE));
    if (fold.takes || rounds == 0)
        have_add(&have, area_own(&a));
    for (int k = rounds - 1, bit = 1; k >= 0; k--, bit *= 2) {
        int partner = nbc_unfold(&fold, nbc_butterfly_partner(&fold, k));
        double_group(&a, &fold, place, partner, bit, given, &have);
    }
    if (fold.takes)
        area_send(&a, 0, shape->size, rank - 1, &have);
}

/* Recursive doubling. In round k ranks that differ in bit k exchange the 2^k blocks that their
 * group has by now. When P is not a power of two, ranks beyond it first send their block to a
 * neighbor, which in the end sends all blocks back; groups stay contiguous ranges of ranks.
 *
 *   rank   0       1       2       3
 *   k = 0  0 ↔ 1 A, B      2 ↔ 3 C, D
 *   k = 1  0 ↔ 2 AB, CD    1 ↔ 3 AB, CD
 *
 * Cost: log₂P α + (P − 1) nβ, n the bytes of a block; otherwise ⌊log₂P⌋ α + 2α + 3 (P − 1) nβ. For
 * small and medium blocks and powers of two. Thakur, Rabenseifner, Gropp, "Optimization of
 * collective communication operations in MPICH", 2005. */
NBC_VARIANT(allgather_recursive_doubling, doubling, false)

/* Bine butterfly, the longest distances first, so that most blocks go to the nearest partners.
 * Blocks of a group are contiguous in the order of nbc_butterfly_part, so each rank first sends its
 * block to the rank whose place it has in that order. From there on it is recursive doubling.
 *
 *   8 ranks   1 → 3 B           2 → 7 C           3 → 4 D     4 → 1 E   5 → 6 F   6 → 2 G   7 → 5 H
 *   k = 2     0 ↔ 3 A, B        1 ↔ 6 E, F        2 ↔ 5 G, H       4 ↔ 7 D, C
 *   k = 1     0 ↔ 7 AB, CD      1 ↔ 2 EF, GH      3 ↔ 4 AB, CD     5 ↔ 6 GH, EF
 *   k = 0     0 ↔ 1 ABCD, EFGH  and so on
 *
 * Cost: (1 + log₂P) α + (P − 1) nβ and a block, powers of two. For medium blocks of ranks in groups
 * with few links between them. De Sensi et al., "Bine trees: enhancing collective operations by
 * optimizing communication locality", 2025. */
NBC_VARIANT(allgather_bine, doubling, true)

/* Returns the bytes of n blocks, from this rank's own on, in cyclic order. */
static int64_t rotated_bytes(const struct nbc_shape *shape, int n)
{
    int above = shape->size - shape->rank;
    if (n <= above) /* mutants: < for <=: both ways give one number */
        return bytes_of(shape, shape->rank, n);
    return bytes_of(shape, shape->rank, above) + bytes_of(shape, 0, n - above);
}

/* Bruck. A rank keeps the blocks in temporary space, in cyclic order from its own. In round k it
 * sends the 2^k blocks that it has to the rank 2^k below and receives as many from the rank 2^k
 * above, in the last round only the missing ones. In the end it rotates them to their places.
 *
 *   rank    0     1     2     3
 *   n = 1   AB    BC    CD    DA      from 1, 2, 3, 0
 *   n = 2   ABCD  BCDA  CDAB  DABC    from 2, 3, 0, 1
 *
 * Cost: ⌈log₂P⌉ α + (P − 1) nβ, any P, and each rank copies P blocks twice. For small blocks where
 * P is no power of two. Bruck et al., "Efficient algorithms for all-to-all communications in
 * multiport message-passing systems", 1997. */
void nbc_allgather_bruck(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank, size = shape->size, above = size - rank;
    int64_t own = bytes_of(shape, rank, 1), held = own;
    struct nbc_ref all = nbc_temp_bytes(s, rotated_bytes(shape, size));
    struct have have = {.n = 0};
    for (int n = 1; n < size; n *= 2) {
        int count = n < size - n ? n : size - n, below = nbc_relative(rank, n, size);
        int64_t out = count == n ? held : rotated_bytes(shape, count);
        int64_t more = rotated_bytes(shape, n + count) - held;
        struct nbc_ref give = nbc_byte_range(all, 0, out), get = nbc_byte_range(all, held, more);
        if (n == 1)
            send_own(s, shape, below);
        else if (out > 0)
            after_all(s, nbc_send(s, give, below, NBC_NONE), &have);
        if (more > 0)
            have_add(&have, nbc_recv(s, get, (rank + n) % size, NBC_NONE));
        if (n == 1 && size > 2) /* after the first messages, which do not need the copy */
            have_add(&have, nbc_copy(s, give, nbc_send_block(shape, 0), NBC_NONE));
        held += more;
    }
    int64_t upper = rotated_bytes(shape, above);
    keep_own(s, shape);
    deliver(s, shape, rank + 1, above - 1, nbc_byte_range(all, own, upper - own), &have);
    deliver(s, shape, 0, rank, nbc_byte_range(all, upper, all.count - upper), &have);
}

/* Ring. Every rank sends its block to the right and forwards each block that arrives from the left.
 * Blocks are received in their places.
 *
 *   0 → 1 A, D, C    1 → 2 B, A, D    2 → 3 C, B, A    3 → 0 D, C, B
 *
 * Cost: (P − 1) (α + nβ), any P; only neighbors communicate. For large blocks. Chan, Heimlich,
 * Purkayastha, van de Geijn, "Collective communication: theory, practice, and experience", 2007. */
void nbc_allgather_ring(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank, size = shape->size;
    int left = nbc_relative(rank, 1, size), right = (rank + 1) % size;
    struct nbc_window in = {0};
    struct nbc_ref data = nbc_send_block(shape, 0);
    nbc_id there = NBC_NONE;
    for (int i = 1; i < size; i++) {
        if (nbc_has_bytes(shape, data))
            nbc_send(s, data, right, there);
        data = nbc_recv_block(shape, nbc_relative(rank, i, size));
        if (!nbc_has_bytes(shape, data))
            continue;
        there = nbc_recv(s, data, left, NBC_NONE);
        nbc_window_add(s, &in, there);
    }
    keep_own(s, shape);
}

/* Linear: every rank sends its block to every other, beginning with the next higher one, so that no
 * rank is the first destination of all.
 *
 *   rank   0       1       2       3
 *   sends  1, 2, 3 2, 3, 0 3, 0, 1 0, 1, 2
 *
 * Cost: α + 2 (P − 2) o + (P − 1) nβ, any P. For a few ranks. */
void nbc_allgather_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank, size = shape->size;
    struct nbc_bytes own = {.raw = nbc_send_block(shape, 0), .last = NBC_NONE};
    int64_t bytes = nbc_ref_bytes(shape, own.raw);
    if (nbc_block_pieces(shape, bytes) > 1) { /* packed once */
        own = nbc_bytes_of(s, shape, own.raw);
        nbc_bytes_pack(s, &own, bytes);
    }
    for (int i = 1; i < size; i++)
        nbc_move_pieces(s, shape, false, own.raw, (rank + i) % size, own.last);
    for (int i = 1; i < size; i++) {
        int peer = nbc_relative(rank, i, size);
        nbc_move_pieces(s, shape, true, nbc_recv_block(shape, peer), peer, NBC_NONE);
    }
    keep_own(s, shape);
}

/* What sparbit knows of each block: when it is here. */
struct arrivals {
    struct nbc_sched *s;
    const struct nbc_shape *shape;
    nbc_id *at; /* of the block of the rank that is so far below */
};

/* The block of the rank that is `below` this one: here it is sent to the rank that is `far` above,
 * and the block that is as far below the rank `far` below is received from that. */
static void sparbit_pass(struct arrivals *a, int below, int far)
{
    const struct nbc_shape *shape = a->shape;
    int rank = shape->rank, size = shape->size;
    struct nbc_ref ours = below == 0 ? nbc_send_block(shape, 0)
                                     : nbc_recv_block(shape, nbc_relative(rank, below, size));
    struct nbc_ref theirs = nbc_recv_block(shape, nbc_relative(rank, below + far, size));
    nbc_move_pieces(a->s, shape, false, ours, (rank + far) % size, a->at[below]);
    a->at[below + far] =
        nbc_move_pieces(a->s, shape, true, theirs, nbc_relative(rank, far, size), NBC_NONE);
}

/* Sparbit: a binomial tree from each rank, all at once, the longest distances first. At the
 * distance d a rank sends to the one d above what it has received at longer distances: the blocks
 * of every second d-th rank at and below it. Each is a message, which goes on as soon as it has
 * arrived.
 *
 *   rank    0        1        2        3
 *   d = 2   2 A      3 B      0 C      1 D
 *   d = 1   1 A, C   2 B, D   3 C, A   0 D, B
 *
 * Cost: ⌊log₂P⌋ α + 2 (P − 2) o + (P − 1) nβ, any P; ⌊P/2⌋ messages to the next rank follow one
 * another. One of a rank's messages goes the longest way, two go half as far, and so on: most stay
 * below one leaf switch. For medium and large blocks on many ranks. Loch, Koslovski, "Sparbit: a
 * new logarithmic-cost and data locality-aware MPI Allgather algorithm", 2021. */
void nbc_allgather_sparbit(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int size = shape->size, longest = size > 1 ? nbc_pow2_floor(size - 1) : 0;
    struct arrivals a = {.s = s, .shape = shape};
    a.at = nbc_scratch(s, (size_t)size, sizeof *a.at);
    if (!a.at)
        return;
    a.at[0] = NBC_NONE;
    for (int far = longest; far > 0; far /= 2) {
        sparbit_pass(&a, 0, far);
        for (int step = longest; step > far; step /= 2) /* in the order of arrival */
            for (int below = step; below < size - far; below += 2 * step)
                sparbit_pass(&a, below, far);
    }
    keep_own(s, shape);
}

/* Neighbor exchange. Ranks 2p and 2p + 1 first exchange their blocks. Then every rank exchanges
 * alternately with its neighbor outside and inside the pair, and sends the pair of blocks that it
 * received last.
 *
 *   rank   0       1       2       3
 *   first  0 ↔ 1 A, B      2 ↔ 3 C, D
 *   then   1 ↔ 2 AB, CD    3 ↔ 0 CD, AB
 *
 * Cost: P/2 α + (P − 1) nβ, even P: half the rounds of a ring. For medium and large blocks. Chen,
 * Zhang, Zhang, Yuan, "Performance evaluation of allgather algorithms on terascale Linux cluster
 * with fast Ethernet", 2005. */
void nbc_allgather_neighbor_exchange(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int rank = shape->rank, size = shape->size, npairs = size / 2, mate = rank ^ 1, last = rank / 2;
    bool even = rank % 2 == 0;
    struct area a = area_new(s, shape);
    struct have have = {.n = 0};
    send_own(s, shape, mate);
    have_add(&have, area_recv(&a, mate, 1, mate, NBC_NONE));
    have_add(&have, area_own(&a));
    for (int i = 1; i < npairs; i++) {
        /* Pairs arrive alternately from below and above, from increasing distances; for an odd rank
         * the directions are swapped. */
        bool outside = i % 2 == 1, below = outside == even;
        int far = (i + 1) / 2 % npairs;
        int peer = below ? nbc_relative(rank, 1, size) : (rank + 1) % size;
        area_send(&a, 2 * last, 2, peer, &have);
        last = below ? nbc_relative(rank / 2, far, npairs) : (rank / 2 + far) % npairs;
        have = (struct have){{area_recv(&a, 2 * last, 2, peer, NBC_NONE)}, 1};
    }
}
