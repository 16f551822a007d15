/* SPDX-License-Identifier: MIT */
/* The progress thread (NBCSHIM_PROGRESS=thread): a rank that computes, without a call of MPI, still
 * does its part in a collective that takes it several rounds; and the program sees the thread level
 * that it asked for. */
#include "util.h"

#include <stdlib.h>
#include <time.h>

enum { COUNT = 20000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* one clock for all ranks of a machine */
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void compute(double seconds)
{
    volatile double x = 1;
    for (double end = now() + seconds; now() < end;)
        x = x * 1.0000001;
}

/* Rank 0 starts the sum and computes; the others wait for it. They need what rank 0 sends after it
 * has heard of others, so they can only be done before rank 0 comes back if its thread has sent. */
static void others_need_not_wait(double seconds)
{
    int *mine = malloc(COUNT * sizeof *mine), *sum = calloc(COUNT, sizeof *sum);
    double end = 0, done = 0;
    MPI_Request request;
    for (int i = 0; i < COUNT; i++)
        mine[i] = test_rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iallreduce(mine, sum, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (test_rank == 0) {
        compute(seconds);
        end = now();
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (test_rank != 0)
        done = now();
    for (int i = 0; i < COUNT; i++)
        EXPECT(sum[i] == test_size * (test_size - 1) / 2 + test_size * i, "sum of element %d", i);
    MPI_Bcast(&end, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    EXPECT(test_rank == 0 || done < end, "done %g s after rank 0 was back", done - end);
    free(mine);
    free(sum);
}

int main(int argc, char **argv)
{
    int provided = test_init_thread(&argc, &argv, MPI_THREAD_FUNNELED);
    int level = -1;
    EXPECT(provided <= MPI_THREAD_FUNNELED, "thread level %d is more than asked for", provided);
    MPI_Query_thread(&level);
    EXPECT(level == provided, "thread level %d is not %d", level, provided);
    for (int i = 0; i < 5; i++)
        others_need_not_wait(2);
    return test_done();
}
