/* SPDX-License-Identifier: MIT */
/* Many operations outstanding on one communicator, completed in random order; more operations than
 * there are tags; as many persistent ones; the attribute that tells how many there may be; an
 * operation of many messages, which are tested in parts. With NBCSHIM_TEST=tag_ub=32767 the ring of
 * tags wraps several times, also around old operations that are still pending. */
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static MPI_Request *request;
static int *in, *out, *order;

enum { FEW = 8000 };

static int how_many(void)
{
    return test_scale(test_oversubscribed() ? FEW : 40000, 100000);
}

static void many_start(int i, int value)
{
    in[i] = value;
    out[i] = -1;
    if (i % 3 == 2)
        MPI_Ibarrier(MPI_COMM_WORLD, &request[i]);
    else
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[i]);
}

static bool has_value(int i, int value)
{
    return i % 3 == 2 || out[i] == value * test_size + sum_of_ranks();
}

/* Each is completed by a call of its own, in random order. The first time, memory grows. */
TEST(random_order)
{
    const int n = test_scale(FEW, 100000);
    struct rng own = rng_private(1);

    for (int round = 0; round < 2; round++) {
        int wrong = 0;
        for (int i = 0; i < n; i++)
            order[i] = i;
        rng_shuffle(&own, order, n);
        for (int i = 0; i < n; i++)
            many_start(i, i + test_rank);
        for (int i = 0; i < n; i++)
            MPI_Wait(&request[order[i]], MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++)
            wrong += !has_value(i, i);
        EXPECT_INT(wrong, 0, "of %d outstanding operations", n);
    }
}

/* Rank 0 keeps the last ones from completing anywhere: it comes late to the oldest, and others go
 * on to start as many as there are tags and more. */
static void go_round(int n)
{
    MPI_Request late;
    int token = 0, wrong = 0;

    if (test_rank == 0 && test_size > 1)
        MPI_Irecv(&token, 1, MPI_INT, test_size - 1, 9, MPI_COMM_WORLD, &late);
    for (int i = 0; i < n; i++) {
        many_start(i, i + test_rank);
        if (test_rank == 0 && test_size > 1 && i == 0) /* the others start theirs meanwhile */
            MPI_Wait(&late, MPI_STATUS_IGNORE);
        if (test_rank == test_size - 1 && test_size > 1 && i == n / 2)
            MPI_Send(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
    MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        wrong += !has_value(i, i);
    EXPECT_INT(wrong, 0, "of %d operations after the tags have wrapped", n);
}

static bool has_few_tags(void)
{
    const char *set = getenv("NBCSHIM_TEST");
    int tags = FEW;
    return set && sscanf(set, "tag_ub=%d", &tags) == 1 && tags < FEW;
}

/* A few tags have wrapped often enough after fewer operations. */
TEST(wrap)
{
    for (int i = 0; i < 2; i++)
        go_round(has_few_tags() ? test_scale(FEW, 100000) : how_many());
}

static bool can_hold(void)
{
    return test_has_persistent() && !has_few_tags();
}

/* Persistent ones held all together, started twice in another order on each rank, freed in another.
 */
TEST(held_together, .wanted = can_hold)
{
    int n = test_scale(1000, 20000);
    struct rng own = rng_private(3);
    MPI_Request *shuffled = test_scratch((size_t)n * sizeof(MPI_Request));

    for (int i = 0; i < n; i++) {
        order[i] = i;
        MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request[i]);
    }
    for (int round = 0; round < 2; round++) {
        int wrong = 0;
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

TEST(attribute, .wanted = test_has_shim)
{
    MPI_Comm comm;
    int *value, flag, smallest, greatest;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &comm);
    for (int i = 0; i < 3; i++) {
        MPI_Comm asked = i == 0 ? MPI_COMM_WORLD : i == 1 ? MPI_COMM_SELF : comm;
        MPI_Comm_get_attr(asked, MPI_ICOLL_MAX_OUTSTANDING, &value, &flag);
        EXPECT(flag && *value >= 32767, "MPI_ICOLL_MAX_OUTSTANDING: %d", flag ? *value : -1);
        smallest = greatest = flag ? *value : -1;
        MPI_Allreduce(MPI_IN_PLACE, &smallest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &greatest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        EXPECT_INT(smallest, greatest, "MPI_ICOLL_MAX_OUTSTANDING");
    }
    MPI_Comm_free(&comm);
}

/* --- many messages ---------------------------------------------------------------------------- */

/* So many edges lead to the next rank, each with a message that is too long to be complete at once.
 * Rank 0 is late. */
enum { EDGES = 75, LENGTH = 2500 };

static int element(int rank, int edge, int i)
{
    return (rank * EDGES + edge) * LENGTH + i;
}

TEST(many_messages)
{
    static int from[EDGES], to[EDGES], sent[EDGES * LENGTH], received[EDGES * LENGTH];
    int last = left(), wrong = 0;
    MPI_Comm graph;
    MPI_Request r;
    for (int e = 0; e < EDGES; e++) {
        from[e] = last;
        to[e] = right();
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, from, MPI_UNWEIGHTED, EDGES, to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int k = 0; k < EDGES * LENGTH; k++) {
        sent[k] = element(test_rank, k / LENGTH, k % LENGTH);
        received[k] = -1;
    }
    if (test_rank == 0)
        usleep(20000);
    MPI_Ineighbor_alltoall(sent, LENGTH, MPI_INT, received, LENGTH, MPI_INT, graph, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int k = 0; k < EDGES * LENGTH; k++)
        wrong += received[k] != element(last, k / LENGTH, k % LENGTH);
    EXPECT_INT(wrong, 0);
    MPI_Comm_free(&graph);
}

static void begin(void)
{
    size_t n = (size_t)how_many();
    request = test_alloc(n * sizeof(MPI_Request));
    in = test_alloc(n * sizeof *in);
    out = test_alloc(n * sizeof *out);
    order = test_alloc(n * sizeof *order);
}

static void end(void)
{
    free(request);
    free(in);
    free(out);
    free(order);
}

AROUND_TESTS(begin, end)
