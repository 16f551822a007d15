/* SPDX-License-Identifier: MIT */
/* Random arrays of all kinds of requests, completed by random calls on random parts of the array,
 * against a simple model: which entries are active, and what completing each must show. */
#include "util.h"

#include <string.h>

#ifndef NBC_TEST_LINKED
#pragma weak MPI_Allreduce_init
#endif

enum kind {
    NONE,
    SUM,      /* ours */
    SUM_INIT, /* ours, persistent */
    RECEIVE,
    SEND,
    RECEIVE_INIT,
    SEND_INIT,
    GENERAL,
    SLEEPING, /* ours, persistent, never started */
    NKINDS
};

struct entry {
    enum kind kind;
    MPI_Request made; /* persistent: the handle from init */
    bool active;
    int tag, in, out, expected;
};

enum { MOST = 300 };

static struct entry entries[MOST];
static MPI_Request requests[MOST];
static int n;
static MPI_Comm comm;

static int left(void)
{
    return (test_rank + test_size - 1) % test_size;
}

static int right(void)
{
    return (test_rank + 1) % test_size;
}

static bool is_persistent(enum kind kind)
{
    return kind == SUM_INIT || kind == RECEIVE_INIT || kind == SEND_INIT || kind == SLEEPING;
}

/* --- generalized requests: complete when the program says so -----------------------------------*/

static int query(void *state, MPI_Status *s)
{
    const struct entry *e = state;
    MPI_Status_set_elements(s, MPI_INT, 1);
    MPI_Status_set_cancelled(s, 0);
    s->MPI_SOURCE = e->in;
    s->MPI_TAG = e->tag;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    struct entry *e = state;
    e->out = e->in;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void complete_general(void)
{
    for (int i = 0; i < n; i++)
        if (entries[i].kind == GENERAL && entries[i].expected < 0) {
            entries[i].expected = entries[i].in;
            MPI_Grequest_complete(requests[i]);
        }
}

/* --- setting up --------------------------------------------------------------------------------*/

static void entry_make(struct entry *e, MPI_Request *r)
{
    *r = MPI_REQUEST_NULL;
    if (e->kind == SUM_INIT || e->kind == SLEEPING)
        MPI_Allreduce_init(&e->in, &e->out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, r);
    else if (e->kind == RECEIVE_INIT)
        MPI_Recv_init(&e->out, 1, MPI_INT, left(), e->tag, MPI_COMM_WORLD, r);
    else if (e->kind == SEND_INIT)
        MPI_Send_init(&e->in, 1, MPI_INT, right(), e->tag, MPI_COMM_WORLD, r);
    e->made = *r;
}

/* What each kind sends depends on its tag and the round of starts, so that late data shows. */
static int value(int rank, int tag, int start)
{
    return rank + 1000 * tag + 7 * start;
}

static void prepare(struct entry *e, int start)
{
    e->out = -1;
    e->in = value(test_rank, e->tag, start);
    e->active = e->kind != NONE && e->kind != SLEEPING;
    if (e->kind == RECEIVE || e->kind == RECEIVE_INIT)
        e->expected = value(left(), e->tag, start);
    else if (e->kind == SUM || e->kind == SUM_INIT)
        e->expected = test_size * value(0, e->tag, start) + test_size * (test_size - 1) / 2;
    else
        e->expected = -1;
}

static void start_single(struct entry *e, MPI_Request *r)
{
    if (e->kind == SUM)
        MPI_Iallreduce(&e->in, &e->out, 1, MPI_INT, MPI_SUM, comm, r);
    else if (e->kind == RECEIVE)
        MPI_Irecv(&e->out, 1, MPI_INT, left(), e->tag, MPI_COMM_WORLD, r);
    else if (e->kind == SEND)
        MPI_Isend(&e->in, 1, MPI_INT, right(), e->tag, MPI_COMM_WORLD, r);
    else if (e->kind == GENERAL)
        MPI_Grequest_start(query, release, cancel, e, r);
}

/* Persistent ones in an order of this rank's own, all together or one by one. */
static void start_persistent(struct rng *mine)
{
    int order[MOST], count = 0;
    MPI_Request some[MOST];
    for (int i = 0; i < n; i++)
        if (is_persistent(entries[i].kind) && entries[i].kind != SLEEPING)
            order[count++] = i;
    rng_shuffle(mine, order, count);
    for (int i = 0; i < count; i++)
        some[i] = requests[order[i]];
    if (rng_chance(mine, 70))
        OK(MPI_Startall(count, some));
    else
        for (int i = 0; i < count; i++)
            OK(MPI_Start(&some[i]));
    for (int i = 0; i < count; i++) { /* Open MPI may change the handle of a message */
        if (entries[order[i]].kind == SUM_INIT)
            CHECK(some[i] == requests[order[i]]);
        requests[order[i]] = entries[order[i]].made = some[i];
    }
}

/* The same entries in the same order on every rank, at different places of the array. */
static void build(struct rng *shared, struct rng *mine)
{
    int order[MOST];
    n = rng_chance(shared, 10) ? MOST : 1 + rng_below(shared, 40);
    for (int i = 0; i < n; i++)
        order[i] = i;
    rng_shuffle(mine, order, n);
    for (int i = 0; i < n; i++) {
        enum kind kind = (enum kind)rng_below(shared, NKINDS);
        struct entry *e = &entries[order[i]];
        bool receives = kind == RECEIVE || kind == RECEIVE_INIT,
             sends = kind == SEND || kind == SEND_INIT;
        if (sends || (receives && i + 1 == n))
            kind = SUM;
        *e = (struct entry){.kind = kind, .tag = i};
        entry_make(e, &requests[order[i]]);
        if (!receives || i + 1 == n)
            continue;
        e = &entries[order[++i]]; /* a receive needs a send */
        *e = (struct entry){.kind = kind == RECEIVE ? SEND : SEND_INIT, .tag = i - 1};
        entry_make(e, &requests[order[i]]);
    }
}

static void start_all(int start, struct rng *mine)
{
    int by_tag[2 * MOST];
    memset(by_tag, -1, sizeof by_tag);
    for (int i = 0; i < n; i++) {
        bool sends = entries[i].kind == SEND || entries[i].kind == SEND_INIT;
        prepare(&entries[i], start);
        by_tag[2 * entries[i].tag + sends] = i;
    }
    bool first = rng_chance(mine, 50);
    if (first)
        start_persistent(mine);
    for (int i = 0; i < 2 * n; i++)
        if (by_tag[i] >= 0)
            start_single(&entries[by_tag[i]], &requests[by_tag[i]]);
    if (!first)
        start_persistent(mine);
}

/* --- checking ----------------------------------------------------------------------------------*/

static void check_status(const struct entry *e, bool was_active, const MPI_Status *s)
{
    int cancelled, count, source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG, elements = 0;
    if (was_active && (e->kind == SEND || e->kind == SEND_INIT))
        return; /* undefined */
    MPI_Test_cancelled(s, &cancelled);
    MPI_Get_count(s, MPI_INT, &count);
    if (was_active && (e->kind == RECEIVE || e->kind == RECEIVE_INIT))
        source = left(), tag = e->tag, elements = 1;
    if (was_active && e->kind == GENERAL)
        source = e->in, tag = e->tag, elements = 1;
    EXPECT(!cancelled && s->MPI_SOURCE == source && s->MPI_TAG == tag && count == elements,
           "status of kind %d: cancelled %d, source %d, tag %d, count %d", e->kind, cancelled,
           s->MPI_SOURCE, s->MPI_TAG, count);
}

/* Entry i has been reported complete. */
static void completed(int i, const MPI_Status *s)
{
    struct entry *e = &entries[i];
    CHECK(e->active);
    EXPECT(e->expected < 0 || e->out == e->expected, "kind %d: %d, not %d", e->kind, e->out,
           e->expected);
    CHECK(requests[i] == (is_persistent(e->kind) ? e->made : MPI_REQUEST_NULL));
    check_status(e, e->active, s);
    e->active = false;
}

/* Waiting on these must end: the program need not do anything for it. */
static int count_active(int lo, int hi)
{
    int count = 0;
    for (int i = lo; i < hi; i++)
        count += entries[i].active;
    return count;
}

/* --- the calls ---------------------------------------------------------------------------------*/

static MPI_Status statuses[MOST];
static int indices[MOST];

static void whole(int lo, int hi)
{
    for (int i = lo; i < hi; i++) {
        if (entries[i].active)
            completed(i, &statuses[i - lo]);
        else
            check_status(&entries[i], false, &statuses[i - lo]);
    }
}

static void some(int lo, int count, int active, bool waits)
{
    EXPECT_INT(count == MPI_UNDEFINED, active == 0);
    CHECK(count == MPI_UNDEFINED || (count <= active && count >= waits));
    for (int i = 0; i < count; i++)
        completed(lo + indices[i], &statuses[i]);
}

static void any(int lo, int index, int active, int flag)
{
    if (flag && active > 0) {
        CHECK(index != MPI_UNDEFINED);
        completed(lo + index, statuses);
    } else
        CHECK(index == MPI_UNDEFINED && (flag || active > 0));
}

static void single(int i, int flag)
{
    CHECK(flag || entries[i].active);
    if (!flag)
        return;
    if (entries[i].active)
        completed(i, statuses);
    else
        check_status(&entries[i], false, statuses);
}

static void call(int which, int lo, int hi)
{
    int active = count_active(lo, hi), flag = 1, index, count;
    MPI_Request *r = requests + lo;
    if (which == 4 && active == 0 && !WAITANY_BEARS_INACTIVE)
        which = 5;
    if (which % 2 == 0)
        complete_general(); /* before a call that waits */
    switch (which) {
    case 0:
        OK(MPI_Waitall(hi - lo, r, statuses));
        whole(lo, hi);
        break;
    case 1:
        OK(MPI_Testall(hi - lo, r, &flag, statuses));
        if (flag)
            whole(lo, hi);
        break;
    case 2:
        OK(MPI_Waitsome(hi - lo, r, &count, indices, statuses));
        some(lo, count, active, true);
        break;
    case 3:
        OK(MPI_Testsome(hi - lo, r, &count, indices, statuses));
        some(lo, count, active, false);
        break;
    case 4:
        OK(MPI_Waitany(hi - lo, r, &index, statuses));
        any(lo, index, active, true);
        break;
    case 5:
        OK(MPI_Testany(hi - lo, r, &index, &flag, statuses));
        any(lo, index, active, flag);
        break;
    case 6:
        OK(MPI_Wait(r, statuses));
        single(lo, true);
        break;
    case 7:
        OK(MPI_Test(r, &flag, statuses));
        single(lo, flag);
        break;
    case 9:
        OK(MPI_Request_get_status(*r, &flag, statuses));
        CHECK(flag || entries[lo].active);
        if (flag)
            check_status(&entries[lo], entries[lo].active, statuses);
        break;
    }
}

static void complete_all(struct rng *mine)
{
    static const int calls[] = {0, 1, 2, 3, 4, 5, 6, 7, 9};
    while (count_active(0, n) > 0) {
        int lo = rng_below(mine, n), which = calls[rng_below(mine, GET_STATUS_COMPLETES ? 8 : 9)];
        int hi = lo + 1 + rng_below(mine, n - lo);
        if (which == 0 && !rng_chance(mine, 20))
            hi = lo + 1; /* otherwise it soon does all the work */
        call(which, lo, hi);
        if (rng_chance(mine, 5))
            complete_general();
    }
}

static void one_round(struct rng *shared, struct rng *mine)
{
    build(shared, mine);
    int starts = 1 + rng_below(shared, 3);
    for (int i = 0; i < starts && test_failures() == 0; i++) {
        start_all(i, mine);
        complete_all(mine);
        call(0, 0, n);
    }
    for (int i = 0; i < n; i++)
        if (is_persistent(entries[i].kind))
            CHECK(MPI_Request_free(&requests[i]) == MPI_SUCCESS && requests[i] == MPI_REQUEST_NULL);
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv);
    int rounds = test_scale(100, 5000);
    struct rng shared = rng_shared(1), mine = rng_private(2);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < rounds && test_failures() == 0; i++)
        one_round(&shared, &mine);
    MPI_Comm_free(&comm);
    return test_done();
}
