/* SPDX-License-Identifier: MIT */
/* Barrier: no rank leaves before all ranks have entered. */
#include "select.h"
#include "topo.h"

/* Dissemination of radix k. In the round of step n = k^i every rank signals the ranks n, 2n, …,
 * (k−1)n above it and waits for those below; afterwards it knows, directly or indirectly, that the
 * kn − 1 ranks below have entered. All receives are posted at the start, so that a late rank finds
 * its signals matched. */
static void disseminate(struct nbc_sched *s, const struct nbc_shape *shape, int radix)
{
    int rank = shape->rank, size = shape->size;
    struct nbc_ref nothing = nbc_temp_bytes(s, 0);
    int nheard = 0;
    nbc_id *received = nbc_scratch(s, (size_t)size, sizeof *received);
    if (!received)
        return;
    for (int64_t step = 1; step < size; step *= radix) { /* mutants: <= for <: a round of nothing */
        int before = nheard;
        for (int64_t d = step; d < size && d < radix * step; d += step) {
            nbc_id sent = nbc_send(s, nothing, (int)((rank + d) % size), NBC_NONE);
            nbc_after_all(s, sent, received, before);
        }
        for (int64_t d = step; d < size && d < radix * step; d += step)
            received[nheard++] = nbc_recv(s, nothing, nbc_relative(rank, (int)d, size), NBC_NONE);
    }
}

/* Dissemination, radix 2: the fewest rounds with one message per rank and round.
 *
 *   rank    0   1   2   3
 *   n = 1  →1  →2  →3  →0
 *   n = 2  →2  →3  →0  →1
 *
 * Cost: ⌈log₂P⌉ α, any P. The default. Hensgen, Finkel, Manber, "Two
 * algorithms for barrier synchronization", 1988. */
NBC_VARIANT(barrier_dissemination, disseminate, 2)

/* Dissemination, radix 4: half the rounds, one and a half times the messages.
 *
 *   rank    0         1         2         3
 *   n = 1  →1,→2,→3  →2,→3,→0  →3,→0,→1  →0,→1,→2
 *
 * Cost: ⌈log₄P⌉ (α + 2o), o the time a processor is busy with a message. For networks
 * whose latency is high compared with o. Hoefler, Mehlan, Mietke, Rehm, "Fast barrier
 * synchronization for InfiniBand", 2006. */
NBC_VARIANT(barrier_dissemination4, disseminate, 4)

/* One round: every rank signals every other.
 *
 *   rank   0            1            2            3
 *          → 1, 2, 3    → 2, 3, 0    → 3, 0, 1    → 0, 1, 2
 *
 * Cost: α + 2 (P − 2) o. For a few ranks on networks whose latency is high compared with o.
 * Dissemination of radix P; the paper of dissemination4. */
NBC_VARIANT(barrier_one_round, disseminate, shape->size)

/* Every rank signals rank 0, which then signals every rank.
 *
 *   0 ← 1, 2, 3
 *   0 → 1, 2, 3
 *
 * Cost: 2 α + 2 (P − 2) o, 2 (P − 1) messages in all, and no chains of waiting ranks. For ranks
 * that share processors, where such a wait is a context switch. */
void nbc_barrier_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int size = shape->size;
    struct nbc_ref nothing = nbc_temp_bytes(s, 0);
    if (shape->rank > 0) {
        nbc_send(s, nothing, 0, NBC_NONE);
        nbc_recv(s, nothing, 0, NBC_NONE);
        return;
    }
    for (int i = 1; i < size; i++)
        nbc_recv(s, nothing, i, NBC_NONE);
    nbc_id all = nbc_join_of(s, NULL, 0);
    nbc_after_since(s, all, 0);
    for (int i = 1; i < size; i++)
        nbc_send(s, nothing, i, all);
}
