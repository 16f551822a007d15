/* SPDX-License-Identifier: MIT */
/* Allreduce: the vectors of all ranks are combined, and all ranks receive the result. */
#include "circulant.h"
#include "reduction.h"
#include "select.h"

enum { MAX_ROUNDS = 32 };

/* Whether this rank takes part in an exchange of virtual ranks. A rank that folds away sends its
 * vector to its partner, and receives the result. */
static bool takes_part(struct nbc_sched *s, const struct nbc_shape *shape,
                       const struct nbc_fold *fold)
{
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    if (!nbc_has_bytes(shape, result) || fold->virtual >= 0)
        return nbc_has_bytes(shape, result);
    nbc_id sent = nbc_send(s, input, fold->partner, NBC_NONE);
    nbc_recv(s, result, fold->partner, shape->in_place ? sent : NBC_NONE);
    return false;
}

/* The exchange (nbc_exchange) with the given radices. Their product is the number of virtual ranks;
 * the other ranks fold onto these. */
static void exchange(struct nbc_sched *s, const struct nbc_shape *shape, int onto, const int *radix,
                     int nrounds)
{
    struct nbc_fold fold = nbc_fold_onto(shape->rank, shape->size, onto, -1);
    struct nbc_ref result = nbc_recv_block(shape, 0);
    if (!takes_part(s, shape, &fold))
        return;
    struct nbc_exchange x = {shape, &fold, radix, nrounds, result};
    struct nbc_acc acc = nbc_acc_input(shape);
    nbc_exchange(s, &x, &acc);
    if (fold.takes)
        nbc_send(s, result, fold.partner, acc.ready);
}

/* Recursive doubling. Ranks beyond a power of two first fold onto a neighbor; then in round k
 * virtual ranks that differ in bit k exchange their whole partial results and both reduce them;
 * in the end the folded ranks receive the result. Partial results cover contiguous ranges of ranks
 * and the lower one is the left operand: this keeps rank order and yields the same bits everywhere.
 *
 *   rank   0      1      2      3
 *   k = 0  0 ↔ 1         2 ↔ 3
 *   k = 1  0 ↔ 2, 1 ↔ 3
 *
 * Cost: log₂P (α + nβ + nγ), with 2 (α + nβ) + nγ more when P is not a power of two. Temporary:
 * log₂P vectors up to 128 KiB in all, else two. For small vectors. Thakur,
 * Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005. */
void nbc_allreduce_recursive_doubling(struct nbc_sched *s, const struct nbc_shape *shape)
{
    static const int radix[MAX_ROUNDS] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
                                          2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    int onto = nbc_pow2_floor(shape->size);
    exchange(s, shape, onto, radix, nbc_log2_ceil(onto));
}

/* Sets `factor` to factors of n from 4, 2, 3, 5 and 7. Returns their number; 0 if n has others. */
static int factors(int n, int *factor)
{
    static const int usable[] = {4, 2, 3, 5, 7};
    int count = 0;
    for (int i = 0; i < 5; i++)
        for (; n % usable[i] == 0; n /= usable[i])
            factor[count++] = usable[i];
    return n == 1 ? count : 0;
}

/* Recursive multiplying: recursive doubling in which groups of four ranks exchange all with all,
 * which halves the rounds; also groups of 2, 3, 5 or 7, as the factors of P require. Ranks fold
 * away only if P has a larger prime factor, and then as few as possible.
 *
 *   rank   0            1            2            3
 *   t = 0  → 1, 2, 3    → 2, 3, 0    → 3, 0, 1    → 0, 1, 2
 *
 * Cost: log₄P (α + 4o + 3nβ + 3nγ) for powers of four, o the time a processor is busy with a
 * message. Temporary: all incoming vectors up to 128 KiB in all, else as many as the largest
 * group has ranks. For the smallest vectors. Ruefenacht, Bull, Booth, "Generalisation
 * of recursive doubling for AllReduce", 2017. */
void nbc_allreduce_recursive_multiplying(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int radix[MAX_ROUNDS], onto = shape->size, nrounds = 0;
    while (onto > 1 && (nrounds = factors(onto, radix)) == 0)
        onto--;
    exchange(s, shape, onto, radix, nrounds);
}

/* One round: every rank sends its vector to every other and reduces all of them.
 *
 *   rank   0            1            2            3
 *          → 1, 2, 3    → 2, 3, 0    → 3, 0, 1    → 0, 1, 2
 *
 * Cost: α + 2 (P − 2) o + (P − 1) (nβ + nγ). Temporary: P − 2 vectors, P − 1 in place. For the
 * smallest vectors on a few ranks, in particular on ranks that share processors, where every round
 * is a context switch. Recursive multiplying with one round; the same paper. */
NBC_VARIANT(allreduce_one_round, exchange, shape->size, &shape->size, 1)

/* Reduce-scatter by halving, then allgather by doubling. */
static void halve_and_double(struct nbc_sched *s, const struct nbc_shape *shape, bool bine)
{
    struct nbc_fold fold = nbc_fold(shape->rank, shape->size);
    fold.bine = bine;
    struct nbc_ref result = nbc_recv_block(shape, 0);
    if (!takes_part(s, shape, &fold))
        return;
    struct nbc_acc acc = nbc_acc_input(shape);
    if (fold.takes)
        nbc_take_over(s, shape, &fold, &acc, result, NULL);
    struct nbc_halving h = {.shape = shape, .fold = &fold, .home = result};
    nbc_halve(s, &h, &acc);
    nbc_gather_halves(s, &h, &acc, -1);
}

/* Rabenseifner's algorithm: reduce-scatter, then allgather. In round k ranks that differ in bit k
 * each reduce one half of what they still share; then the rounds run backwards and the parts are
 * put together. Distances double while vectors halve, so partial results cover contiguous ranges
 * of ranks and the order of ranks is kept. Ranks beyond a power of two fold onto a neighbor.
 *
 *   rank   0         1         2         3          parts AB are the lower half, CD the upper
 *   k = 0  0 ↔ 1 CD, AB        2 ↔ 3 CD, AB
 *   k = 1  0 ↔ 2 B, A   1 ↔ 3 D, C                  then 0 has A, 1 has C, 2 has B, 3 has D
 *          0 ↔ 2 A, B   1 ↔ 3 C, D
 *          0 ↔ 1 AB, CD        2 ↔ 3 AB, CD
 *
 * Cost: 2 log₂P α + (P − 1)/P (2nβ + nγ), with 2 (α + nβ) + nγ more when P is not a power of two.
 * Temporary: half a vector; in place, and for non-commutative operators, one; one more for
 * these when P is not a power of two. For large vectors. Rabenseifner, "Optimization of collective
 * reduction operations", 2004. */
NBC_VARIANT(allreduce_rabenseifner, halve_and_double, false)

/* Bine butterfly: as Rabenseifner's algorithm, with nearer partners. Partial results are not ranges
 * of ranks, so the operator must be commutative. Every part is reduced on one rank, which yields
 * the same bits everywhere; recursive doubling on this butterfly would not: its ranks combine in
 * different orders.
 *
 *   8 ranks, k = 0   0 ↔ 1    2 ↔ 3    4 ↔ 5    6 ↔ 7    halves
 *            k = 1   0 ↔ 7    1 ↔ 2    3 ↔ 4    5 ↔ 6    quarters
 *            k = 2   0 ↔ 3    1 ↔ 6    2 ↔ 5    4 ↔ 7    eighths, and back
 *
 * Cost: as Rabenseifner's. For large vectors of ranks in groups with few links between
 * them, if the groups do not begin at multiples of a power of two (doc/scaling.md). The rules of
 * doc/tuning/groups select it. De Sensi et al., "Bine trees: enhancing
 * collective operations by optimizing communication locality", 2025. */
NBC_VARIANT(allreduce_bine, halve_and_double, true)

static int64_t circulant_part(const void *layout, int part)
{
    const struct nbc_shape *shape = layout;
    return nbc_part_start(nbc_send_block(shape, 0).count, shape->size, part);
}

/* The vector in P parts of nearly equal length. */
static struct nbc_circulant vector_of(const struct nbc_shape *shape)
{
    return (struct nbc_circulant){.shape = shape,
                                  .first = circulant_part,
                                  .layout = shape,
                                  .input = nbc_send_block(shape, 0),
                                  .home = nbc_recv_block(shape, 0)};
}

/* Circulant: reduce-scatter and allgather in as many rounds as Rabenseifner's algorithm, but on any
 * number of ranks, without folding. Rank r counts the parts from its own. When s of them are left,
 * it sends those from h = ⌈s/2⌉ on to rank r + h, which reduces them with its first ones. The
 * allgather runs the same rounds in reverse.
 *
 *   rank     0            1            2            3 (D in front, then A, B, C)
 *   s = 4    CD → 2       DA → 3       AB → 0       BC → 1
 *   s = 2    B → 1        C → 2        D → 3        A → 0
 *            A → 3        B → 0        C → 1        D → 2
 *            AB → 2       BC → 3       CD → 0       DA → 1
 *
 * Cost: 2 ⌈log₂P⌉ α + (P − 1)/P (2nβ + nγ), any P, commutative operators; parts that wrap
 * around past the last one are two messages. Temporary: half a vector, in place one. For medium and
 * large vectors on numbers of ranks that are no power of two. Träff, "Optimal, non-pipelined
 * reduce-scatter and allreduce algorithms", 2024. */
void nbc_allreduce_circulant(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_circulant circulant = vector_of(shape);
    if (!nbc_has_bytes(shape, circulant.home))
        return;
    if (shape->size == 1)
        nbc_copy(s, circulant.home, circulant.input, NBC_NONE);
    else
        nbc_circulant_gather(s, &circulant, nbc_circulant_reduce(s, &circulant));
}

/* Ring. The vector has P parts. The partial result of part i starts at the rank above i and moves
 * around the ring to rank i; each rank reduces its part into it. Then the result moves around once
 * more, and all ranks keep it. Large parts are divided into pieces that move independently: a piece
 * is reduced while the next one is in flight, and while it is in the cache.
 *
 *   rank   0       1       2       3
 *                  A1                      and at the same time B from 2, C from 3, D from 0
 *                          A12
 *                                  A123
 *          A0123                           then A moves on to 1, 2 and 3
 *
 * Cost: 2 (P − 1) α + (P − 1)/P (2nβ + nγ), any P, commutative operators; only neighbors
 * communicate. Temporary: the incoming part of each step, at most 8 pieces from 128 KiB on. For the
 * largest vectors. Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", 2009. */
void nbc_allreduce_ring(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_circulant ring = vector_of(shape);
    if (!nbc_has_bytes(shape, ring.home))
        return;
    if (shape->size == 1)
        nbc_copy(s, ring.home, ring.input, NBC_NONE);
    else
        nbc_ring(s, &ring, true);
}
