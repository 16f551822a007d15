/* SPDX-License-Identifier: MIT */
#include "select.h"
#include "topo.h"

/* Recursive doubling. Ranks beyond a power of two first fold onto a neighbor; then in round k
 * virtual ranks that differ in bit k exchange their whole partial results and both reduce them;
 * last the folded ranks get the result. Partial results always cover a contiguous range of ranks
 * and the lower one is the left operand: rank order, the same bits everywhere.
 *
 *   rank   0      1      2      3
 *   k = 0  0↔1           2↔3
 *   k = 1  0↔2, 1↔3
 *
 * Cost: log₂P (α + nβ + nγ), with 2 (α + nβ) + nγ more when P is not a power of two. For small
 * vectors. Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
 * MPICH", 2005. */
struct nbc_sched *nbc_allreduce_recursive_doubling(const struct nbc_shape *shape)
{
    struct nbc_fold fold = nbc_fold(shape->rank, shape->size);
    struct nbc_sched *s = nbc_sched_new(shape, 3 * nbc_log2_ceil(shape->size) + 4);
    if (!s)
        return NULL;
    struct nbc_ref mine = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    if (fold.virtual < 0) {
        nbc_id sent = nbc_send(s, mine, shape->rank + 1, NBC_NONE);
        nbc_recv(s, result, shape->rank + 1, sent);
        return nbc_sched_finish(s);
    }
    nbc_id ready = NBC_NONE, reading = NBC_NONE; /* result has been written; is being sent */
    if (fold.takes) {
        struct nbc_ref theirs = nbc_temp_like(s, result);
        nbc_id heard = nbc_recv(s, theirs, shape->rank - 1, NBC_NONE);
        mine = nbc_combine(s, shape, result, theirs, mine, heard, &ready);
    }
    for (int bit = 1; bit < fold.pow2; bit *= 2) {
        int partner = nbc_unfold(&fold, fold.virtual ^ bit);
        bool mine_left = !(fold.virtual & bit);
        struct nbc_ref theirs = nbc_temp_like(s, result);
        nbc_id heard = nbc_recv(s, theirs, partner, NBC_NONE);
        nbc_id sent = nbc_send(s, mine, partner, ready);
        nbc_id before = ready;
        if (nbc_same_place(mine, result))
            reading = sent;
        mine = mine_left ? nbc_combine(s, shape, result, mine, theirs, heard, &ready)
                         : nbc_combine(s, shape, result, theirs, mine, heard, &ready);
        nbc_after(s, ready, before);
        if (nbc_same_place(mine, result))
            nbc_after(s, ready, reading);
    }
    if (!nbc_same_place(mine, result))
        nbc_copy(s, result, mine, nbc_join(s, ready, reading));
    if (fold.takes)
        nbc_send(s, mine, shape->rank - 1, ready);
    return nbc_sched_finish(s);
}
