/* SPDX-License-Identifier: MIT */
/* The progress thread (NBCSHIM_PROGRESS=thread): a rank that computes, without a call of MPI, still
 * does its part in a collective that takes it several rounds; and the program sees the thread level
 * that it asked for. */
#include "util.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Elements. On several hosts, the start of a LONG one leaves even its first messages to the
 * thread. */
enum { SHORT = 20000, LONG = 400000 };

/* How many ranks are done, in memory that all ranks of this machine share: rank 0 looks without a
 * call of MPI. */
static _Atomic int *done;

static void share(void)
{
    const char *directory = getenv("TMPDIR");
    char name[4096];
    int id = (int)getpid(), file = -1;

    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "%s/nbcshim-progress-%d", directory ? directory : "/tmp", id);
    if (test_rank == 0) {
        file = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        EXPECT(file >= 0 && ftruncate(file, sizeof *done) == 0, "cannot make %s", name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank != 0)
        file = open(name, O_RDWR);
    done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(done != MAP_FAILED, "cannot map %s", name);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0)
        unlink(name);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Until all others are done, or for so long. */
static void compute(double seconds)
{
    volatile double x = 1;
    for (double end = now() + seconds; now() < end && *done < test_size - 1;)
        x = x * 1.0000001;
}

/* Rank 0 starts the sum and computes; the others wait for it. They need what rank 0 sends after it
 * has heard of others, so they can only be done before rank 0 comes back if its thread has sent. */
static void others_need_not_wait(int count, double seconds)
{
    int *mine = malloc(count * sizeof *mine), *sum = calloc(count, sizeof *sum);
    MPI_Request request;
    for (int i = 0; i < count; i++)
        mine[i] = test_rank + i;
    *done = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iallreduce(mine, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (test_rank == 0) {
        compute(seconds);
        EXPECT_INT(*done, test_size - 1, "after %g s", seconds);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ++*done;
    for (int i = 0; i < count; i++)
        EXPECT_INT(sum[i], test_size * (test_size - 1) / 2 + test_size * i, "element %d", i);
    MPI_Barrier(MPI_COMM_WORLD);
    free(mine);
    free(sum);
}

int main(int argc, char **argv)
{
    int provided = test_init_thread(&argc, &argv, MPI_THREAD_FUNNELED);
    int level = -1;
    EXPECT(provided <= MPI_THREAD_FUNNELED, "thread level %d is more than asked for", provided);
    MPI_Query_thread(&level);
    EXPECT_INT(level, provided);
    share();
    for (int i = 0; i < 5; i++) {
        others_need_not_wait(SHORT, 2);
        others_need_not_wait(LONG, 2);
    }
    return test_done();
}
