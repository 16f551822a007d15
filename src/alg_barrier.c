/* SPDX-License-Identifier: MIT */
#include "select.h"
#include "topo.h"

/* Dissemination. In round k every rank signals the rank 2^k above it and hears from the one 2^k
 * below; after ⌈log₂P⌉ rounds it has heard, directly or not, from all.
 *
 *   rank   0   1   2   3
 *   k = 0  →1  →2  →3  →0
 *   k = 1  →2  →3  →0  →1
 *
 * Cost: ⌈log₂P⌉ α, any P. All receives are posted at once: a rank that is behind finds its signals
 * waiting. Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988. */
struct nbc_sched *nbc_barrier_dissemination(const struct nbc_shape *shape)
{
    int rounds = nbc_log2_ceil(shape->size);
    struct nbc_sched *s = nbc_sched_new(shape, 2 * rounds);
    if (!s)
        return NULL;
    struct nbc_ref nothing = nbc_temp_bytes(s, 0);
    nbc_id heard[31], all = NBC_NONE;
    for (int k = 0; k < rounds; k++) {
        int below = nbc_relative(shape->rank, (int)(1LL << k), shape->size);
        heard[k] = nbc_recv(s, nothing, below, NBC_NONE);
    }
    for (int k = 0; k < rounds; k++) {
        int above = (int)((shape->rank + (1LL << k)) % shape->size);
        nbc_send(s, nothing, above, all);
        all = nbc_join(s, all, heard[k]);
    }
    return nbc_sched_finish(s);
}
