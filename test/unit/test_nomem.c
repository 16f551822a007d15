/* SPDX-License-Identifier: MIT */
/* Memory runs out: at the first allocation, at the second, …, in every builder and in the check.
 * Linked so that the allocation functions called here and in the library are the ones below. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "sched_check.h"
#include "unit.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

/* A compiler that sees the whole program (-flto) takes it that malloc changes no variable. */
static volatile int countdown; /* 1: the next allocation fails; 0: none does */
static volatile bool goes_on;  /* those after it fail too */
static volatile int failures;

static bool fails(void)
{
    if (countdown == 0)
        return false;
    if (countdown > 1) {
        countdown--;
        return false;
    }
    countdown = goes_on;
    failures++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

static struct test_case case_of(const struct nbc_alg *alg)
{
    struct test_case c = {.alg = alg,
                          .size = 8,
                          .root = 1,
                          .remote = alg->needs & NBC_INTER ? 8 : 0,
                          .count = 7,
                          .layout = GAP,
                          .graph = 4,
                          .nodes = alg->needs & NBC_NODES ? 2 : 0,
                          .segment = 16,
                          .seed = 8};
    case_normalize(&c);
    return c;
}

UNIT(a_builder_without_memory_gives_no_schedule, .each_row = true)
{
    struct test_case c = case_of(&nbc_algs[_i]);
    struct world *w = world_new(&c);
    for (int id = 0; id < w->n; id++) {
        const struct nbc_shape *shape = &w->party[id].shape;
        struct nbc_sched *s = NULL;
        for (int n = 2; !s; n++) {
            ck_assert_int_lt(n, 2000);
            countdown = n / 2;
            goes_on = n % 2;
            failures = 0;
            s = nbc_build(c.alg->build, shape);
            countdown = 0;
            ck_assert_msg(!s == (failures > 0), "rank %d, allocation %d: %s", id, n / 2,
                          s ? "a schedule that lacks something" : "no schedule for no reason");
        }
        nbc_sched_free(s);
    }
    world_free(w);
}

UNIT(a_check_without_memory_says_so, .each_row = true)
{
    struct test_case c = case_of(&nbc_algs[_i]);
    struct world *w = world_new(&c);
    ck_assert(!world_build(w));
    bool checked = false;
    for (int n = 1; !checked; n++) {
        char text[200];
        ck_assert_int_lt(n, 1000);
        countdown = n;
        failures = 0;
        const char *wrong = sched_check(w->party[0].sched, &w->party[0].shape, text, sizeof text);
        countdown = 0;
        checked = failures == 0;
        ck_assert_msg(checked ? !wrong : wrong && strcmp(wrong, "out of memory") == 0,
                      "allocation %d: %s", n, wrong ? wrong : "fine");
    }
    world_free(w);
}

/* Growing arrays: a schedule of thousands of operations. */
UNIT(long_schedules_without_memory)
{
    static const struct nbc_type types[] = {
        {1, 1, 0, 1, true}, {8, 8, 0, 8, true}, {8, 8, 0, 8, true}};
    const struct nbc_shape shape = {
        .coll = NBC_BARRIER, .size = 4, .rank = 1, .types = types, .ntypes = 3};
    struct nbc_sched *s = NULL;
    for (int n = 1; !s; n++) {
        countdown = n;
        failures = 0;
        s = nbc_sched_new(&shape);
        if (!s)
            continue;
        struct nbc_ref nothing = nbc_temp_bytes(s, 0);
        for (int i = 0; i < 1000; i++) {
            nbc_id got = nbc_recv(s, nothing, 0, NBC_NONE);
            nbc_after(s, nbc_send(s, nothing, 2, got), nbc_join(s, got, i));
            nbc_after_since(s, nbc_join_of(s, NULL, 0), got);
        }
        s = nbc_sched_finish(s);
        countdown = 0;
        ck_assert(!s == (failures > 0));
    }
    ck_assert_int_ge(s->nops, 3000);
    nbc_sched_free(s);
}

UNIT(an_offer_without_memory_is_none)
{
    struct test_case c = case_of(nbc_alg_by_name(NBC_NEIGHBOR_ALLTOALL, "locality"));
    struct world *w = world_new(&c);
    struct nbc_offer offer;
    struct nbc_pattern pattern;
    bool made = false;
    for (int n = 1; !made; n++) {
        countdown = n;
        failures = 0;
        made = nbc_offer_make(&offer, &w->party[0].shape);
        countdown = 0;
        ck_assert(made == (failures == 0));
    }
    countdown = 1;
    made = nbc_pattern_make(&pattern, offer.edges, 1, offer.n);
    countdown = 0;
    ck_assert(!made);
    nbc_pattern_free(&pattern);
    free(offer.edges);
    world_free(w);
}
