/* SPDX-License-Identifier: MIT */
/* What an algorithm costs, counted in its schedules (count.h), against the formula at its head
 * (formulas.h). */
#include <inttypes.h>

#include "count.h"
#include "formulas.h"
#include "topo.h"
#include "unit.h"

static void compare(const char *name, const char *what, int64_t counted, int64_t wanted, bool exact)
{
    if (wanted == UNKNOWN || counted == wanted || (!exact && counted <= wanted))
        return;
    ck_abort_msg("%s: %" PRId64 " %s, %s%" PRId64 " by the formula", name, counted, what,
                 exact ? "" : "at most ", wanted);
}

static bool is_exact(enum exact exact, int64_t P)
{
    int64_t power = 1;
    while (power < P && (exact == POWERS_OF_2 || exact == POWERS_OF_4))
        power *= exact == POWERS_OF_2 ? 2 : 4;
    return exact != BOUND && (exact == ALWAYS || power == P);
}

static int64_t bytes_of(const struct world *w)
{
    enum nbc_coll coll = w->c.alg->coll;
    int64_t units = w->c.count;
    if (coll == NBC_REDUCE_SCATTER)
        units *= w->c.size + w->c.remote;
    if (coll == NBC_REDUCE_SCATTER_BLOCK)
        units *= w->c.size * (w->c.remote ? w->c.remote : 1);
    return units * ATOM;
}

static void check_cost(const struct test_case *c)
{
    char name[500];
    struct world *w = world_new(c);
    case_print(&w->c, name, sizeof name);
    if (world_applies(w)) {
        ck_assert_msg(!world_build(w), "%s", w->text);
        struct cost cost = count(w);
        struct at at = {
            .P = c->size, .R = c->remote, .segment = c->segment, .coll = c->alg->coll, .w = w};
        at.n = bytes_of(w);
        struct formula f;
        ck_assert_msg(formula_of(c->alg, &at, &f), "no formula for %s", name);
        bool exact = is_exact(f.exact, at.P);
        compare(name, "messages one after the other", cost.rounds, f.rounds, exact);
        compare(name, "messages in all", cost.messages, f.messages, true);
        compare(name, "bytes in all", cost.bytes, f.bytes, true);
        compare(name, "bytes at one rank", cost.most, f.most, exact);
    }
    world_free(w);
}

static int64_t least_common_multiple(int64_t x, int64_t y)
{
    int64_t multiple = x;
    while (multiple % y)
        multiple += x;
    return multiple;
}

/* Divisible by P and by powers of two, so that parts are equal. The blocks of edges that may share
 * a message are in turn small enough and too large for that. */
static int64_t count_for(const struct nbc_alg *alg, int P, int remote, int turn)
{
    if (nbc_coll_is_neighborhood(alg->coll))
        return turn ? 4096 / ATOM / 2 + 1 : 3;
    bool vector = alg->coll == NBC_BCAST || nbc_coll_reduces(alg->coll);
    bool scatters = alg->coll == NBC_REDUCE_SCATTER || alg->coll == NBC_REDUCE_SCATTER_BLOCK;
    if (scatters)
        return 3;
    return vector ? least_common_multiple(P, remote ? remote : nbc_pow2_floor(P)) : 3;
}

UNIT(cost_is_as_the_head_says, .each_row = true)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64};
    const struct nbc_alg *alg = &nbc_algs[_i];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int P = sizes[i];
        if (alg->needs & NBC_INTER && P > 17)
            break;
        for (int r = 0; r < (alg->needs & NBC_INTER ? 3 : 1); r++)
            for (int cut = 0; cut < 2; cut++) {
                int remote = alg->needs & NBC_INTER ? (r == 0 ? P : r == 1 ? P + 3 : up(P, 2)) : 0;
                struct test_case c = {.alg = alg,
                                      .size = P,
                                      .remote = remote,
                                      .count = count_for(alg, P, remote, cut),
                                      .even = true,
                                      .graph = P % 6,
                                      .nodes = alg->needs & NBC_NODES ? 2 : 0,
                                      .runs = 1,
                                      .seed = (uint64_t)P};
                if (cut) /* a few pieces; the window must not fill */
                    c.segment = c.count * ATOM / 4 > 8 ? c.count * ATOM / 4 : 8;
                case_normalize(&c);
                check_cost(&c);
            }
    }
}

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
    struct test_case c = {.alg = alg, .size = 256, .even = true, .runs = 1, .seed = 1};
    c.count = count_for(alg, c.size, 0, 0);
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
