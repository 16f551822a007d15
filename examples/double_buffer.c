/* SPDX-License-Identifier: MIT */
/* Rank 0 sends a stream of blocks, and every rank works on each block. MPI_Ibcast transfers the
 * next block during the work on the current one.
 *
 *     mpicc -O2 double_buffer.c -o double_buffer
 *     mpiexec -n 4 ./double_buffer [BLOCKS [DOUBLES]]
 *
 * The work on a block is divided into slices, with an MPI_Test between them that progresses the
 * broadcast. With NBCSHIM_PROGRESS=thread and a free processor, these tests could be left out.
 *
 * Exit status: 0 if both versions, MPI_Bcast and MPI_Ibcast, compute the right result. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLICE = 4096, TURNS = 4 };

static int rank, count, blocks;
static double *buffer[2];

/* Block b has the value b + 1 everywhere. */
static void produce(double *block, int b)
{
    for (int i = 0; i < count; i++)
        block[i] = b + 1;
}

/* Computes the mean of the block, repeatedly: some arithmetic whose result is easy to check. */
static double work(const double *block, MPI_Request *next)
{
    double sum = 0;
    for (int first = 0; first < count; first += SLICE) {
        int flag, last = first + SLICE < count ? first + SLICE : count;
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = first; i < last; i++)
                sum += block[i];
        if (next)
            MPI_Test(next, &flag, MPI_STATUS_IGNORE);
    }
    return sum / ((double)count * TURNS);
}

static double blocking(void)
{
    double total = 0;
    for (int b = 0; b < blocks; b++) {
        if (rank == 0)
            produce(buffer[0], b);
        MPI_Bcast(buffer[0], count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        total += work(buffer[0], NULL);
    }
    return total;
}

static void start(int b, MPI_Request *request)
{
    double *block = buffer[b % 2];
    if (rank == 0)
        produce(block, b);
    MPI_Ibcast(block, count, MPI_DOUBLE, 0, MPI_COMM_WORLD, request);
}

static double doubled(void)
{
    double total = 0;
    MPI_Request next;
    start(0, &next);
    for (int b = 0; b < blocks; b++) {
        MPI_Wait(&next, MPI_STATUS_IGNORE);
        if (b + 1 < blocks)
            start(b + 1, &next);
        total += work(buffer[b % 2], &next);
    }
    return total;
}

static double timed(double (*way)(void), double *result)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    *result = way();
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

int main(int argc, char **argv)
{
    double result[2];
    int any;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    blocks = argc > 1 ? atoi(argv[1]) : 50;
    count = argc > 2 ? atoi(argv[2]) : 65536;
    if (blocks < 1 || count < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < 2; i++)
        buffer[i] = malloc((size_t)count * sizeof *buffer[i]);
    if (!buffer[0] || !buffer[1])
        MPI_Abort(MPI_COMM_WORLD, 2);
    double one = timed(blocking, &result[0]), two = timed(doubled, &result[1]);
    double expected = 0.5 * blocks * (blocks + 1);
    int wrong = result[0] != expected || result[1] != expected;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("double_buffer: sum of %d blocks %.1f, %s\n"
               "blocking %.3f us, nonblocking %.3f us, gain %.0f %%\n",
               blocks, result[1], any ? "WRONG" : "right both ways", one * 1e6, two * 1e6,
               100 * (1 - two / one));
    free(buffer[0]);
    free(buffer[1]);
    MPI_Finalize();
    return any;
}
