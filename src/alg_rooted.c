/* SPDX-License-Identifier: MIT */
/* Collectives whose result all ranks want, by way of rank 0: what comes together there goes out
 * again. No other way takes fewer messages and reductions over all ranks, 2 (P − 1) and P − 1, and
 * none has a rank that does more. So they are for ranks that share few processors, where time is
 * the work of all. Each is made of two parts (part.h), by the algorithms that the rules choose. */
#include "part.h"
#include "select.h"

static int same(const void *group, int i)
{
    (void)group;
    return i;
}

static struct nbc_part part_of(const struct nbc_shape *shape, enum nbc_coll coll)
{
    return (struct nbc_part){.coll = coll,
                             .rank = shape->rank,
                             .size = shape->size,
                             .member = same,
                             .local = shape->local};
}

/* In place this rank's input lies where the result comes: that must wait. */
static void take_out(struct nbc_part *out, const struct nbc_shape *shape, struct nbc_ref result)
{
    out->recv = result;
    out->early = shape->rank != 0 && !shape->in_place;
}

/* A reduction to rank 0 and a broadcast from there.
 *
 *   1 → 0    3 → 2         0 → 2
 *   2 → 0                  0 → 1    2 → 3
 *
 * Cost: those of a reduction and of a broadcast, one behind the other: along binomial trees
 * 2 ⌈log₂P⌉ (α + nβ) + ⌈log₂P⌉ nγ. Temporary: what the parts take. For small and medium vectors of
 * ranks that share processors. */
struct nbc_sched *nbc_allreduce_rooted(const struct nbc_shape *shape)
{
    struct nbc_sched *s = nbc_sched_new(shape, 8);
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    if (!s || nbc_ref_bytes(shape, input) == 0)
        return nbc_sched_finish(s);
    struct nbc_part in = part_of(shape, NBC_REDUCE), out = part_of(shape, NBC_BCAST);
    in.send = input;
    in.recv = result;
    in.in_place = shape->rank == 0 && shape->in_place;
    nbc_id there = nbc_part(s, shape, &in, NBC_NONE);
    take_out(&out, shape, result);
    nbc_part(s, shape, &out, there);
    return nbc_sched_finish(s);
}

/* A gather to rank 0 and a broadcast of all blocks from there.
 *
 *   1 → 0 B    3 → 2 D     0 → 2 ABCD
 *   2 → 0 CD               0 → 1 ABCD    2 → 3 ABCD
 *
 * Cost: those of a gather and of a broadcast of P blocks: along binomial trees 2 ⌈log₂P⌉ α +
 * (P − 1 + P ⌈log₂P⌉) nβ, n bytes a block. Temporary: what the parts take. For small blocks of
 * ranks that share processors. */
struct nbc_sched *nbc_allgather_rooted(const struct nbc_shape *shape)
{
    struct nbc_sched *s = nbc_sched_new(shape, 8);
    struct nbc_ref blocks = nbc_recv_block(shape, 0);
    if (!s || nbc_ref_bytes(shape, blocks) == 0)
        return nbc_sched_finish(s);
    struct nbc_part in = part_of(shape, NBC_GATHER), out = part_of(shape, NBC_BCAST);
    in.send = nbc_send_block(shape, 0);
    in.recv = blocks;
    in.in_place = shape->rank == 0 && shape->in_place;
    nbc_id there = nbc_part(s, shape, &in, NBC_NONE);
    blocks.count *= shape->size;
    take_out(&out, shape, blocks);
    nbc_part(s, shape, &out, there);
    return nbc_sched_finish(s);
}
