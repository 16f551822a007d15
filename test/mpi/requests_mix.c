/* SPDX-License-Identifier: MIT */
/* Random sets of all kinds of requests, up to 300, completed by random calls on random parts of the
 * set (common/completion.h), and what completing each must show. */
#include "completion.h"
#include "observe.h"

#pragma weak MPI_Allreduce_init

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
    struct general general;
    enum kind kind;
    MPI_Request made; /* persistent: the handle from init */
    int tag, in, out, expected;
    bool over; /* a generalized one: the program has said so */
};

enum { MOST = 300 };

static struct entry entries[MOST]; /* entries[i] is item i of the pool */
static struct pool *pool;

static bool is_persistent(enum kind kind)
{
    return kind == SUM_INIT || kind == RECEIVE_INIT || kind == SEND_INIT || kind == SLEEPING;
}

/* --- generalized requests: complete when the program says so -----------------------------------*/

static void complete_general(void)
{
    for (int i = 0; i < pool->n; i++)
        if (entries[i].kind == GENERAL && !entries[i].over) {
            entries[i].over = true;
            MPI_Grequest_complete(pool->request[i]);
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
    e->general = (struct general){e->in, e->tag, false};
    e->over = false;
    if (e->kind == RECEIVE || e->kind == RECEIVE_INIT)
        e->expected = value(left(), e->tag, start);
    else if (e->kind == SUM || e->kind == SUM_INIT)
        e->expected = test_size * value(0, e->tag, start) + sum_of_ranks();
    else
        e->expected = -1;
}

static void start_single(int i)
{
    struct entry *e = &entries[i];
    MPI_Request *r = &pool->request[i];
    if (e->kind == SUM)
        MPI_Iallreduce(&e->in, &e->out, 1, MPI_INT, MPI_SUM, comm, r);
    else if (e->kind == RECEIVE)
        MPI_Irecv(&e->out, 1, MPI_INT, left(), e->tag, MPI_COMM_WORLD, r);
    else if (e->kind == SEND)
        MPI_Isend(&e->in, 1, MPI_INT, right(), e->tag, MPI_COMM_WORLD, r);
    else if (e->kind == GENERAL)
        MPI_Grequest_start(general_query, general_release, general_cancel, e, r);
    else
        return;
    pool_started(pool, i);
}

/* Persistent ones in an order of this rank's own, all together or one by one. */
static void start_persistent(struct rng *mine)
{
    int order[MOST], count = 0;
    MPI_Request some[MOST];
    for (int i = 0; i < pool->n; i++)
        if (is_persistent(entries[i].kind) && entries[i].kind != SLEEPING)
            order[count++] = i;
    rng_shuffle(mine, order, count);
    for (int i = 0; i < count; i++)
        some[i] = pool->request[order[i]];
    if (rng_chance(mine, 70))
        OK(MPI_Startall(count, some));
    else
        for (int i = 0; i < count; i++)
            OK(MPI_Start(&some[i]));
    for (int i = 0; i < count; i++) { /* Open MPI may change the handle of a message */
        struct entry *e = &entries[order[i]];
        CHECK(e->kind != SUM_INIT || some[i] == e->made);
        pool->request[order[i]] = e->made = some[i];
        pool_started(pool, order[i]);
    }
}

static void add(enum kind kind, int tag)
{
    struct entry *e = &entries[pool->n];
    MPI_Request request;
    *e = (struct entry){.kind = kind, .tag = tag};
    entry_make(e, &request);
    pool_add(pool, request, e, false);
}

/* The same entries in the same order on every rank. A receive needs a send. */
static void build(struct rng *shared)
{
    int n = rng_chance(shared, 10) ? MOST : 1 + rng_below(shared, 40);
    for (int i = 0; i < n; i++) {
        enum kind kind = (enum kind)rng_below(shared, NKINDS);
        bool receives = kind == RECEIVE || kind == RECEIVE_INIT;
        if (kind == SEND || kind == SEND_INIT || (receives && i + 1 == n))
            kind = SUM;
        add(kind, i);
        if (!receives || i + 1 == n)
            continue;
        add(kind == RECEIVE ? SEND : SEND_INIT, i);
        i++;
    }
}

static void start_all(int start, struct rng *mine)
{
    bool first = rng_chance(mine, 50);
    for (int i = 0; i < pool->n; i++)
        prepare(&entries[i], start);
    if (first)
        start_persistent(mine);
    for (int i = 0; i < pool->n; i++)
        start_single(i);
    if (!first)
        start_persistent(mine);
}

/* --- checking ----------------------------------------------------------------------------------*/

static void check_status(const struct entry *e, const MPI_Status *s)
{
    int cancelled, count, source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG, elements = 0;
    if (e->kind == SEND || e->kind == SEND_INIT)
        return; /* undefined */
    MPI_Test_cancelled(s, &cancelled);
    MPI_Get_count(s, MPI_INT, &count);
    if (e->kind == RECEIVE || e->kind == RECEIVE_INIT)
        source = left(), tag = e->tag, elements = 1;
    if (e->kind == GENERAL)
        source = e->in, tag = e->tag, elements = 1;
    EXPECT(!cancelled && s->MPI_SOURCE == source && s->MPI_TAG == tag && count == elements,
           "status of kind %d: cancelled %d, source %d, tag %d, count %d", e->kind, cancelled,
           s->MPI_SOURCE, s->MPI_TAG, count);
}

static void finished(struct pool *p, int i, const MPI_Status *s)
{
    const struct entry *e = p->item[i];
    EXPECT(e->expected < 0 || e->out == e->expected, "kind %d: %d, not %d", e->kind, e->out,
           e->expected);
    CHECK(e->kind != GENERAL || e->general.released);
    CHECK(p->request[i] == (is_persistent(e->kind) ? e->made : MPI_REQUEST_NULL));
    if (s)
        check_status(e, s);
}

/* A call that waits must end without the program's doing anything for it. */
static void complete_all(struct rng *mine)
{
    while (pool->nactive > 0) {
        bool waits = rng_chance(mine, 60);
        if (waits || rng_chance(mine, 5))
            complete_general();
        pool->most = 1 + rng_below(mine, pool->n);
        pool_complete(pool, mine, waits, finished);
    }
}

static int is_theirs(const void *item)
{
    enum kind kind = ((const struct entry *)item)->kind;
    return kind != SUM && kind != SUM_INIT && kind != SLEEPING;
}

static void one_round(struct rng *shared, struct rng *mine)
{
    pool = pool_new();
    pool->sort = is_theirs;
    build(shared);
    int starts = 1 + rng_below(shared, 3);
    for (int i = 0; i < starts && test_failures() == 0; i++) {
        start_all(i, mine);
        complete_all(mine);
        pool->most = pool->n;
        pool_complete(pool, mine, true, finished);
    }
    for (int i = 0; i < pool->n; i++)
        if (is_persistent(entries[i].kind))
            CHECK(MPI_Request_free(&pool->request[i]) == MPI_SUCCESS &&
                  pool->request[i] == MPI_REQUEST_NULL);
    pool_delete(pool);
}

TEST(mixes)
{
    int rounds = test_scale(100, 5000);
    struct rng shared = rng_shared(1), mine = rng_private(2);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < rounds && test_failures() == 0; i++)
        one_round(&shared, &mine);
    MPI_Comm_free(&comm);
}
