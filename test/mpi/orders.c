/* SPDX-License-Identifier: MIT */
/* Blocking and nonblocking collectives are apart. Ranks that call one of each in different orders
 * are in error, but every MPI runs such programs (mpi4py's test_ulfm is one), so nbcshim does too;
 * and a blocking call does not match a nonblocking one of the same collective. */
#include "util.h"

enum { MOST = 16 };

static int mine, ours[MOST], theirs[MOST], sent[MOST];
static bool last; /* this rank makes its calls in the other order */

/* --- two calls in either order ---------------------------------------------------------------- */

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(void)
{
    MPI_Allreduce(&mine, theirs, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void bcast(void)
{
    theirs[0] = test_size * (test_size + 1) / 2; /* what an allreduce gives */
    if (test_rank > 0)
        theirs[0] = -1;
    MPI_Bcast(theirs, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void iallreduce(MPI_Request *r)
{
    MPI_Iallreduce(&mine, ours, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, r);
}

static void ialltoall(MPI_Request *r)
{
    for (int i = 0; i < test_size; i++)
        sent[i] = test_size * (test_size + 1) / 2;
    MPI_Ialltoall(sent, 1, MPI_INT, ours, 1, MPI_INT, MPI_COMM_WORLD, r);
}

static void ibarrier(MPI_Request *r)
{
    ours[0] = test_size * (test_size + 1) / 2;
    MPI_Ibarrier(MPI_COMM_WORLD, r);
}

static void (*const blocking[])(void) = {barrier, allreduce, bcast};
static void (*const nonblocking[])(MPI_Request *) = {iallreduce, ialltoall, ibarrier};

enum { NBLOCKING = sizeof blocking / sizeof *blocking };
enum { NNONBLOCKING = sizeof nonblocking / sizeof *nonblocking };

static void try_orders(int b, int n)
{
    MPI_Request r;
    int sum = test_size * (test_size + 1) / 2;
    ours[0] = -1;
    theirs[0] = sum;
    if (last)
        blocking[b]();
    nonblocking[n](&r);
    if (!last)
        blocking[b]();
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_INT(ours[0], sum, "nonblocking call %d beside blocking call %d", n, b);
    EXPECT_INT(theirs[0], sum, "blocking call %d beside nonblocking call %d", b, n);
}

TEST(orders)
{
    for (int round = 0; round < 30; round++)
        for (int b = 0; b < NBLOCKING; b++)
            for (int n = 0; n < NNONBLOCKING; n++)
                try_orders(b, n);
}

/* --- one call, blocking on some ranks --------------------------------------------------------- */

/* Later calls of the other kind complete both. */
TEST(kinds_match, .wanted = test_has_peers)
{
    MPI_Request r;
    int flag = 0;
    theirs[0] = ours[0] = 0;
    if (test_rank > 0) {
        allreduce();
        iallreduce(&r);
    } else {
        iallreduce(&r);
        double end = MPI_Wtime() + 0.02;
        while (!flag && MPI_Wtime() < end)
            MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        EXPECT(!flag, "MPI_Iallreduce of one rank matches MPI_Allreduce of others");
        allreduce();
    }
    if (!flag)
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_INT(ours[0], theirs[0], "kinds");
}

static void begin(void)
{
    mine = test_rank + 1;
    last = test_rank == test_size - 1;
}

AROUND_TESTS(begin, NULL)
