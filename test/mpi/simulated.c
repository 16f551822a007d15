/* SPDX-License-Identifier: MIT */
/* All collectives with predefined datatypes, for an MPI that simulates its ranks (SMPI). The other
 * programs use derived datatypes, intercommunicators, graphs or statuses in ways in which SMPI 3.32
 * itself fails. Blocking, nonblocking and persistent calls on two communicators, all pending at
 * once, and completed one by one or all together. */
#include "cases.h"

#include <string.h>

enum { MOST = 6000, NCOMMS = 2, NCALLS = NCOMMS * NCOLLS };
enum { PLAIN_OPS = 8 }; /* the first of opdefs: on numbers, not on pairs */

static struct group groups[NCOMMS]; /* rings: of all ranks, and of half of them */

/* Not by group_new, since MPI_Topo_test ends the program. */
static void ring_make(struct group *g, MPI_Comm from)
{
    int periodic = 1;
    MPI_Comm_size(from, &g->size);
    MPI_Cart_create(from, 1, &g->size, &periodic, 0, &g->comm);
    MPI_Comm_rank(g->comm, &g->rank);
    g->topology = topology_cartesian(g->comm);
}

static struct spec make_spec(enum coll coll, const struct group *g, int count, int serial)
{
    struct spec s = {.coll = coll, .group = g, .count = count, .open = true};
    s.seed = mix_in(test_seed, serial);
    s.extension = serial % 2;
    s.root = serial % g->size;
    s.style = (struct style){.kind = &kinds[KIND_INT], .fine = true, .plain = true};
    if (coll_reduces(coll)) {
        s.op = &opdefs[serial % PLAIN_OPS];
        s.style.kind = &kinds[s.op->kind];
    }
    return s;
}

static void run(int count, enum mode mode)
{
    struct testcase *c[NCALLS];
    MPI_Request own[NCALLS], r[NCALLS]; /* own: persistent ones */
    for (int k = 0; k < NCALLS; k++) {
        struct spec s = make_spec((enum coll)(k / NCOMMS), &groups[k % NCOMMS], count, k);
        c[k] = case_new(&s);
        own[k] = MPI_REQUEST_NULL;
        case_fill(c[k], 0);
        if (mode == PERSISTENT)
            OK(case_call(c[k], mode, MPI_INFO_NULL, &own[k]));
    }
    for (int round = 0; round < (mode == PERSISTENT ? 2 : 1); round++) {
        for (int k = 0; k < NCALLS; k++) {
            case_fill(c[k], round);
            OK(mode == PERSISTENT ? MPI_Start(&own[k])
                                  : case_call(c[k], mode, MPI_INFO_NULL, &own[k]));
            r[k] = own[k];
        }
        for (int k = 0; round == 0 && k < NCALLS; k += 3)
            MPI_Wait(&r[k], MPI_STATUS_IGNORE);
        MPI_Waitall(NCALLS, r, MPI_STATUSES_IGNORE);
        for (int k = 0; k < NCALLS; k++)
            case_check(c[k], "all at once");
    }
    for (int k = 0; k < NCALLS; k++) {
        if (mode == PERSISTENT)
            MPI_Request_free(&own[k]);
        case_delete(c[k]);
    }
}

/* Polls of many operations on many ranks take long. */
static void run_all(enum mode mode)
{
    bool many = test_size > 4;
    run(0, mode);
    run(1, mode);
    run(many ? 30 : 300, mode);
    if (!many)
        run(MOST, mode);
}

TEST(blocking)
{
    run_all(BLOCKING);
}

TEST(nonblocking)
{
    run_all(NONBLOCKING);
}

TEST(persistent)
{
    run_all(PERSISTENT);
}

/* The calls one after the other, if a poll takes 10 ms: a wait for the only operation is another
 * than a poll. */
TEST(alone, .if_named = true)
{
    static const int counts[] = {0, 1, 300, MOST};
    for (int k = 0; k < 4 * NCOLLS; k++) {
        struct spec s = make_spec((enum coll)(k / 4), &groups[0], counts[k % 4], k / 4);
        struct testcase *c = case_new(&s);
        MPI_Request request;
        case_fill(c, 0);
        OK(case_call(c, NONBLOCKING, MPI_INFO_NULL, &request));
        double begin = MPI_Wtime();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(MPI_Wtime() - begin < 10e-3, "%s of %d: the wait polls", coll_name(s.coll), s.count);
        case_check(c, "alone");
        case_delete(c);
    }
}

static void begin(void)
{
    MPI_Comm half;
    kinds_init();
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, -test_rank, &half);
    ring_make(&groups[0], MPI_COMM_WORLD);
    ring_make(&groups[1], half);
    MPI_Comm_free(&half);
}

static void end(void)
{
    for (int i = 0; i < NCOMMS; i++) {
        MPI_Comm_free(&groups[i].comm);
        topology_free(groups[i].topology);
    }
    kinds_finish();
}

AROUND_TESTS(begin, end)
