/* SPDX-License-Identifier: MIT */
/* A random mix: all nonblocking collectives outstanding on several communicators at once, completed
 * by random calls, among point-to-point messages and blocking collectives, while communicators are
 * freed and made. The sequence of calls is the same on all ranks, the order of completion is each
 * rank's own. */
#include "completion.h"
#include "groups.h"
#include "messages.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PENDING = 40 };

/* What a request belongs to: one of the two. */
struct item {
    struct testcase *testcase;
    struct message message;
};

static struct groups groups;
static int operations, compared;

static void finished(struct pool *p, int i, const MPI_Status *status)
{
    struct item *item = p->item[i];

    EXPECT(p->request[i] == MPI_REQUEST_NULL, "a completed request is not null");
    if (item->testcase) {
        case_check(item->testcase, "mix");
        case_delete(item->testcase);
    } else {
        message_check(&item->message, status);
        message_clear(&item->message);
    }
    free(item);
    pool_remove(p, i);
}

static void exchange(struct pool *p, const struct group *g, struct rng *shared)
{
    struct item *item[2] = {test_alloc(sizeof **item), test_alloc(sizeof **item)};

    messages_draw(g, shared, &item[0]->message, &item[1]->message);
    for (int i = 0; i < 2; i++) {
        item[i]->testcase = NULL;
        message_fill(&item[i]->message, 0);
        pool_add(p, message_start(&item[i]->message, g->comm), item[i], true);
    }
}

static void mix_start(struct pool *p, const struct spec *spec)
{
    struct item *item = test_alloc(sizeof *item);
    MPI_Request request = MPI_REQUEST_NULL;

    item->testcase = case_new(spec);
    case_fill(item->testcase, 0);
    case_expect(item->testcase, case_call(item->testcase, NONBLOCKING, MPI_INFO_NULL, &request),
                "mix");
    case_drop(item->testcase);
    pool_add(p, request, item, true);
}

static int draw_count(struct rng *shared)
{
    int k = rng_below(shared, 100);

    return k < 80 ? 40 : k < 98 ? 2500 : 20000;
}

/* One step of the sequence: everything about it is drawn from the shared generator before anybody
 * knows whether this rank takes part. */
static void mix_step(struct pool *p, struct rng *shared)
{
    int i = rng_below(shared, NGROUPS), what = rng_below(shared, 100);
    struct rng rng = {rng_next(shared)};
    const struct group *g = groups.now[i];
    enum coll coll;
    struct spec spec;

    if (what < 2) {
        groups_replace(&groups, i, &rng);
        return;
    }
    if (g->comm == MPI_COMM_NULL)
        return;
    if (what < 20) {
        exchange(p, g, &rng);
        return;
    }
    coll = (enum coll)rng_below(&rng, g->topology && !test_native ? NCOLLS : NINTRA);
    spec = spec_random(coll, g, rng_next(&rng), draw_count(&rng));
    if (test_native) /* the MPIs' own are wrong there, and in neighborhoods */
        spec.in_place = spec.in_place && coll != ALLTOALLV && coll != ALLTOALLW;
    mix_start(p, &spec);
    operations++;
    if (coll < NINTRA && rng_chance(&rng, test_oversubscribed() ? 12 : 50)) {
        spec.in_place = false;
        spec.style.plain = true;
        case_run(&spec, BLOCKING);
        compared++;
    }
}

TEST(mix)
{
    struct rng shared = rng_shared(1), own = rng_private(2);
    struct pool *p = pool_new();
    int steps = test_scale(test_oversubscribed() ? 1500 : 2500, 60000);
    groups_make(&groups, &shared);
    for (int i = 0; i < steps; i++) {
        test_place("step %d", i);
        mix_step(p, &shared);
        if (rng_chance(&own, 40))
            pool_complete(p, &own, rng_chance(&own, 20), finished);
        if (p->nactive > MOST_PENDING)
            pool_drain(p, &own, rng_below(&own, MOST_PENDING), finished);
    }
    for (int i = 0; i < NGROUPS; i += 2)
        if (groups.now[i]->comm != MPI_COMM_NULL)
            MPI_Comm_free(&groups.now[i]->comm);
    pool_drain(p, &own, 0, finished);
    pool_delete(p);
    groups_free(&groups);
    if (test_rank == 0)
        printf("%d collectives, %d compared with blocking ones\n", operations, compared);
}

AROUND_TESTS(kinds_init, kinds_finish)
