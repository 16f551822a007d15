/* SPDX-License-Identifier: MIT */
/* Where the messages of an algorithm go: between groups of ranks, and between nodes. (How many
 * there are: test_uses.) */
#include <inttypes.h>

#include "count.h"
#include "unit.h"

/* Bine algorithms beside those whose shape they have: percent of the bytes between groups of 16 of
 * 256 ranks, if the first group is complete, and on average over all lengths that it may have. The
 * table is in doc/scaling.md. */
static const struct {
    enum nbc_coll coll;
    const char *bine, *other;
    int complete, average;
} bine[] = {
    {NBC_BCAST, "bine", "binomial", 260, 79},
    {NBC_GATHER, "bine", "binomial", 106, 89},
    {NBC_SCATTER, "bine", "binomial", 106, 89},
    {NBC_REDUCE, "bine", "binomial", 260, 79},
    {NBC_REDUCE, "bine_halving", "rabenseifner", 190, 79},
    {NBC_ALLREDUCE, "bine", "rabenseifner", 200, 78},
    {NBC_REDUCE_SCATTER_BLOCK, "bine", "butterfly", 194, 78},
    {NBC_ALLGATHER, "bine", "sparbit", 66, 77},
    {NBC_ALLTOALL, "bine", "bruck", 86, 88},
};

enum { GROUP = 16 };

/* Sets between[cut] to the bytes between groups of which the first has `cut` fewer. */
static void between_groups(const struct nbc_alg *alg, int64_t between[GROUP])
{
    bool vector = alg->coll == NBC_BCAST || alg->coll == NBC_REDUCE || alg->coll == NBC_ALLREDUCE;
    struct test_case c = {.alg = alg, .size = 256, .even = true, .runs = 1, .seed = 1};
    c.count = vector ? c.size : 3; /* equal parts */
    case_normalize(&c);
    struct world *w = world_new(&c);
    ck_assert_msg(!world_build(w), "%s", w->text);
    for (int cut = 0; cut < GROUP; cut++)
        between[cut] = count_between(w, GROUP, cut);
    world_free(w);
}

static void check_percent(int row, const char *what, int64_t with, int64_t without, int wanted)
{
    int64_t percent = (100 * with + without / 2) / without;
    ck_assert_msg(percent == wanted, "%s:%s, %s: %" PRId64 " %% of the bytes of %s",
                  nbc_coll_name(bine[row].coll), bine[row].bine, what, percent, bine[row].other);
}

UNIT(bine_trees_stay_in_groups, .times = sizeof bine / sizeof *bine)
{
    int64_t with[GROUP], without[GROUP], sum = 0, of = 0;
    between_groups(nbc_alg_by_name(bine[_i].coll, bine[_i].bine), with);
    between_groups(nbc_alg_by_name(bine[_i].coll, bine[_i].other), without);
    for (int cut = 0; cut < GROUP; cut++) {
        sum += with[cut];
        of += without[cut];
    }
    check_percent(_i, "complete groups", with[0], without[0], bine[_i].complete);
    check_percent(_i, "on average", sum, of, bine[_i].average);
}

static bool sends_to(const struct world *w, int id, int to)
{
    const struct nbc_neighbors *l = w->party[id].shape.neighbors;
    bool any = !l; /* alltoall */
    for (int k = 0; l && k < l->outdegree; k++)
        any = any || l->destinations[k] == to;
    return any;
}

/* The number of ranks of a node that have edges to another node. */
static int count_sources(const struct world *w, int from_node, int to_node)
{
    int n = 0;
    for (int id = 0; id < w->n; id++) {
        bool any = false;
        for (int to = 0; to < w->n; to++)
            any = any || (nbc_node_of(&w->nodes, to) == to_node && sends_to(w, id, to));
        n += any && nbc_node_of(&w->nodes, id) == from_node;
    }
    return n;
}

static int count_sends(const struct world *w, int id, int node)
{
    const struct nbc_sched *s = w->party[id].sched;
    int n = 0;
    for (nbc_id op = 0; op < s->nops; op++)
        n += s->ops[op].kind == NBC_OP_SEND && nbc_node_of(&w->nodes, s->ops[op].peer) == node;
    return n;
}

/* Peers of a rank on its own node. */
static int count_mates(const struct world *w, int id)
{
    int n = 0;
    for (int mate = 0; mate < w->n; mate++)
        n += mate != id && nbc_node_of(&w->nodes, mate) == nbc_node_of(&w->nodes, id) &&
             sends_to(w, id, mate);
    return n;
}

/* Between two nodes there is one message, or one of each source. Within a node a rank sends to each
 * other rank at most once in the first step and once in the third, but for its own edges. */
static void check_locality(struct world *w)
{
    for (int from = 0; from < w->nodes.nnodes; from++)
        for (int to = 0; to < w->nodes.nnodes; to++) {
            int sends = 0, sources = count_sources(w, from, to);
            for (int id = 0; id < w->n; id++)
                if (nbc_node_of(&w->nodes, id) == from)
                    sends += count_sends(w, id, to);
            if (from != to)
                ck_assert_int_eq(sends, w->party[0].pattern.apart ? sources : sources > 0);
        }
    for (int id = 0; id < w->n; id++) {
        int node = nbc_node_of(&w->nodes, id), steps = w->party[id].pattern.apart ? 1 : 2;
        ck_assert_int_le(count_sends(w, id, node),
                         steps * (nbc_node_size(&w->nodes, node) - 1) + count_mates(w, id));
    }
}

static const enum nbc_coll personalized[] = {NBC_ALLTOALL,           NBC_ALLTOALLV,
                                             NBC_ALLTOALLW,          NBC_NEIGHBOR_ALLTOALL,
                                             NBC_NEIGHBOR_ALLTOALLV, NBC_NEIGHBOR_ALLTOALLW};

UNIT(locality_sends_once_between_nodes, .times = sizeof personalized / sizeof *personalized)
{
    const struct nbc_alg *alg = nbc_alg_by_name(personalized[_i], "locality");
    int most = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct test_case c = {.alg = alg,
                              .size = 4 + (int)(seed % 21),
                              .count = 3,
                              .even = true,
                              .graph = (int)(seed % NGRAPHS),
                              .nodes = 2 + (int)(seed / 5 % 4),
                              .runs = 1,
                              .seed = seed};
        struct world *w = world_new(&c);
        ck_assert(world_applies(w));
        ck_assert_msg(!world_build(w), "%s", w->text);
        check_locality(w);
        most = count_sources(w, 0, 1) > most ? count_sources(w, 0, 1) : most;
        world_free(w);
    }
    ck_assert_int_gt(most, 3);
}
