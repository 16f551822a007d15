/* SPDX-License-Identifier: MIT */
/* A random mix: all nonblocking collectives outstanding on several communicators at once, completed
 * by random calls, among point-to-point messages and blocking collectives, while communicators are
 * freed and made. The sequence of calls is the same on all ranks, the order of completion is each
 * rank's own. */
#include "cases.h"
#include "completion.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PENDING = 40, NGROUPS = 7, MAX_MESSAGE = 3000 };

/* A pair of messages: to one rank of a group, from another. */
struct message {
    int n, source, tag;
    unsigned char *bytes;
    uint64_t key;
    bool receives;
};

/* What a request belongs to: one of the two. */
struct item {
    struct testcase *testcase;
    struct message *message;
};

static struct group *groups[NGROUPS];
static struct group **retired; /* their communicators are freed, operations may still be pending */
static int nretired;
static int operations, compared;

static bool member(const struct group *g)
{
    return g->comm != MPI_COMM_NULL;
}

/* Groups of all sorts; those whose kind says so have a topology. Collective over the world. */
static MPI_Comm make_comm(int kind, struct rng *shared)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int part = 1 + rng_below(shared, test_size);

    switch (kind) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        break;
    case 1: /* reversed */
        MPI_Comm_split(MPI_COMM_WORLD, 0, test_size - test_rank, &comm);
        break;
    case 2: /* odd and even ranks */
        MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, test_rank * 7 % test_size, &comm);
        break;
    case 3: /* only some */
        MPI_Comm_split(MPI_COMM_WORLD, test_rank < part ? 0 : MPI_UNDEFINED, 0, &comm);
        break;
    case 4:
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        break;
    default:
        comm = topology_random(MPI_COMM_WORLD, shared);
        break;
    }
    return comm;
}

static void make_group(int i, struct rng *shared)
{
    MPI_Comm comm = make_comm(i, shared);

    groups[i] = test_alloc(sizeof *groups[i]);
    *groups[i] = (struct group){.comm = MPI_COMM_NULL};
    if (comm == MPI_COMM_NULL)
        return;
    free(groups[i]);
    groups[i] = group_new(comm);
}

/* Frees the communicator at once, whatever is pending on it, and makes another. */
static void replace_group(int i, struct rng *shared)
{
    if (groups[i]->comm != MPI_COMM_NULL)
        MPI_Comm_free(&groups[i]->comm);
    retired = realloc(retired, (size_t)(nretired + 1) * sizeof(struct group *));
    if (!retired)
        abort();
    retired[nretired++] = groups[i];
    make_group(i, shared);
}

static unsigned char message_byte(uint64_t key, int i)
{
    return (unsigned char)mix64(key + (uint64_t)i);
}

static void add_message(struct pool *p, const struct group *g, int n, int other, int tag,
                        uint64_t key, bool receives)
{
    struct item *item = test_alloc(sizeof *item);
    struct message *m = test_alloc(sizeof *m);
    MPI_Request request;

    *m = (struct message){n, other, tag, test_alloc((size_t)n), key, receives};
    *item = (struct item){.message = m};
    for (int i = 0; i < n; i++)
        m->bytes[i] = receives ? 0 : message_byte(key, i);
    if (receives)
        MPI_Irecv(m->bytes, n, MPI_BYTE, other, tag, g->comm, &request);
    else
        MPI_Isend(m->bytes, n, MPI_BYTE, other, tag, g->comm, &request);
    pool_add(p, request, item, true);
}

/* Each rank of the group sends to the one `shift` further on. */
static void exchange(struct pool *p, const struct group *g, struct rng *shared)
{
    int n = rng_below(shared, MAX_MESSAGE), tag = rng_below(shared, 32767);
    int shift = rng_below(shared, 64) % g->size;
    int to = (g->rank + shift) % g->size, from = (g->rank - shift + g->size) % g->size;
    uint64_t key = rng_next(shared);

    add_message(p, g, n, from, tag, mix_in(key, from), true);
    add_message(p, g, n, to, tag, mix_in(key, g->rank), false);
}

static void check_message(const struct message *m, const MPI_Status *status)
{
    int n;

    if (!m->receives)
        return;
    for (int i = 0; i < m->n; i++)
        if (m->bytes[i] != message_byte(m->key, i)) {
            test_fail("message of %d bytes from %d, tag %d: byte %d is wrong", m->n, m->source,
                      m->tag, i);
            break;
        }
    if (!status)
        return;
    MPI_Get_count(status, MPI_BYTE, &n);
    EXPECT(status->MPI_SOURCE == m->source && status->MPI_TAG == m->tag && n == m->n,
           "status says %d bytes from %d, tag %d, not %d from %d, tag %d", n, status->MPI_SOURCE,
           status->MPI_TAG, m->n, m->source, m->tag);
}

static void finished(struct pool *p, int i, const MPI_Status *status)
{
    struct item *item = p->item[i];

    EXPECT(p->request[i] == MPI_REQUEST_NULL, "a completed request is not null");
    if (item->message) {
        check_message(item->message, status);
        free(item->message->bytes);
        free(item->message);
    } else {
        case_check(item->testcase, "mix");
        case_delete(item->testcase);
    }
    free(item);
    pool_remove(p, i);
}

static int draw_count(struct rng *shared)
{
    int k = rng_below(shared, 100);

    return k < 80 ? 40 : k < 98 ? 2500 : 20000;
}

static void start(struct pool *p, const struct spec *spec)
{
    struct item *item = test_alloc(sizeof *item);
    MPI_Request request = MPI_REQUEST_NULL;

    *item = (struct item){.testcase = case_new(spec)};
    case_fill(item->testcase, 0);
    case_expect(item->testcase, case_call(item->testcase, NONBLOCKING, MPI_INFO_NULL, &request),
                "mix");
    case_drop(item->testcase);
    pool_add(p, request, item, true);
}

/* One step of the sequence: everything about it is drawn from the shared generator before anybody
 * knows whether this rank takes part. */
static void step(struct pool *p, struct rng *shared)
{
    int g = rng_below(shared, NGROUPS), what = rng_below(shared, 100);
    struct rng rng = {rng_next(shared)};
    enum coll coll;
    struct spec spec;

    if (what < 2) {
        replace_group(g, &rng);
        return;
    }
    if (!member(groups[g]))
        return;
    if (what < 20) {
        exchange(p, groups[g], &rng);
        return;
    }
    coll = (enum coll)rng_below(&rng, groups[g]->topology && !test_native ? NCOLLS : NINTRA);
    spec = spec_random(coll, groups[g], rng_next(&rng), draw_count(&rng));
    if (test_native) /* the MPIs' own are wrong there, and in neighborhoods */
        spec.in_place = spec.in_place && coll != ALLTOALLV && coll != ALLTOALLW;
    start(p, &spec);
    operations++;
    if (coll < NINTRA && rng_chance(&rng, test_crowded() ? 12 : 50)) {
        spec.in_place = false;
        spec.style.plain = true;
        case_run(&spec, BLOCKING);
        compared++;
    }
}

int main(int argc, char **argv)
{
    struct rng shared, own;
    struct pool *p;
    int steps;

    test_init(&argc, &argv);
    kinds_init();
    shared = rng_shared(1);
    own = rng_private(2);
    p = pool_new();
    for (int i = 0; i < NGROUPS; i++)
        make_group(i, &shared);
    steps = test_scale(test_crowded() ? 600 : 2500, 60000);
    for (int i = 0; i < steps; i++) {
        test_place("step %d", i);
        step(p, &shared);
        if (rng_chance(&own, 40))
            pool_complete(p, &own, rng_chance(&own, 20), finished);
        if (p->nactive > MOST_PENDING)
            pool_drain(p, &own, rng_below(&own, MOST_PENDING), finished);
    }
    for (int i = 0; i < NGROUPS; i += 2)
        if (member(groups[i]))
            MPI_Comm_free(&groups[i]->comm);
    pool_drain(p, &own, 0, finished);
    pool_delete(p);
    for (int i = 0; i < NGROUPS; i++)
        group_delete(groups[i]);
    for (int i = 0; i < nretired; i++)
        group_delete(retired[i]);
    free(retired);
    if (test_rank == 0)
        printf("%d collectives, %d compared with blocking ones\n", operations, compared);
    kinds_finish();
    return test_done();
}
