/* SPDX-License-Identifier: MIT */
/* Which algorithm runs. */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "cases.h"
#include "rules.h"
#include "unit.h"

enum { MOST_RANKS = 1100 };

static const struct nbc_type types[] = {{1, 1, 0, 1, true}, {8, 8, 0, 8, true}, {8, 8, 0, 8, true}};

static struct nbc_shape shape_of(enum nbc_coll coll, int size, int64_t count)
{
    return (struct nbc_shape){
        .coll = coll,
        .size = size,
        .commutative = true,
        .types = types,
        .ntypes = 3,
        .send = {.count = count, .type = NBC_TYPE_SEND},
        .recv = {.count = count, .type = NBC_TYPE_RECV},
    };
}

/* The n-th row of a collective (for one group, or for two), or NULL. */
static const struct nbc_alg *row(enum nbc_coll coll, bool inter, int n)
{
    for (int i = 0; i < nbc_nalgs; i++)
        if (nbc_algs[i].coll == coll && !!(nbc_algs[i].needs & NBC_INTER) == inter && n-- == 0)
            return &nbc_algs[i];
    return NULL;
}

UNIT(rows_stand_together_and_have_names_of_their_own)
{
    bool seen[NBC_NCOLLS] = {0};
    for (int i = 0; i < nbc_nalgs; i++) {
        const struct nbc_alg *alg = &nbc_algs[i];
        bool same = i > 0 && nbc_algs[i - 1].coll == alg->coll;
        ck_assert_msg(same || !seen[alg->coll], "rows of %s are apart", nbc_coll_name(alg->coll));
        seen[alg->coll] = true;
        ck_assert_ptr_eq(nbc_alg_by_name(alg->coll, alg->name), alg);
        ck_assert(alg->build && alg->purpose[0]);
    }
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
        ck_assert_msg(seen[coll], "no row for %s", nbc_coll_name(coll));
        ck_assert_ptr_eq(nbc_alg_by_name(coll, "no such algorithm"), NULL);
    }
    ck_assert_ptr_eq(nbc_alg_by_name(NBC_BARRIER, row(NBC_BCAST, false, 0)->name), NULL);
}

UNIT(algorithms_are_found_by_name)
{
    ck_assert_str_eq(nbc_alg_by_name(NBC_BCAST, "CHAIN")->name, "chain");
    ck_assert_str_eq(nbc_alg_by_name(NBC_BARRIER, "Tree")->name, "linear");
    ck_assert_ptr_eq(nbc_alg_by_name(NBC_BCAST, "tree"), NULL);
    ck_assert_ptr_eq(nbc_alg_by_name(NBC_SCAN, "linear"), NULL);
}

UNIT(needs_are_met)
{
    const struct {
        unsigned needs;
        int size, remote;
        bool commutative, nodes, applies;
    } table[] = {
        {NBC_ANY, 1, 0, false, false, true},
        {NBC_ANY, 5, 3, true, false, false}, /* not for two groups */
        {NBC_INTER, 5, 3, false, false, true},
        {NBC_INTER, 5, 0, true, true, false},
        {NBC_COMMUTATIVE, 5, 0, true, false, true},
        {NBC_COMMUTATIVE, 5, 0, false, false, false},
        {NBC_POW2, 1, 0, false, false, true},
        {NBC_POW2, 6, 0, false, false, false},
        {NBC_POW2, 64, 0, false, false, true},
        {NBC_POW2 | NBC_INTER, 5, 3, false, false, true}, /* both groups together */
        {NBC_POW2 | NBC_INTER, 4, 2, false, false, false},
        {NBC_EVEN, 6, 0, false, false, true},
        {NBC_EVEN, 7, 0, false, false, false},
        {NBC_MULTI, 1, 0, false, false, false},
        {NBC_MULTI, 2, 0, false, false, true},
        {NBC_NODES, 6, 0, false, false, false},
        {NBC_NODES, 6, 0, false, true, true},
        {NBC_NODES | NBC_COMMUTATIVE, 6, 0, false, true, false},
        {NBC_NODES | NBC_EQUAL, 6, 0, false, true, true}, /* nodes of three */
        {NBC_NODES | NBC_EQUAL, 7, 0, false, true, false},
        {NBC_NODES | NBC_EQUAL, 6, 0, false, false, false},
        {NBC_EVEN | NBC_COMMUTATIVE, 6, 0, true, false, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct nbc_nodes nodes = nbc_nodes_blocks(table[i].size, 3);
        const struct nbc_alg alg = {.needs = table[i].needs};
        struct nbc_shape s = shape_of(NBC_ALLREDUCE, table[i].size, 1);
        s.remote_size = table[i].remote;
        s.commutative = table[i].commutative;
        s.nodes = table[i].nodes ? &nodes : NULL;
        ck_assert_msg(nbc_alg_applies(&alg, &s) == table[i].applies, "line %d", (int)i);
    }
}

UNIT(an_override_wins_where_it_applies)
{
    struct nbc_shape s = shape_of(NBC_BCAST, 6, 100);
    int64_t segment = 5;
    const struct nbc_alg *last = row(NBC_BCAST, false, 0);
    for (int i = 0; row(NBC_BCAST, false, i); i++)
        if (nbc_alg_applies(row(NBC_BCAST, false, i), &s))
            last = row(NBC_BCAST, false, i);
    const struct nbc_rule rule = {.coll = NBC_BCAST,
                                  .max_size = 100,
                                  .max_bytes = 1000,
                                  .alg = row(NBC_BCAST, false, 0),
                                  .segment = 77};
    const struct nbc_rules rules = {.rule = &rule, .nrules = 1};
    ck_assert_ptr_eq(nbc_select(&s, last, &rules, &segment), last);
    ck_assert_int_eq(segment, 0);
    /* of another collective, and for two groups */
    ck_assert_ptr_eq(nbc_select(&s, row(NBC_BARRIER, false, 0), &rules, &segment), rule.alg);
    ck_assert_int_eq(segment, 77);
    ck_assert_ptr_eq(nbc_select(&s, row(NBC_BCAST, true, 0), &rules, &segment), rule.alg);
}

/* Every reduction has an algorithm for every order, also between groups, and rules and overrides
 * choose no other. */
UNIT(a_required_order_is_obeyed)
{
    static const unsigned never[] = {0, NBC_NOT_RANKS, NBC_NOT_TREE};
    int64_t segment;
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++)
        for (int size = 1; size < 600; size += 1 + size / 9)
            for (int64_t count = 1; count < 2000000 && nbc_coll_reduces(coll); count *= 5)
                for (int n = 0; n <= NBC_ORDER_TREE * 2; n++) {
                    struct nbc_shape s = shape_of(coll, size, count);
                    bool inter = n > NBC_ORDER_TREE && coll != NBC_SCAN && coll != NBC_EXSCAN;
                    s.order = n % (NBC_ORDER_TREE + 1);
                    s.commutative = !s.order;
                    s.remote_size = inter ? 3 : 0;
                    if (coll == NBC_REDUCE_SCATTER)
                        s.send.counts = (struct nbc_ints){calloc((size_t)size, 4), 4};
                    for (int i = 0; row(coll, inter, i); i++) {
                        const struct nbc_alg *alg =
                            nbc_select(&s, row(coll, inter, i), &nbc_default_rules, &segment);
                        ck_assert(nbc_alg_applies(alg, &s) && !(alg->needs & never[s.order]));
                    }
                    free((void *)s.send.counts.data);
                }
}

UNIT(rules_match_ranks_and_bytes)
{
    const struct nbc_alg *a = row(NBC_BCAST, false, 1), *b = row(NBC_BCAST, false, 2);
    const struct nbc_rule rule[] = {
        {NBC_ALLREDUCE, 0, 1000, 0, INT64_MAX, row(NBC_ALLREDUCE, false, 1), 0, NBC_ANY},
        {NBC_BCAST, 3, 5, 80, 160, a, 11, NBC_ANY},
        {NBC_BCAST, 5, 8, 160, 800, b, 22, NBC_ANY},
        {NBC_BCAST, 9, 9, 0, 16, a, 33, NBC_ANY},
    };
    const struct nbc_rules rules = {.rule = rule, .nrules = 4};
    const struct {
        int size;
        int64_t count;
        const struct nbc_alg *alg;
        int64_t segment;
    } table[] = {
        {2, 15, NULL, 0},  {3, 15, a, 11}, {5, 10, a, 11},   {5, 9, NULL, 0}, {5, 20, a, 11},
        {5, 21, b, 22},    {6, 20, b, 22}, {6, 19, NULL, 0}, {8, 100, b, 22}, {9, 100, NULL, 0},
        {8, 101, NULL, 0}, {9, 0, a, 33},  {9, 2, a, 33},    {9, 3, NULL, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct nbc_shape s = shape_of(NBC_BCAST, table[i].size, table[i].count);
        int64_t segment = -1;
        const struct nbc_alg *alg = nbc_select(&s, NULL, &rules, &segment);
        ck_assert_ptr_eq(alg, table[i].alg ? table[i].alg : nbc_select(&s, NULL, NULL, &segment));
        if (table[i].alg)
            ck_assert_int_eq(segment, table[i].segment);
    }
}

UNIT(rules_have_needs_of_their_own)
{
    const struct nbc_alg *any = row(NBC_ALLREDUCE, false, 1);
    struct nbc_rule rule = {NBC_ALLREDUCE, 0, 100, 0, INT64_MAX, any, 11, NBC_POW2 | NBC_NODES};
    const struct nbc_rules rules = {.rule = &rule, .nrules = 1};
    const struct nbc_nodes nodes = nbc_nodes_blocks(8, 2);
    struct nbc_shape s = shape_of(NBC_ALLREDUCE, 8, 1);
    int64_t segment;
    ck_assert_int_eq(any->needs & ~NBC_REGROUPS, NBC_ANY);
    ck_assert_ptr_eq(nbc_select(&s, NULL, &rules, &segment), row(NBC_ALLREDUCE, false, 0));
    s.nodes = &nodes;
    ck_assert_ptr_eq(nbc_select(&s, NULL, &rules, &segment), any);
    ck_assert_int_eq(segment, 11);
    s.size = 6;
    ck_assert_ptr_eq(nbc_select(&s, NULL, &rules, &segment), row(NBC_ALLREDUCE, false, 0));
    for (int local = 0; local < 2; local++) {
        s.local = local;
        rule.needs = NBC_LOCAL;
        ck_assert_int_eq(nbc_rule_find(&s, &rules) == &rule, local);
        rule.needs = NBC_SPREAD;
        ck_assert_int_eq(nbc_rule_find(&s, &rules) == &rule, !local);
        rule.needs = NBC_OVERSUBSCRIBED;
        ck_assert_ptr_eq(nbc_rule_find(&s, &rules), NULL);
        s.oversubscribed = local;
        ck_assert_int_eq(nbc_rule_find(&s, &rules) == &rule, local);
        rule.needs = NBC_HANDSHAKE;
        ck_assert_ptr_eq(nbc_rule_find(&s, &rules), NULL);
        s.handshake = local;
        ck_assert_int_eq(nbc_rule_find(&s, &rules) == &rule, local);
    }
}

UNIT(unknown_bytes_match_only_rules_for_all_bytes)
{
    struct nbc_shape s = shape_of(NBC_GATHERV, 6, 1);
    const struct nbc_alg *first = row(NBC_GATHERV, false, 0), *other = row(NBC_GATHERV, false, 1);
    struct nbc_rule rule = {NBC_GATHERV, 0, 100, 0, INT64_MAX, other, 0, NBC_ANY};
    const struct nbc_rules rules = {.rule = &rule, .nrules = 1};
    int64_t segment;
    ck_assert_ptr_eq(nbc_select(&s, NULL, &rules, &segment), other);
    rule.min_bytes = 1;
    ck_assert_ptr_eq(nbc_select(&s, NULL, &rules, &segment), first);
    rule.min_bytes = 0;
    rule.max_bytes = INT64_MAX - 1;
    ck_assert_ptr_eq(nbc_select(&s, NULL, &rules, &segment), first);
}

static bool same_rule(const struct nbc_rule *a, const struct nbc_rule *b)
{
    if (!a || !b)
        return a == b;
    return a->coll == b->coll && a->min_size == b->min_size && a->max_size == b->max_size &&
           a->min_bytes == b->min_bytes && a->max_bytes == b->max_bytes && a->alg == b->alg &&
           a->segment == b->segment && a->needs == b->needs;
}

/* Between groups there are no scans and no neighbors. */
static bool has_none(const struct nbc_shape *s)
{
    return s->remote_size > 0 &&
           (s->coll == NBC_SCAN || s->coll == NBC_EXSCAN || nbc_coll_is_neighborhood(s->coll));
}

/* How many of the calls of a size have a rule; the same one in both. The bits of `how`: where the
 * ranks are, whether the operator commutes, which order is required, whether there are two groups.
 */
static int compare_calls(const struct nbc_rules *x, const struct nbc_rules *y, enum nbc_coll coll,
                         int size, int how)
{
    static const int64_t edges[] = {1, 7, 8, 511, 513, 8191, 8193, 1 << 20, 1 << 24};
    static int64_t counts[MOST_RANKS];
    const struct nbc_nodes nodes = nbc_nodes_blocks(size, how & 1 ? 2 : 3);
    int found = 0;
    for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
        struct nbc_shape s = shape_of(coll, size, edges[k] / 8 + edges[k] % 8);
        for (int i = 0; i < size; i++)
            counts[i] = s.send.count;
        s.send.counts = s.recv.counts = (struct nbc_ints){counts, 8};
        s.local = (how & 3) > 0;
        s.oversubscribed = (how & 3) > 1;
        s.sockets = !s.local && (how & 64);
        s.handshake = s.local && (how & 64);
        s.nodes = (how & 3) == 3 ? &nodes : NULL;
        s.order = (enum nbc_order)((how >> 2) % 3);
        s.commutative = !s.order && (how & 16);
        s.remote_size = how & 32 ? 1 + size / 2 : 0;
        int64_t segment;
        const struct nbc_rule *rule = nbc_rule_find(&s, x);
        need(same_rule(rule, nbc_rule_find(&s, y)));
        need(rule || has_none(&s) ||
             nbc_select(&s, NULL, x, &segment) == nbc_select(&s, NULL, y, &segment));
        found += rule != NULL;
    }
    return found;
}

static int compare_rules(const struct nbc_rules *x, const struct nbc_rules *y)
{
    int found = 0;
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++)
        for (int size = 1; size <= MOST_RANKS; size += 1 + size / 4)
            for (int how = 0; how < 128; how++)
                found += compare_calls(x, y, coll, size, how);
    return found;
}

/* Adds a line of a tuning file. */
static void random_rule(FILE *out, unsigned *state)
{
    static const char *const conditions[] = {
        "",       "commutative",    "pow2",        "even",       "nodes",   "equal",    "local",
        "spread", "oversubscribed", "order_ranks", "order_tree", "sockets", "handshake"};
    unsigned r[6];
    for (int i = 0; i < 6; i++)
        r[i] = (*state = *state * 1103515245u + 12345u) >> 8;
    const struct nbc_alg *alg = &nbc_algs[r[0] % (unsigned)nbc_nalgs];
    unsigned least = r[1] % 20, bytes = 1u << r[2] % 18;
    fprintf(out, "%s %u-%u %u-%u %s %s\n", nbc_coll_name(alg->coll), least, least + r[3] % 300,
            bytes, bytes << r[4] % 12, alg->name,
            conditions[r[5] % (sizeof conditions / sizeof *conditions)]);
}

static struct nbc_rules *random_rules(unsigned state)
{
    enum { LINES = 200 };
    struct nbc_rules_error error;
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_ne(out, NULL);
    for (int i = 0; i < LINES; i++)
        random_rule(out, &state);
    fclose(out);
    struct nbc_rules *rules = nbc_rules_parse(text, &nbc_default_rules, &error);
    ck_assert_msg(rules != NULL, "%s", error.what);
    free(text);
    return rules;
}

/* Of the built-in rules; of user's rules before these; and where most collectives have none, or
 * there is none. */
UNIT(sorted_rules_decide_alike, .times = 6)
{
    static const struct nbc_rule one = {NBC_BARRIER, 3, 50, 0, INT64_MAX, nbc_algs, 0, NBC_ANY};
    static const struct nbc_rules few[] = {{.rule = &one}, {.rule = &one, .nrules = 1}};
    struct nbc_rules *mine = _i > 2 ? random_rules((unsigned)_i) : NULL;
    const struct nbc_rules *given = mine ? mine : _i == 0 ? &nbc_default_rules : &few[_i - 1];
    struct nbc_rules *sorted = nbc_rules_sort(given);
    ck_assert_ptr_ne(sorted, NULL);
    ck_assert(sorted->first[NBC_NCOLLS] == given->nrules && !given->first[NBC_NCOLLS]);
    ck_assert_int_eq(sorted->nrules, given->nrules);
    ck_assert_int_eq(compare_rules(given, sorted) > 0, given->nrules > 0);
    nbc_rules_free(sorted);
    nbc_rules_free(mine);
}

/* Every collective has a row that applies to every call it can be made with. */
UNIT(there_is_always_an_algorithm, .times = NBC_NCOLLS)
{
    enum nbc_coll coll = (enum nbc_coll)_i;
    for (int size = 1; size <= 40; size++)
        for (int remote = 0; remote <= 9; remote++)
            for (int commutative = 0; commutative < 2; commutative++) {
                struct nbc_shape s = shape_of(coll, size, 1);
                bool any = false;
                s.remote_size = remote;
                s.commutative = commutative;
                for (int i = 0; i < nbc_nalgs; i++)
                    any |= nbc_algs[i].coll == coll && nbc_alg_applies(&nbc_algs[i], &s);
                bool defined = !remote || (coll != NBC_SCAN && coll != NBC_EXSCAN &&
                                           !nbc_coll_is_neighborhood(coll));
                ck_assert_msg(any == defined, "%s on %d and %d ranks", nbc_coll_name(coll), size,
                              remote);
            }
}

/* Where the MPI can, by name and by rule; else another one. Its order of
 * reductions is its own. */
UNIT(the_mpi_is_chosen_only_where_it_can_and_is_asked_for)
{
    for (enum nbc_coll coll = 0; !nbc_coll_is_neighborhood(coll); coll++) {
        int64_t segment;
        const struct nbc_alg *mpi = nbc_alg_by_name(coll, "mpi");
        static const int32_t counts[8] = {1};
        struct nbc_shape s = shape_of(coll, 8, 100);
        s.recv.counts = s.send.counts = (struct nbc_ints){counts, sizeof *counts};
        const struct nbc_rule rule = {coll, 0, 100, 0, INT64_MAX, mpi, 0, NBC_ANY};
        const struct nbc_rules rules = {.rule = &rule, .nrules = 1};
        ck_assert(mpi);
        ck_assert(nbc_select(&s, mpi, &rules, &segment) != mpi);
        s.by_mpi = true;
        ck_assert(nbc_select(&s, NULL, NULL, &segment) != mpi);
        ck_assert(nbc_select(&s, mpi, NULL, &segment) == mpi);
        ck_assert(nbc_select(&s, NULL, &rules, &segment) == mpi);
        s.order = NBC_ORDER_RANKS;
        ck_assert(nbc_coll_reduces(coll) == !nbc_alg_applies(mpi, &s));
        s.order = NBC_ORDER_ANY;
    }
}

/* Of a few bytes it is one piece; that is for the sanitizer to see, too. */
UNIT(a_segment_may_be_as_long_as_a_number_can_say, .times = nbc_nalgs)
{
    static const int32_t counts[] = {1, 1, 1, 1, 1, 1, 1, 1}, displs[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct nbc_nodes nodes = nbc_nodes_blocks(8, 4);
    const struct nbc_alg *alg = &nbc_algs[_i];
    struct nbc_shape s = shape_of(alg->coll, 8, 100);
    s.nodes = &nodes;
    if (!nbc_alg_applies(alg, &s) || nbc_coll_is_neighborhood(alg->coll))
        return;
    s.recv.counts = s.send.counts = (struct nbc_ints){counts, sizeof *counts};
    s.recv.displs = s.send.displs = (struct nbc_ints){displs, sizeof *displs};
    s.segment = 1 << 20;
    struct nbc_sched *large = nbc_build(alg->build, &s);
    s.segment = INT64_MAX;
    struct nbc_sched *largest = nbc_build(alg->build, &s);
    ck_assert(large && largest);
    ck_assert_int_eq(large->nops, largest->nops);
    nbc_sched_free(large);
    nbc_sched_free(largest);
}

/* --- what a choice costs where one group is far smaller than the other ------------------------ */

enum { LARGER = 1000, TYPES = NBC_TYPE_FIRST_PEER + 2 * LARGER };

/* A call between two groups, and what it points to. */
struct inter {
    struct nbc_shape shape;
    int64_t counts[LARGER], displs[LARGER];
    struct nbc_type types[TYPES];
};

static void vary(struct inter *call, struct nbc_side *side, int slot)
{
    side->counts = (struct nbc_ints){call->counts, sizeof *call->counts};
    side->displs = (struct nbc_ints){call->displs, sizeof *call->displs};
    side->displs_implied = call->shape.coll == NBC_REDUCE_SCATTER;
    if (side->displs_implied)
        side->displs.data = NULL;
    side->peer_types = call->shape.coll == NBC_ALLTOALLW;
    if (side->peer_types)
        side->type = slot;
}

static void inter_call(struct inter *call, enum nbc_coll coll, int size, int remote, int64_t count)
{
    call->shape = shape_of(coll, size, count);
    call->shape.remote_size = remote;
    call->shape.types = call->types;
    call->shape.ntypes = TYPES;
    for (int i = 0; i < TYPES; i++)
        call->types[i] = types[i == NBC_TYPE_BYTE ? 0 : 1];
    for (int i = 0; i < LARGER; i++) {
        call->counts[i] = count;
        call->displs[i] = i * count;
    }
    if (nbc_coll_has_counts(coll, true))
        vary(call, &call->shape.send, NBC_TYPE_FIRST_PEER);
    if (nbc_coll_has_counts(coll, false))
        vary(call, &call->shape.recv, NBC_TYPE_FIRST_PEER + LARGER);
}

/* A few operations for each rank there is, whoever this one is. */
static void check_linear(const struct nbc_shape *shape)
{
    int64_t segment;
    const struct nbc_alg *alg = nbc_select(shape, NULL, &nbc_default_rules, &segment);
    struct nbc_sched *s = nbc_build(alg->build, shape);
    int ranks = shape->size + shape->remote_size;
    ck_assert_ptr_ne(s, NULL);
    ck_assert_msg(s->nmsgs <= 2 * ranks && s->nops <= 3 * ranks && s->nsucc <= 4 * ranks,
                  "%s:%s, rank %d of %d with %d, %d elements: %d messages, %d operations, %d edges",
                  nbc_coll_name(shape->coll), alg->name, shape->rank, shape->size,
                  shape->remote_size, (int)shape->recv.count, s->nmsgs, s->nops, s->nsucc);
    nbc_sched_free(s);
}

/* Linear moves whole vectors, as many as there are ranks; so what counts is the vector, not a block
 * of it, and with two ranks in each group there is nothing to gain. */
UNIT(long_vectors_between_groups_are_cut)
{
    static const struct {
        enum nbc_coll coll;
        int size, remote;
        int64_t vector; /* elements */
        const char *alg;
    } table[] = {
        {NBC_ALLREDUCE, 2, 2, 8192, "inter_linear"},
        {NBC_ALLREDUCE, 2, 2, 16384, "inter_bounce"},
        {NBC_ALLREDUCE, 2, 3, 2048, "inter_bounce"},
        {NBC_REDUCE_SCATTER, 2, 2, 1 << 20, "inter_linear"},
        {NBC_REDUCE_SCATTER, 4, 4, 2048, "inter_linear"},
        {NBC_REDUCE_SCATTER, 4, 4, 4096, "inter_bounce"},
        {NBC_REDUCE_SCATTER, 100, 100, 1024, "inter_linear"},
        {NBC_REDUCE_SCATTER, 100, 100, 8192, "inter_bounce"},
        {NBC_REDUCE_SCATTER, 4, 900, 8192, "inter_bounce"},
        {NBC_REDUCE_SCATTER, 900, 4, 8192, "inter_bounce"},
        {NBC_REDUCE_SCATTER, 900, 900, 4096, "inter_bounce"},
    };
    static struct inter call;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int64_t segment, blocks = table[i].coll == NBC_ALLREDUCE ? 1 : table[i].size;
        inter_call(&call, table[i].coll, table[i].size, table[i].remote, table[i].vector / blocks);
        call.counts[0] += table[i].vector % blocks;
        const struct nbc_alg *alg = nbc_select(&call.shape, NULL, &nbc_default_rules, &segment);
        ck_assert_msg(strcmp(alg->name, table[i].alg) == 0, "line %d: %s", (int)i, alg->name);
    }
}

UNIT(uneven_groups_take_messages_linear_in_both, .times = NBC_NCOLLS)
{
    static const int groups[][2] = {{1, LARGER}, {4, LARGER}, {LARGER, 1}, {LARGER, 4}};
    static const int64_t counts[] = {0, 1, 64, 2048, 1 << 20};
    static const int roots[] = {NBC_ROOT_HERE, NBC_ROOT_IDLE, 0};
    static struct inter call;
    enum nbc_coll coll = (enum nbc_coll)_i;
    for (int g = 0; g < 4 && row(coll, true, 0); g++)
        for (int c = 0; c < 5; c++) {
            int size = groups[g][0], ranks[] = {0, size > 3 ? 3 : 0, size - 1};
            inter_call(&call, coll, size, groups[g][1], counts[c]);
            for (int i = 0; i < 9; i++) {
                call.shape.rank = ranks[i % 3];
                call.shape.root = roots[i / 3];
                check_linear(&call.shape);
            }
        }
}

/* The longest message of an algorithm at a rank in the middle. */
static int64_t longest_message(const struct nbc_alg *alg, struct nbc_shape shape)
{
    int64_t most = 0;
    shape.rank = shape.size / 2;
    struct nbc_sched *s = nbc_build(alg->build, &shape);
    ck_assert_ptr_ne(s, NULL);
    for (int i = 0; i < s->nops; i++) {
        const struct nbc_op *op = &s->ops[i];
        if (op->kind != NBC_OP_SEND && op->kind != NBC_OP_RECV)
            continue;
        int64_t bytes = nbc_ref_bytes(&shape, nbc_op_a(op));
        most = bytes > most ? bytes : most;
    }
    nbc_sched_free(s);
    return most;
}

UNIT(segments_between_nodes_need_no_handshake)
{
    static const struct {
        enum nbc_coll coll;
        const char *alg;
    } table[] = {
        {NBC_BCAST, "chain"},   {NBC_BCAST, "two_tree"},  {NBC_BCAST, "two_rounds"},
        {NBC_REDUCE, "chain"},  {NBC_REDUCE, "two_tree"}, {NBC_SCAN, "chain"},
        {NBC_SCAN, "two_tree"}, {NBC_ALLREDUCE, "ring"},  {NBC_EXSCAN, "two_tree"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct nbc_alg *alg = nbc_alg_by_name(table[i].coll, table[i].alg);
        struct nbc_shape s = shape_of(table[i].coll, 8, 1 << 20);
        ck_assert_int_gt(longest_message(alg, s), nbc_sockets_eager);
        s.sockets = true;
        int64_t likely = longest_message(alg, s);
        ck_assert_int_le(likely, nbc_sockets_eager);
        ck_assert_int_gt(likely, nbc_sockets_eager / 2);
        s.eager = 40000;
        ck_assert_int_gt(longest_message(alg, s), 16384);
        ck_assert_int_le(longest_message(alg, s), 40000 + 8);
        s.eager = 1000; /* but no more than 1024 segments */
        s.send.count = s.recv.count = 100000;
        ck_assert_int_le(longest_message(alg, s), 1000 + 8);
        s.local = true;
        ck_assert_int_gt(longest_message(alg, s), 1000 + 8);
        s.segment = 2000;
        ck_assert_int_le(longest_message(alg, s), 2000 + 8);
    }
}

UNIT(parts_take_the_segments_of_the_call)
{
    const struct nbc_nodes nodes = nbc_nodes_blocks(12, 3);
    const struct nbc_alg *alg = nbc_alg_by_name(NBC_BCAST, "hierarchical");
    struct nbc_shape s = shape_of(NBC_BCAST, 12, 16000);
    s.nodes = &nodes;
    ck_assert_int_gt(longest_message(alg, s), 4096);
    s.segment = 4096;
    ck_assert_int_eq(longest_message(alg, s), 4096);
    s.segment = 128000;
    ck_assert_int_eq(longest_message(alg, s), 128000);
}

UNIT(blocks_between_hosts_move_in_pieces)
{
    static const struct {
        enum nbc_coll coll;
        const char *alg;
        int64_t most; /* elements of 8 bytes: with more, there would be too many pieces */
    } table[] = {
        {NBC_GATHER, "linear", 48 * 1024},     {NBC_SCATTER, "linear", 48 * 1024},
        {NBC_ALLGATHER, "linear", 18 * 1024},  {NBC_ALLTOALL, "linear", 18 * 1024},
        {NBC_ALLTOALL, "pairwise", 18 * 1024},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct nbc_alg *alg = nbc_alg_by_name(table[i].coll, table[i].alg);
        struct nbc_shape s = shape_of(table[i].coll, 8, table[i].most);
        ck_assert_int_eq(longest_message(alg, s), 8 * table[i].most);
        s.sockets = true;
        s.eager = 16384;
        ck_assert_int_eq(longest_message(alg, s), 16384);
        s.send.count = s.recv.count = table[i].most + 1;
        ck_assert_int_eq(longest_message(alg, s), 8 * table[i].most + 8);
        s.eager = 60 * 1024;
        ck_assert_int_le(longest_message(alg, s), 60 * 1024);
        s.segment = 8000;
        ck_assert_int_le(longest_message(alg, s), 8000);
        s.sockets = false;
        ck_assert_int_eq(longest_message(alg, s), 8 * table[i].most + 8);
    }
}

UNIT(handshakes_at_once_are_better_than_many_short_pieces)
{
    static const struct {
        enum nbc_coll coll;
        const char *alg;
        int64_t count; /* each rank reduces 64 KiB */
    } table[] = {
        {NBC_ALLREDUCE, "two_rounds", 8 * 8 * 1024},
        {NBC_REDUCE, "two_rounds", 8 * 8 * 1024},
        {NBC_REDUCE_SCATTER_BLOCK, "pairwise", 8 * 1024},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct nbc_alg *alg = nbc_alg_by_name(table[i].coll, table[i].alg);
        struct nbc_shape s = shape_of(table[i].coll, 8, table[i].count);
        ck_assert_int_eq(longest_message(alg, s), 64 * 1024);
        s.sockets = true;
        s.eager = 16 * 1024;
        ck_assert_int_eq(longest_message(alg, s), 16 * 1024);
        s.eager = 8 * 1024;
        ck_assert_int_eq(longest_message(alg, s), 8 * 1024);
        s.eager = 4 * 1024;
        ck_assert_int_eq(longest_message(alg, s), 64 * 1024);
        s.segment = 8 * 1024;
        ck_assert_int_eq(longest_message(alg, s), 8 * 1024);
    }
}

/* What ranks on one host do depends neither on the rules for sockets nor on an eager limit. */
UNIT(one_host_has_no_sockets)
{
    for (int i = 0; i < nbc_default_rules.nrules; i++) {
        const struct nbc_rule *rule = &nbc_default_rules.rule[i];
        struct nbc_shape s = shape_of(rule->coll, rule->min_size, rule->min_bytes / 8 + 1);
        struct nbc_nodes nodes = nbc_nodes_blocks(s.size, 2);
        int64_t counts[MOST_RANKS];
        if (!(rule->needs & NBC_SOCKETS))
            continue;
        for (int k = 0; k < s.size; k++)
            counts[k] = s.send.count;
        s.send.counts = s.recv.counts = (struct nbc_ints){counts, 8};
        s.nodes = rule->needs & NBC_NODES ? &nodes : NULL;
        s.sockets = true;
        const struct nbc_rule *found = nbc_rule_find(&s, &nbc_default_rules);
        ck_assert(found && found->needs & NBC_SOCKETS);
        s.sockets = false;
        found = nbc_rule_find(&s, &nbc_default_rules);
        ck_assert(!found || !(found->needs & NBC_SOCKETS));
        s.local = true;
        s.eager = 1000;
        found = nbc_rule_find(&s, &nbc_default_rules);
        ck_assert(!found || !(found->needs & NBC_SOCKETS));
        ck_assert_int_eq(nbc_segment_limit(&s, 1 << 20), 1 << 20);
    }
}
