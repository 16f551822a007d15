/* SPDX-License-Identifier: MIT */
/* Allreduce, allgather and reduce_scatter through rank 0: a collective to rank 0, then one from it.
 * In total, no other algorithm takes fewer messages, 2 (P − 1), or fewer reductions, P − 1, though
 * rank 0 does most of the work. So these algorithms are for ranks that share few processors, where
 * the time is the total work. Each consists of two subcollectives: linear ones, which have no
 * chains of waiting ranks, or those that the rules select. */
#include "subcollective.h"
#include "select.h"

static int same(const void *group, int i)
{
    (void)group;
    return i;
}

/* Emits both collectives, by the algorithm `alg` if that is not NULL; the second one receives as
 * early as possible. In place, this rank's input is there: the receive must wait. */
static void emit_both(struct nbc_sched *s, const struct nbc_shape *shape, const char *alg,
                      struct nbc_subcollective in, struct nbc_subcollective out)
{
    struct nbc_subcollective *const both[] = {&in, &out};
    nbc_id there = NBC_NONE;
    out.early = shape->rank != 0 && !shape->in_place;
    for (int i = 0; i < 2; i++) {
        both[i]->alg = alg ? nbc_alg_by_name(both[i]->coll, alg) : NULL;
        both[i]->rank = shape->rank;
        both[i]->size = shape->size;
        both[i]->member = same;
        both[i]->local = shape->local;
        there = nbc_emit_subcollective(s, shape, both[i], there);
    }
}

/* --- allreduce -------------------------------------------------------------------------------- */

static void reduce_and_bcast(struct nbc_sched *s, const struct nbc_shape *shape, const char *alg)
{
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    if (!nbc_has_bytes(shape, input))
        return;
    bool in_place = shape->rank == 0 && shape->in_place;
    emit_both(s, shape, alg, nbc_sub_of(NBC_REDUCE, input, result, in_place),
              nbc_sub_of(NBC_BCAST, result, result, false));
}

/* A reduction to rank 0, then a broadcast from rank 0.
 *
 *   1 → 0    3 → 2         0 → 2
 *   2 → 0                  0 → 1    2 → 3
 *
 * Cost: the sum of those of a reduction and of a broadcast; with binomial trees
 * 2 ⌈log₂P⌉ (α + nβ) + ⌈log₂P⌉ nγ. Temporary: as the two subcollectives. For medium vectors on
 * ranks that share processors. */
NBC_VARIANT(allreduce_reduce_bcast, reduce_and_bcast, NULL)

/* Every rank sends its vector to rank 0, which reduces them and sends the result to every rank.
 *
 *   0 ← 1, 2, 3
 *   0 → 1, 2, 3
 *
 * Cost: 2 α + 2 (P − 1) nβ + (P − 1) nγ. Temporary: at rank 0, as the linear
 * reduction. For small vectors on ranks that share processors. */
NBC_VARIANT(allreduce_reduce_bcast_linear, reduce_and_bcast, "linear")

/* --- allgather -------------------------------------------------------------------------------- */

/* Every rank sends its block to rank 0, which sends all blocks to every rank.
 *
 *   0 ← 1 B, 2 C, 3 D
 *   0 → 1, 2, 3 ABCD
 *
 * Cost: 2 α + (P² − 1) nβ, n the bytes of a block. For small blocks on ranks that share processors.
 */
void nbc_allgather_gather_bcast_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref first = nbc_recv_block(shape, 0), all = first;
    bool in_place = shape->rank == 0 && shape->in_place;
    all.count *= shape->size;
    if (nbc_has_bytes(shape, first))
        emit_both(s, shape, "linear",
                  nbc_sub_of(NBC_GATHER, nbc_send_block(shape, 0), first, in_place),
                  nbc_sub_of(NBC_BCAST, all, all, false));
}

/* --- reduce_scatter --------------------------------------------------------------------------- */

/* Every rank sends all blocks to rank 0, which reduces them and sends each rank its block.
 *
 *   0 ← 1, 2, 3 ABCD
 *   0 → 1 B, 2 C, 3 D
 *
 * Cost: 2 α + (P² − 1) nβ + P (P − 1) nγ, n the bytes of a block. Temporary: at rank 0, all
 * blocks, and as the linear reduction. For small blocks on ranks that share processors. */
void nbc_reduce_scatter_reduce_scatter_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref input = nbc_send_vector(shape), result = nbc_recv_block(shape, 0);
    if (!nbc_has_bytes(shape, input))
        return;
    bool even = !shape->send.counts.data;
    struct nbc_ref sum = shape->rank == 0 ? nbc_temp_like(s, input) : input, mine = sum;
    result.count = even ? shape->send.count : nbc_ints_at(shape->send.counts, shape->rank);
    mine.count = result.count;
    struct nbc_subcollective scatter =
        nbc_sub_of(even ? NBC_SCATTER : NBC_SCATTERV, mine, result, false);
    scatter.counts = shape->send.counts;
    emit_both(s, shape, "linear", nbc_sub_of(NBC_REDUCE, input, sum, false), scatter);
}
