/* SPDX-License-Identifier: MIT */
/* More operations outstanding on one communicator than there are tags, and the attribute that tells
 * how many there may be. With NBCSHIM_TEST=tag_ub=32767 the ring of tags wraps several times, also
 * around old operations that are still pending. */
#include "util.h"

#include <stdio.h>
#include <stdlib.h>

static MPI_Request *request;
static int *in, *out;

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

static void begin(void)
{
    size_t n = (size_t)how_many();
    request = test_alloc(n * sizeof(MPI_Request));
    in = test_alloc(n * sizeof *in);
    out = test_alloc(n * sizeof *out);
}

static void end(void)
{
    free(request);
    free(in);
    free(out);
}

AROUND_TESTS(begin, end)
