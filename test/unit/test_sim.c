/* SPDX-License-Identifier: MIT */
/* The tests' own tools: a simulated network must do all that MPI may do, and a comparison with the
 * definition must notice what is wrong. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit.h"

/* --- the network --------------------------------------------------------------------------------
 */

enum { RANKS = 3, WORDS = 64 };

static struct layout layouts[3];

/* Ranks whose schedules are written by hand. */
struct net {
    struct nbc_type types[3];
    struct nbc_shape shape;
    struct nbc_sched *sched[RANKS];
    uint64_t send[RANKS][WORDS], recv[RANKS][WORDS];
    struct sim_rank ranks[RANKS];
};

static void net_open(struct net *n)
{
    memset(n, 0, sizeof *n);
    layouts[0] = layout_make(1, 1, (const int64_t[]){0}, 1);
    layouts[1] = layouts[2] = layout_make(ATOM, 1, (const int64_t[]){0}, ATOM);
    for (int i = 0; i < 3; i++)
        n->types[i] = layouts[i].type;
    n->shape =
        (struct nbc_shape){.coll = NBC_ALLTOALL, .size = RANKS, .types = n->types, .ntypes = 3};
    for (int r = 0; r < RANKS; r++) {
        n->sched[r] = nbc_sched_new(&n->shape, 0);
        for (int i = 0; i < WORDS; i++)
            n->send[r][i] = (uint64_t)(100 * (r + 1) + i);
    }
}

static struct nbc_ref at(int buf, int word, int count)
{
    return (struct nbc_ref){.off = ATOM * word, .count = count, .type = NBC_TYPE_SEND, .buf = buf};
}

static const char *net_run(struct net *n, struct sim_config config, char *text)
{
    struct sim *sim = sim_new(&config);
    for (int r = 0; r < RANKS; r++) {
        n->ranks[r].sched = n->sched[r];
        n->ranks[r].layouts = layouts;
        n->ranks[r].send = n->send[r];
        n->ranks[r].recv = n->recv[r];
    }
    sim_add(sim, n->ranks, RANKS, 0);
    const char *wrong = sim_run(sim);
    if (wrong)
        strcpy(text, wrong);
    sim_free(sim);
    return wrong ? text : NULL;
}

static void net_finish(struct net *n)
{
    for (int r = 0; r < RANKS; r++)
        n->sched[r] = nbc_sched_finish(n->sched[r]);
}

static void net_close(struct net *n)
{
    for (int r = 0; r < RANKS; r++)
        nbc_sched_free(n->sched[r]);
}

static void expect(struct net *n, struct sim_config config, const char *words)
{
    char text[500];
    const char *wrong = net_run(n, config, text);
    if (!words)
        ck_assert_msg(!wrong, "%s", wrong);
    else
        ck_assert_msg(wrong && strstr(wrong, words), "wanted \"%s\", got \"%s\"", words,
                      wrong ? wrong : "nothing");
}

START_TEST(messages_arrive)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct net n;
        net_open(&n);
        nbc_send(n.sched[0], at(NBC_BUF_SEND, 1, 3), 1, NBC_NONE);
        nbc_recv(n.sched[1], at(NBC_BUF_RECV, 5, 3), 0, NBC_NONE);
        net_finish(&n);
        expect(&n,
               (struct sim_config){.seed = seed, .rendezvous = seed % 2, .jitter = 3, .delay = 3},
               NULL);
        ck_assert_int_eq(memcmp(&n.recv[1][5], &n.send[0][1], 3 * ATOM), 0);
        ck_assert(n.recv[1][4] == 0 && n.recv[1][8] == 0);
        net_close(&n);
    }
}
END_TEST

START_TEST(messages_match_in_posted_order_whatever_completes_first)
{
    bool overtaken = false;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct net n;
        net_open(&n);
        for (int i = 0; i < WORDS; i++) {
            nbc_send(n.sched[0], at(NBC_BUF_SEND, i, 1), 1, NBC_NONE);
            nbc_recv(n.sched[1], at(NBC_BUF_RECV, i, 1), 0, NBC_NONE);
        }
        /* A second look when the last one is there: have all others come before it? */
        struct nbc_ref look = nbc_temp_bytes(n.sched[1], WORDS * ATOM);
        nbc_id looked = nbc_copy(n.sched[1], look, at(NBC_BUF_RECV, 0, WORDS), WORDS - 1);
        nbc_send(n.sched[1], look, 2, looked);
        nbc_recv(n.sched[2], at(NBC_BUF_RECV, 0, WORDS), 1, NBC_NONE);
        net_finish(&n);
        expect(&n, (struct sim_config){.seed = seed, .rendezvous = seed % 2, .jitter = 9}, NULL);
        ck_assert_int_eq(memcmp(n.recv[1], n.send[0], sizeof n.send[0]), 0);
        overtaken |= memcmp(n.recv[2], n.send[0], sizeof n.send[0]) != 0;
        net_close(&n);
    }
    ck_assert_msg(overtaken, "messages of one channel always complete in order");
}
END_TEST

/* Two ranks that send before they receive: a deadlock, unless the network buffers. */
START_TEST(rendezvous_shows_deadlocks_that_eager_messages_hide)
{
    for (int rendezvous = 0; rendezvous < 2; rendezvous++) {
        struct net n;
        net_open(&n);
        for (int r = 0; r < 2; r++) {
            nbc_id sent = nbc_send(n.sched[r], at(NBC_BUF_SEND, 0, 1), 1 - r, NBC_NONE);
            nbc_recv(n.sched[r], at(NBC_BUF_RECV, 0, 1), 1 - r, sent);
        }
        net_finish(&n);
        expect(&n, (struct sim_config){.rendezvous = rendezvous}, rendezvous ? "deadlock" : NULL);
        net_close(&n);
    }
}
END_TEST

START_TEST(a_missing_message_is_a_deadlock)
{
    struct net n;
    net_open(&n);
    nbc_recv(n.sched[2], at(NBC_BUF_RECV, 0, 1), 0, NBC_NONE);
    net_finish(&n);
    expect(&n, (struct sim_config){0}, "deadlock: rank 2");
    net_close(&n);
}
END_TEST

START_TEST(a_message_too_many_is_noticed)
{
    struct net n;
    net_open(&n);
    nbc_send(n.sched[2], at(NBC_BUF_SEND, 0, 1), 0, NBC_NONE);
    net_finish(&n);
    expect(&n, (struct sim_config){0}, "rank 0 never receives a message from rank 2");
    net_close(&n);
}
END_TEST

START_TEST(messages_of_another_size_are_noticed)
{
    struct net n;
    net_open(&n);
    nbc_send(n.sched[2], at(NBC_BUF_SEND, 0, 2), 0, NBC_NONE);
    nbc_recv(n.sched[0], at(NBC_BUF_RECV, 0, 3), 2, NBC_NONE);
    net_finish(&n);
    expect(&n, (struct sim_config){0}, "rank 2 sends 16 bytes to rank 0, which wants 24");
    net_close(&n);
}
END_TEST

/* What is read before its message is complete, or overwritten before it is sent, is garbage. */
START_TEST(races_do_harm)
{
    for (int early_read = 0; early_read < 2; early_read++) {
        struct net n;
        int harm = 0;
        net_open(&n);
        if (early_read) {
            nbc_recv(n.sched[1], at(NBC_BUF_RECV, 0, 1), 0, NBC_NONE);
            nbc_copy(n.sched[1], at(NBC_BUF_RECV, 1, 1), at(NBC_BUF_RECV, 0, 1), NBC_NONE);
            nbc_send(n.sched[0], at(NBC_BUF_SEND, 0, 1), 1, NBC_NONE);
        } else {
            nbc_recv(n.sched[1], at(NBC_BUF_RECV, 1, 1), 0, NBC_NONE);
            nbc_send(n.sched[0], at(NBC_BUF_SEND, 0, 1), 1, NBC_NONE);
            nbc_copy(n.sched[0], at(NBC_BUF_SEND, 0, 1), at(NBC_BUF_SEND, 9, 1), NBC_NONE);
        }
        net_finish(&n);
        for (uint64_t seed = 0; seed < 10; seed++) {
            n.send[0][0] = 100;
            expect(&n, (struct sim_config){.seed = seed, .rendezvous = true, .jitter = 2}, NULL);
            harm += n.recv[1][1] != 100;
        }
        ck_assert_int_ge(harm, 9);
        net_close(&n);
    }
}
END_TEST

static void next_run(struct sim_rank *r, int run)
{
    struct net *n = r->user;
    int rank = (int)(r - n->ranks);
    if (rank == 0)
        n->send[0][0]++;
    if (rank == 1) {
        ck_assert_uint_eq(n->recv[1][0], 100 + (uint64_t)run);
        n->recv[1][0] = 0;
    }
}

/* Ranks of a persistent operation may be in different runs. */
START_TEST(runs_overlap_and_do_not_mix)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct net n;
        net_open(&n);
        nbc_send(n.sched[0], at(NBC_BUF_SEND, 0, 1), 1, NBC_NONE);
        nbc_recv(n.sched[1], at(NBC_BUF_RECV, 0, 1), 0, NBC_NONE);
        net_finish(&n);
        for (int r = 0; r < RANKS; r++) {
            n.ranks[r].runs = 5;
            n.ranks[r].finished = next_run;
            n.ranks[r].user = &n;
        }
        expect(&n, (struct sim_config){.seed = seed, .jitter = 3, .delay = 9}, NULL);
        ck_assert_uint_eq(n.send[0][0], 105);
        net_close(&n);
    }
}
END_TEST

START_TEST(bytes_are_not_received_as_elements_with_gaps)
{
    struct net n;
    net_open(&n);
    layouts[2] = layout_make(ATOM, 1, (const int64_t[]){8}, 16);
    n.types[2] = layouts[2].type;
    struct nbc_ref bytes = {.count = 16, .type = NBC_TYPE_BYTE, .buf = NBC_BUF_SEND};
    struct nbc_ref gaps = {.count = 2, .type = NBC_TYPE_RECV, .buf = NBC_BUF_RECV};
    nbc_send(n.sched[0], bytes, 1, NBC_NONE);
    nbc_recv(n.sched[1], gaps, 0, NBC_NONE);
    net_finish(&n);
    expect(&n, (struct sim_config){0}, "elements with gaps");
    net_close(&n);
}
END_TEST

START_TEST(an_injected_error_ends_its_rank)
{
    for (int rendezvous = 0; rendezvous < 2; rendezvous++) {
        struct net n;
        net_open(&n);
        for (int r = 0; r < RANKS; r++)
            for (int to = 0; to < RANKS; to++)
                if (to != r) {
                    nbc_recv(n.sched[r], at(NBC_BUF_RECV, to, 1), to, NBC_NONE);
                    nbc_send(n.sched[r], at(NBC_BUF_SEND, to, 1), to, NBC_NONE);
                }
        net_finish(&n);
        for (int call = 1; call < 20; call++) {
            expect(&n, (struct sim_config){.seed = 3, .rendezvous = rendezvous, .fail_at = call},
                   NULL);
            int errors = 0;
            for (int r = 0; r < RANKS; r++)
                errors += n.ranks[r].exec.error != 0;
            ck_assert_int_eq(errors, call <= 12 || errors); /* the posts; polls follow */
        }
        net_close(&n);
    }
}
END_TEST

/* --- layouts ------------------------------------------------------------------------------------
 */

START_TEST(packing_and_unpacking_leave_gaps_alone)
{
    const struct layout l = layout_make(ATOM, 3, (const int64_t[]){8, -16, 0}, 40);
    uint64_t memory[40], packed[12], copy[40];
    ck_assert(!l.type.packed && l.type.size == 24 && l.type.true_lb == -16 &&
              l.type.true_extent == 32);
    for (int i = 0; i < 40; i++)
        memory[i] = (uint64_t)i, copy[i] = 1000;
    layout_pack(&l, &memory[10], 4, packed);
    for (int i = 0; i < 4; i++) { /* in type-map order */
        ck_assert_uint_eq(packed[3 * i], 11 + 5 * (uint64_t)i);
        ck_assert_uint_eq(packed[3 * i + 1], 8 + 5 * (uint64_t)i);
        ck_assert_uint_eq(packed[3 * i + 2], 10 + 5 * (uint64_t)i);
    }
    layout_unpack(&l, &copy[10], 4, packed);
    for (int i = 0; i < 40; i++) {
        int slot = (i - 8 + 40) % 5;
        bool data = i >= 8 && i < 28 && (slot == 0 || slot == 2 || slot == 3);
        ck_assert_uint_eq(copy[i], data ? (uint64_t)i : 1000);
    }
}
END_TEST

START_TEST(packed_means_memory_order_without_gaps)
{
    ck_assert(layout_make(8, 2, (const int64_t[]){0, 8}, 16).type.packed);
    ck_assert(layout_make(8, 2, (const int64_t[]){24, 32}, 16).type.packed);
    ck_assert(!layout_make(8, 2, (const int64_t[]){8, 0}, 16).type.packed);
    ck_assert(!layout_make(8, 2, (const int64_t[]){0, 8}, 24).type.packed);
    ck_assert(!layout_make(8, 1, (const int64_t[]){0}, -8).type.packed);
    ck_assert(!layout_make(8, 2, (const int64_t[]){0, 16}, 16).type.packed);
}
END_TEST

/* --- cases --------------------------------------------------------------------------------------
 */

START_TEST(a_case_can_be_written_down_and_read_back)
{
    for (uint64_t i = 0; i < 300; i++) {
        struct rng rng = {i};
        struct test_case c = {.alg = &nbc_algs[rng_below(&rng, nbc_nalgs)],
                              .size = 1 + (int)rng_below(&rng, 9),
                              .root = (int)rng_below(&rng, 9),
                              .count = rng_below(&rng, 9),
                              .op = (int)rng_below(&rng, NOPS),
                              .in_place = rng_below(&rng, 2),
                              .layout = (int)rng_below(&rng, NLAYOUTS),
                              .graph = (int)rng_below(&rng, NGRAPHS),
                              .segment = rng_below(&rng, 100),
                              .rendezvous = rng_below(&rng, 2),
                              .runs = 1 + (int)rng_below(&rng, 3),
                              .seed = rng_next(&rng)};
        struct test_case read = {.alg = c.alg};
        char text[500], again[500], *words[20];
        int n = 0;
        case_normalize(&c);
        case_print(&c, text, sizeof text);
        strcpy(again, text);
        strtok(again, " ");
        while ((words[n] = strtok(NULL, " ")))
            n++;
        ck_assert_ptr_null(case_parse(&read, n, words));
        case_print(&read, again, sizeof again);
        ck_assert_str_eq(again, text);
    }
    char *bad[] = {"P=3", "Q=4"}, *worse[] = {"layout=crooked"};
    struct test_case c = {0};
    ck_assert_str_eq(case_parse(&c, 2, bad), "Q=4");
    ck_assert_str_eq(case_parse(&c, 1, worse), "layout=crooked");
}
END_TEST

/* A right schedule with one thing wrong in it. */
static const struct nbc_alg *original;
static int defect;

static struct nbc_sched *defective(const struct nbc_shape *shape)
{
    struct nbc_sched *s = original->build(shape);
    for (nbc_id id = 0; shape->rank == 1 && id < s->nops; id++) {
        struct nbc_op *op = &s->ops[id];
        struct nbc_ref swap = op->b;
        if (defect == 0 && op->kind == NBC_OP_REDUCE && !nbc_same_place(op->a, op->b)) {
            op->b = op->c;
            op->c = swap;
            return s;
        }
        if (defect == 1 && op->kind == NBC_OP_SEND && op->a.count > 1) {
            op->a.count--;
            return s;
        }
        if (defect == 2 && op->kind == NBC_OP_SEND) {
            op->peer = (op->peer + 1) % shape->size == shape->rank ? (op->peer + 2) % shape->size
                                                                   : (op->peer + 1) % shape->size;
            return s;
        }
        if (defect == 3 && op->kind == NBC_OP_RECV && op->a.buf == NBC_BUF_RECV) {
            op->a.off += shape->types[op->a.type].extent;
            return s;
        }
        if (defect == 4 && op->kind == NBC_OP_COPY) {
            op->kind = NBC_OP_JOIN;
            return s;
        }
    }
    return s;
}

/* Tells whether one of a few calls goes wrong. */
static bool caught(enum nbc_coll coll, const char *name, int which)
{
    struct nbc_alg alg = *nbc_alg_by_name(coll, name);
    char text[600];
    original = nbc_alg_by_name(coll, name);
    defect = which;
    alg.build = defective;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct test_case c = {.alg = &alg,
                              .size = 5,
                              .count = 4,
                              .op = AFFINE,
                              .layout = PLAIN,
                              .runs = 1,
                              .seed = seed};
        case_normalize(&c);
        if (case_run(&c, INT64_MAX, text, sizeof text) == FAILED)
            return true;
    }
    return false;
}

START_TEST(comparison_notices_what_is_wrong)
{
    ck_assert(!caught(NBC_ALLREDUCE, "recursive_doubling", -1));
    for (int which = 0; which < 4; which++)
        ck_assert_msg(caught(NBC_ALLREDUCE, "recursive_doubling", which), "defect %d", which);
    for (int which = 1; which < 4; which++)
        ck_assert_msg(caught(NBC_ALLTOALL, "linear", which), "defect %d", which);
    ck_assert(caught(NBC_ALLTOALL, "linear", 4));
}
END_TEST

/* --- several operations at once -----------------------------------------------------------------
 */

START_TEST(operations_at_once_keep_apart)
{
    for (uint64_t round = 0; round < 60; round++) {
        struct rng rng = {round};
        struct world *worlds[4];
        struct sim_config config = {
            .seed = round, .rendezvous = round % 2, .jitter = 3, .delay = 4};
        struct sim *sim = sim_new(&config);
        for (int i = 0; i < 4; i++) {
            struct test_case c;
            do {
                c = (struct test_case){.alg = &nbc_algs[rng_below(&rng, nbc_nalgs)],
                                       .size = 8,
                                       .root = 3,
                                       .count = 1 + rng_below(&rng, 5),
                                       .op = SUM,
                                       .layout = (int)rng_below(&rng, MIXED),
                                       .graph = 4,
                                       .segment = 16,
                                       .runs = 3,
                                       .seed = rng_next(&rng)};
                c.remote = c.alg->needs & NBC_INTER ? 5 : 0;
            } while (c.alg->needs & NBC_NODES);
            worlds[i] = world_new(&c);
            ck_assert_msg(!world_build(worlds[i]), "%s", worlds[i]->text);
            world_start(worlds[i], sim);
        }
        const char *stuck = sim_run(sim);
        ck_assert_msg(!stuck, "round %d: %s", (int)round, stuck);
        sim_free(sim);
        for (int i = 0; i < 4; i++) {
            char name[500];
            case_print(&worlds[i]->c, name, sizeof name);
            ck_assert_msg(!world_result(worlds[i]), "%s: %s", name, worlds[i]->text);
            world_free(worlds[i]);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *tc = tcase_create("sim");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, messages_arrive);
    tcase_add_test(tc, messages_match_in_posted_order_whatever_completes_first);
    tcase_add_test(tc, rendezvous_shows_deadlocks_that_eager_messages_hide);
    tcase_add_test(tc, a_missing_message_is_a_deadlock);
    tcase_add_test(tc, a_message_too_many_is_noticed);
    tcase_add_test(tc, messages_of_another_size_are_noticed);
    tcase_add_test(tc, races_do_harm);
    tcase_add_test(tc, runs_overlap_and_do_not_mix);
    tcase_add_test(tc, bytes_are_not_received_as_elements_with_gaps);
    tcase_add_test(tc, an_injected_error_ends_its_rank);
    tcase_add_test(tc, packing_and_unpacking_leave_gaps_alone);
    tcase_add_test(tc, packed_means_memory_order_without_gaps);
    tcase_add_test(tc, a_case_can_be_written_down_and_read_back);
    tcase_add_test(tc, comparison_notices_what_is_wrong);
    tcase_add_test(tc, operations_at_once_keep_apart);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
