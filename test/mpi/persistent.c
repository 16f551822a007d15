/* SPDX-License-Identifier: MIT */
/* A random mix of persistent collectives, all 22: set up in the same order on all ranks, started in
 * another order on each, by MPI_Start or in MPI_Startall with point-to-point requests, with new
 * contents each time, completed by random calls among nonblocking and blocking collectives, freed
 * at different times. Handles, info and argument arrays are gone as soon as a request is set up,
 * and communicators may be. */
#include "completion.h"
#include "groups.h"
#include "messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_HELD = 60, MAX_BATCH = 12, LIFE = 5 };

struct item {
    struct testcase *testcase;
    struct message message;
    bool once;  /* a nonblocking one among the persistent */
    int starts; /* the same on all ranks whenever it is started */
    bool retired;
};

/* What is set up by all ranks together, and started together: a collective, or a message that comes
 * and one that goes. Every rank keeps the same list. */
struct member {
    int n, place[2]; /* in the pool; n = 0: this rank is not in the group */
};

static struct groups groups;
static struct member *members;
static int nmembers, set_up, started;

static void release(struct pool *p, int i)
{
    struct item *item = p->item[i];

    if (!item->once)
        MPI_Request_free(&p->request[i]);
    EXPECT(p->request[i] == MPI_REQUEST_NULL, "a freed request is not null");
    if (item->testcase)
        case_delete(item->testcase);
    else
        message_clear(&item->message);
    free(item);
    pool_remove(p, i);
}

static void finished(struct pool *p, int i, const MPI_Status *status)
{
    struct item *item = p->item[i];

    if (item->testcase)
        case_check(item->testcase, item->once ? "nonblocking" : "persistent");
    else
        message_check(&item->message, status);
    EXPECT_INT(p->request[i] == MPI_REQUEST_NULL, item->once);
    if (item->once)
        release(p, i);
}

/* --- setting up --------------------------------------------------------------------------------*/

static void add_member(int n, int first, int second)
{
    members = realloc(members, (size_t)(nmembers + 1) * sizeof *members);
    if (!members)
        abort();
    members[nmembers++] = (struct member){n, {first, second}};
}

static struct item *item_new(void)
{
    struct item *item = test_alloc(sizeof *item);

    *item = (struct item){.testcase = NULL};
    return item;
}

static void set_up_messages(struct pool *p, const struct group *g, struct rng *rng)
{
    struct item *item[2] = {item_new(), item_new()};
    int place[2];

    messages_draw(g, rng, &item[0]->message, &item[1]->message);
    for (int i = 0; i < 2; i++)
        place[i] = pool_add(p, message_init(&item[i]->message, g->comm), item[i], false);
    add_member(2, place[0], place[1]);
}

/* Hints that change nothing. The standard's own is too long for the keys of Open MPI 4. */
static MPI_Info make_info(struct rng *rng)
{
    static char ordering[] = "mpi_assert_strict_persistent_collective_ordering";
    MPI_Info info = MPI_INFO_NULL;

    if (rng_chance(rng, 50)) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "color_of_the_cluster", "blue");
        if (sizeof ordering <= MPI_MAX_INFO_KEY)
            MPI_Info_set(info, ordering, "false");
    }
    return info;
}

static void set_up_collective(struct pool *p, const struct group *g, struct rng *rng)
{
    enum coll coll = (enum coll)rng_below(rng, g->topology ? NCOLLS : NINTRA);
    struct spec spec = spec_random(coll, g, rng_next(rng), rng_chance(rng, 85) ? 40 : 3000);
    struct item *item = item_new();
    MPI_Info info = make_info(rng);
    MPI_Request request = MPI_REQUEST_NULL;

    item->testcase = case_new(&spec);
    case_fill(item->testcase, -1); /* not what any start will send */
    case_expect(item->testcase, case_call(item->testcase, PERSISTENT, info, &request), "init");
    case_drop(item->testcase);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    add_member(1, pool_add(p, request, item, false), -1);
    set_up++;
}

/* --- starting ----------------------------------------------------------------------------------*/

static void fill(struct item *item)
{
    item->starts++;
    if (item->testcase)
        case_fill(item->testcase, item->starts);
    else
        message_fill(&item->message, item->starts);
    started++;
}

/* One request is started again only when it is complete; all ranks have started it by then. */
static void make_inactive(struct pool *p, struct rng *own, int place)
{
    while (p->active[place])
        pool_complete(p, own, true, finished);
}

static void start_one(struct pool *p, int place)
{
    MPI_Start(&p->request[place]);
    pool_started(p, place);
}

static void start_some(struct pool *p, const int *place, int n)
{
    MPI_Request request[MAX_BATCH];

    for (int i = 0; i < n; i++)
        request[i] = p->request[place[i]];
    MPI_Startall(n, request);
    for (int i = 0; i < n; i++) {
        EXPECT(request[i] == p->request[place[i]], "MPI_Startall has changed a handle");
        pool_started(p, place[i]);
    }
}

/* Some requests, each once. The same on all ranks, as far as they are in the groups. */
static int choose_place(struct rng *shared, int *place)
{
    int n = 0, want = 1 + rng_below(shared, MAX_BATCH / 2);

    for (int i = 0; i < want && nmembers > 0; i++) {
        const struct member *m = &members[rng_below(shared, nmembers)];
        bool again = false;
        for (int j = 0; j < n; j++)
            again = again || place[j] == m->place[0];
        for (int k = 0; k < m->n && !again; k++)
            place[n++] = m->place[k];
    }
    return n;
}

/* The order of starts, and by which calls, is this rank's own. */
static void start_batch(struct pool *p, struct rng *shared, struct rng *own)
{
    int place[MAX_BATCH], n = choose_place(shared, place);

    for (int i = 0; i < n; i++)
        make_inactive(p, own, place[i]);
    for (int i = 0; i < n; i++)
        fill(p->item[place[i]]);
    rng_shuffle(own, place, n);
    for (int i = 0; i < n;) {
        int together = 1 + rng_below(own, n - i);
        if (rng_chance(own, 50)) {
            start_some(p, place + i, together);
            i += together;
        } else {
            start_one(p, place[i++]);
        }
        if (rng_chance(own, 30)) /* not all are started yet: no call that waits */
            pool_complete(p, own, false, finished);
    }
}

/* --- the sequence ------------------------------------------------------------------------------*/

static void start_nonblocking(struct pool *p, const struct group *g, struct rng *rng)
{
    struct spec spec = spec_random((enum coll)rng_below(rng, NINTRA), g, rng_next(rng), 40);
    struct item *item = item_new();
    MPI_Request request = MPI_REQUEST_NULL;

    item->testcase = case_new(&spec);
    item->once = true;
    case_fill(item->testcase, 0);
    case_expect(item->testcase, case_call(item->testcase, NONBLOCKING, MPI_INFO_NULL, &request),
                "nonblocking");
    case_drop(item->testcase);
    pool_add(p, request, item, true);
}

static void run_blocking(const struct group *g, struct rng *rng)
{
    struct spec spec = spec_random((enum coll)rng_below(rng, NINTRA), g, rng_next(rng), 40);

    spec.in_place = false;
    spec.style.plain = true;
    case_run(&spec, BLOCKING);
}

/* The oldest ones are not started any more; when each rank frees them is its own affair. */
static void retire(struct pool *p, int n)
{
    n = n < nmembers ? n : nmembers;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < members[i].n; k++)
            ((struct item *)p->item[members[i].place[k]])->retired = true;
    nmembers -= n;
    for (int i = 0; i < nmembers; i++)
        members[i] = members[i + n];
}

static void free_retired(struct pool *p, struct rng *own, int percent)
{
    for (int i = 0; i < p->n; i++) {
        struct item *item = p->item[i];
        if (item && item->retired && !p->active[i] && rng_chance(own, percent))
            release(p, i);
    }
}

static void persistent_step(struct pool *p, struct rng *shared, struct rng *own)
{
    int i = rng_below(shared, NGROUPS), what = rng_below(shared, 100);
    struct rng rng = {rng_next(shared)};
    const struct group *g = groups.now[i];

    if (what < 2) {
        groups_replace(&groups, i, &rng);
    } else if (what < 50) {
        start_batch(p, &rng, own);
    } else if (nmembers > MOST_HELD) {
        retire(p, 1 + rng_below(&rng, MOST_HELD / 2));
    } else if (g->comm == MPI_COMM_NULL) {
        if (what >= 60)
            add_member(0, -1, -1);
    } else if (what < 55) {
        start_nonblocking(p, g, &rng);
    } else if (what < 60) {
        run_blocking(g, &rng);
    } else if (what < 70) {
        set_up_messages(p, g, &rng);
    } else {
        set_up_collective(p, g, &rng);
    }
}

TEST(mix, .wanted = test_has_persistent)
{
    struct rng shared = rng_shared(1), own = rng_private(2);
    struct pool *p = pool_new();
    int steps = test_scale(test_oversubscribed() ? 800 : 2000, 40000);

    groups_make(&groups, &shared);
    for (int i = 0; i < steps; i++) {
        test_place("step %d", i);
        persistent_step(p, &shared, &own);
        if (rng_chance(&own, 30))
            pool_complete(p, &own, rng_chance(&own, 20), finished);
        free_retired(p, &own, 20);
    }
    retire(p, nmembers);
    pool_drain(p, &own, 0, finished);
    free_retired(p, &own, 100);
    pool_delete(p);
    groups_free(&groups);
    free(members);
    if (test_rank == 0)
        printf("%d set up, %d started\n", set_up, started);
}

/* --- many at once ------------------------------------------------------------------------------*/

/* Held all together, started twice in another order on each rank, freed in another. */
TEST(many, .wanted = test_has_persistent)
{
    int n = test_scale(test_oversubscribed() ? 1000 : 4000, 20000);
    struct rng own = rng_private(3);
    MPI_Request *request = test_scratch((size_t)n * sizeof(MPI_Request));
    MPI_Request *shuffled = test_scratch((size_t)n * sizeof(MPI_Request));
    int *in = test_scratch((size_t)n * sizeof *in), *out = test_scratch((size_t)n * sizeof *out);
    int *order = test_scratch((size_t)n * sizeof *order);

    for (int i = 0; i < n; i++) {
        order[i] = i;
        MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request[i]);
    }
    for (int round = 0; round < 2; round++) {
        int wrong = 0;
        test_place("many, round %d", round);
        rng_shuffle(&own, order, n);
        for (int i = 0; i < n; i++) {
            in[i] = i * (test_rank + 1) + round;
            out[i] = -1;
            shuffled[i] = request[order[i]];
        }
        MPI_Startall(n, shuffled);
        MPI_Waitall(n, shuffled, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            wrong += out[i] != i * test_size * (test_size + 1) / 2 + round * test_size;
        EXPECT_INT(wrong, 0, "of %d persistent operations held together", n);
    }
    rng_shuffle(&own, order, n);
    for (int i = 0; i < n; i++)
        MPI_Request_free(&request[order[i]]);
}

/* MPI_Comm_disconnect while a request is inactive, on the last rank late. */
TEST(disconnected_when_inactive, .wanted = test_has_persistent)
{
    MPI_Comm comm;
    MPI_Request r;
    int one = 1, sum;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (test_rank == test_size - 1)
        usleep(20000);
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r);
    MPI_Comm_disconnect(&comm);
    EXPECT(comm == MPI_COMM_NULL, "not disconnected");
    MPI_Request_free(&r);
}

AROUND_TESTS(kinds_init, kinds_finish)
