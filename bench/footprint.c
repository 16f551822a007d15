/* SPDX-License-Identifier: MIT */
/* A program that uses nothing of nbcshim. Rank 0 prints the milliseconds of MPI_Init and of
 * MPI_Finalize, the largest resident set in KiB, and the heap in use after MPI_Init in KiB: each of
 * the rank that needs most. See footprint. */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double heap(void)
{
#if defined __GLIBC__ && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 all = mallinfo2();
    return (double)(all.uordblks + all.hblkhd) / 1024;
#else
    return 0;
#endif
}

int main(int argc, char **argv)
{
    struct rusage use;
    int rank;
    double start = now();
    MPI_Init(&argc, &argv);
    double mine[3] = {now() - start, 0, heap()}, most[3];
    getrusage(RUSAGE_SELF, &use);
    mine[1] = (double)use.ru_maxrss;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    start = now();
    MPI_Finalize();
    if (rank == 0)
        printf("footprint %.3f %.3f %.0f %.0f\n", most[0], now() - start, most[1], most[2]);
    return 0;
}
