/* SPDX-License-Identifier: MIT */
/* The resources that each algorithm uses over a fixed set of calls (messages, rounds, copies,
 * reductions, edges, temporary memory) must be those of uses.def. test_algs finds wrong results;
 * this test finds changes of the costs: unnecessary copies, unnecessary edges, empty messages,
 * messages that wait for others. After an intended change, and for a new algorithm:
 *
 *   test_uses --print >.../test/unit/uses.def */
#include <inttypes.h>
#include <string.h>

#include "count.h"
#include "unit.h"

/* Replaces tuning.def: subcollectives use the first algorithm that applies, so that the numbers do
 * not depend on the tuning rules. */
const struct nbc_rules nbc_default_rules = {.rule = NULL};

struct uses {
    int64_t rounds, most;   /* as in count.h */
    int64_t messages, sent; /* sent, copied, reduced: bytes */
    int64_t copies, copied;
    int64_t reductions, reduced;
    int64_t waits, temp;
};

#define USES(coll, name, ...) {#coll ":" #name, {__VA_ARGS__}},
static const struct {
    const char *name;
    struct uses uses;
} table[] = {
#include "uses.def"
};

/* --- counting --------------------------------------------------------------------------------- */

static void add_op(struct uses *u, const struct nbc_shape *shape, const struct nbc_op *op)
{
    int64_t bytes = op->kind == NBC_OP_JOIN ? 0 : nbc_ref_bytes(shape, nbc_op_a(op));
    u->copies += op->kind == NBC_OP_COPY;
    u->copied += op->kind == NBC_OP_COPY ? bytes : 0;
    u->reductions += op->kind == NBC_OP_REDUCE;
    u->reduced += op->kind == NBC_OP_REDUCE ? bytes : 0;
}

/* Leaves out calls that are equal to others. */
static void add_call(struct uses *u, const struct test_case *asked)
{
    struct test_case c = *asked;
    case_normalize(&c);
    if (c.root != asked->root || c.in_place != asked->in_place || c.op != asked->op)
        return;
    struct world *w = world_new(&c);
    if (world_applies(w)) {
        need(!world_build(w));
        struct cost cost = count(w);
        u->rounds += cost.rounds;
        u->most += cost.most;
        u->messages += cost.messages;
        u->sent += cost.bytes;
        for (int id = 0; id < w->n; id++) {
            const struct nbc_sched *s = w->party[id].sched;
            u->waits += s->nsucc;
            u->temp += s->temp_bytes;
            for (nbc_id op = 0; op < s->nops; op++)
                add_op(u, &w->party[id].shape, &s->ops[op]);
        }
    }
    world_free(w);
}

/* Few and many ranks, in place or not, empty, even and uneven blocks, packed or with gaps. */
static void add_small(struct uses *u, const struct nbc_alg *alg)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 8, 9, 16, 33}, counts[] = {0, 1, 9};
    for (unsigned i = 0; i < 9 * 3 * 32; i++) {
        unsigned bits = i % 32;
        int size = sizes[i / 32 % 9];
        struct test_case c = {.alg = alg, .size = size, .runs = 1, .seed = i};
        c.count = counts[i / 32 / 9];
        c.in_place = bits & 1;
        c.layout = bits & 2 ? GAP : PLAIN;
        c.root = bits & 4 ? size / 2 : 0;
        c.segment = bits & 8 ? 24 : 0;
        c.even = bits & 16;
        c.op = c.even; /* a commutative operator, a non-commutative one */
        c.graph = (int)(i % NGRAPHS);
        c.nodes = alg->needs & NBC_NODES ? 2 + (int)(bits & 1) : 0;
        c.remote = alg->needs & NBC_INTER ? 1 + (int)(i * 7 % 11) : 0;
        add_call(u, &c);
    }
}

/* Vectors that are divided into pieces and reuse temporary memory. */
static void add_large(struct uses *u, const struct nbc_alg *alg)
{
    bool scatters = alg->coll == NBC_REDUCE_SCATTER || alg->coll == NBC_REDUCE_SCATTER_BLOCK;
    if (alg->coll != NBC_BCAST && !nbc_coll_reduces(alg->coll))
        return;
    for (int size = 3; size <= 16; size += size == 8 ? 8 : 1)
        for (int bits = 0; bits < 16; bits++) {
            struct test_case c = {.alg = alg, .size = size, .runs = 1, .seed = 7, .even = true};
            c.remote = alg->needs & NBC_INTER ? size : 0;
            c.nodes = alg->needs & NBC_NODES ? 2 : 0;
            c.count = scatters ? 20000 / (size + c.remote) : 20000;
            c.in_place = bits & 1;
            c.op = bits >> 1 & 1;
            c.segment = bits & 4 ? 2000 : 0;
            c.root = bits & 8 ? size / 2 : 0;
            add_call(u, &c);
        }
}

static struct uses uses_of(const struct nbc_alg *alg)
{
    struct uses u = {0};
    add_small(&u, alg);
    add_large(&u, alg);
    return u;
}

/* --- comparison ------------------------------------------------------------------------------- */

static void print_line(const struct nbc_alg *alg, const struct uses *u, char *line, size_t size)
{
    snprintf(line, size,
             "USES(%s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
             ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ")",
             nbc_coll_name(alg->coll), alg->name, u->rounds, u->most, u->messages, u->sent,
             u->copies, u->copied, u->reductions, u->reduced, u->waits, u->temp);
}

static void print_all(void)
{
    printf(
        "/* SPDX-License-Identifier: MIT */\n"
        "/* Written by test_uses --print. Messages one after the other and most bytes at a rank, "
        "messages\n * and bytes, copies and bytes, reductions and bytes, edges, bytes of temporary "
        "memory: sums over\n * the calls of test_uses.c. */\n"
        "/* clang-format off */\n");
    for (int row = 0; row < nbc_nalgs; row++) {
        char line[400];
        if (nbc_algs[row].needs & NBC_BY_MPI)
            continue;
        struct uses u = uses_of(&nbc_algs[row]);
        print_line(&nbc_algs[row], &u, line, sizeof line);
        puts(line);
    }
}

UNIT(every_algorithm_uses_what_it_did, .each_row = true)
{
    const struct nbc_alg *alg = &nbc_algs[_i];
    char name[80], now[400], before[400] = "no such line";
    struct uses u = uses_of(alg);
    print_line(alg, &u, now, sizeof now);
    snprintf(name, sizeof name, "%s:%s", nbc_coll_name(alg->coll), alg->name);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            print_line(alg, &table[i].uses, before, sizeof before);
    ck_assert_msg(strcmp(now, before) == 0, "uses.def: %s\nnow:      %s", before, now);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        print_all();
        return 0;
    }
    return unit_main();
}
