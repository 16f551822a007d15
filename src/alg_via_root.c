/* SPDX-License-Identifier: MIT */
/* Collectives whose result all ranks want, by way of rank 0: what comes together there goes out
 * again. No other way takes fewer messages and reductions over all ranks, 2 (P − 1) and P − 1, and
 * none has a rank that does more. So they are for ranks that share few processors, where time is
 * the work of all. Each is made of two parts (subcollective.h): linear ones, in which no rank waits
 * for another that waits, or those that the rules choose. */
#include "subcollective.h"
#include "select.h"

static int same(const void *group, int i)
{
    (void)group;
    return i;
}

static struct nbc_subcollective sub_of(const struct nbc_shape *shape, enum nbc_coll coll,
                                       const char *alg)
{
    return (struct nbc_subcollective){.coll = coll,
                                      .alg = alg ? nbc_alg_by_name(coll, alg) : NULL,
                                      .rank = shape->rank,
                                      .size = shape->size,
                                      .member = same,
                                      .local = shape->local};
}

/* In place this rank's input lies where the result comes: that must wait. */
static void take_out(struct nbc_subcollective *out, const struct nbc_shape *shape,
                     struct nbc_ref result)
{
    out->recv = result;
    out->early = shape->rank != 0 && !shape->in_place;
}

/* --- allreduce -------------------------------------------------------------------------------- */

static struct nbc_sched *reduce_and_bcast(const struct nbc_shape *shape, const char *alg)
{
    struct nbc_sched *s = nbc_sched_new(shape, 8);
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    if (!s || nbc_ref_bytes(shape, input) == 0)
        return nbc_sched_finish(s);
    struct nbc_subcollective in = sub_of(shape, NBC_REDUCE, alg);
    struct nbc_subcollective out = sub_of(shape, NBC_BCAST, alg);
    in.send = input;
    in.recv = result;
    in.in_place = shape->rank == 0 && shape->in_place;
    nbc_id there = nbc_emit_subcollective(s, shape, &in, NBC_NONE);
    take_out(&out, shape, result);
    nbc_emit_subcollective(s, shape, &out, there);
    return nbc_sched_finish(s);
}

/* A reduction to rank 0 and a broadcast from there.
 *
 *   1 → 0    3 → 2         0 → 2
 *   2 → 0                  0 → 1    2 → 3
 *
 * Cost: those of a reduction and of a broadcast, one behind the other: along binomial trees
 * 2 ⌈log₂P⌉ (α + nβ) + ⌈log₂P⌉ nγ. Temporary: what the parts take. For medium vectors of ranks that
 * share processors. */
struct nbc_sched *nbc_allreduce_reduce_bcast(const struct nbc_shape *shape)
{
    return reduce_and_bcast(shape, NULL);
}

/* Everybody sends its vector to rank 0, which reduces them and sends the result to everybody.
 *
 *   0 ← 1, 2, 3
 *   0 → 1, 2, 3
 *
 * Cost: 2 α + 2 (P − 1) nβ + (P − 1) nγ. Temporary: at rank 0, as much as the linear reduction
 * takes. For small vectors of ranks that share processors. */
struct nbc_sched *nbc_allreduce_reduce_bcast_linear(const struct nbc_shape *shape)
{
    return reduce_and_bcast(shape, "linear");
}

/* --- allgather -------------------------------------------------------------------------------- */

/* Everybody sends its block to rank 0, which sends all of them to everybody.
 *
 *   0 ← 1 B, 2 C, 3 D
 *   0 → 1, 2, 3 ABCD
 *
 * Cost: 2 α + (P² − 1) nβ, n bytes a block. For small blocks of ranks that share processors. */
struct nbc_sched *nbc_allgather_gather_bcast_linear(const struct nbc_shape *shape)
{
    struct nbc_sched *s = nbc_sched_new(shape, 8);
    struct nbc_ref blocks = nbc_recv_block(shape, 0);
    if (!s || nbc_ref_bytes(shape, blocks) == 0)
        return nbc_sched_finish(s);
    struct nbc_subcollective in = sub_of(shape, NBC_GATHER, "linear");
    struct nbc_subcollective out = sub_of(shape, NBC_BCAST, "linear");
    in.send = nbc_send_block(shape, 0);
    in.recv = blocks;
    in.in_place = shape->rank == 0 && shape->in_place;
    nbc_id there = nbc_emit_subcollective(s, shape, &in, NBC_NONE);
    blocks.count *= shape->size;
    take_out(&out, shape, blocks);
    nbc_emit_subcollective(s, shape, &out, there);
    return nbc_sched_finish(s);
}

/* --- reduce_scatter --------------------------------------------------------------------------- */

static struct nbc_ref all_blocks(const struct nbc_shape *shape)
{
    struct nbc_ref all = nbc_send_block(shape, 0);
    if (!shape->send.counts.data)
        all.count *= shape->size;
    else
        for (int i = 1; i < shape->size; i++)
            all.count += nbc_ints_at(shape->send.counts, i);
    return all;
}

/* Everybody sends all blocks to rank 0, which reduces them and sends each rank its own.
 *
 *   0 ← 1, 2, 3 ABCD
 *   0 → 1 B, 2 C, 3 D
 *
 * Cost: 2 α + (P² − 1) nβ + P (P − 1) nγ, n bytes a block. Temporary: at rank 0 all blocks, and as
 * much as the linear reduction takes. For small blocks of ranks that share processors. */
struct nbc_sched *nbc_reduce_scatter_reduce_scatter_linear(const struct nbc_shape *shape)
{
    struct nbc_sched *s = nbc_sched_new(shape, 8);
    struct nbc_ref input = all_blocks(shape), result = nbc_recv_block(shape, 0);
    if (!s || nbc_ref_bytes(shape, input) == 0)
        return nbc_sched_finish(s);
    bool even = !shape->send.counts.data;
    struct nbc_subcollective in = sub_of(shape, NBC_REDUCE, "linear");
    struct nbc_subcollective out = sub_of(shape, even ? NBC_SCATTER : NBC_SCATTERV, "linear");
    in.send = input;
    in.recv = shape->rank == 0 ? nbc_temp_like(s, input) : input;
    nbc_id there = nbc_emit_subcollective(s, shape, &in, NBC_NONE);
    result.count = even ? shape->send.count : nbc_ints_at(shape->send.counts, shape->rank);
    out.send = in.recv;
    out.send.count = result.count;
    out.counts = shape->send.counts;
    take_out(&out, shape, result);
    nbc_emit_subcollective(s, shape, &out, there);
    return nbc_sched_finish(s);
}
