/* SPDX-License-Identifier: MIT */
/* A program whose overlap is known: rank 1 starts each MPI_Iallreduce LENGTH after rank 0, which
 * computes for SHARE percent of that time, its argument, and then waits. "blocking": it calls
 * MPI_Allreduce instead. "messages": it receives a message between start and wait, for which it
 * waits all the time. Before that some duplicates of communicators, which nbcshim needs
 * collectives of its own for. Rank 0 appends to the file that its second argument names the true
 * overlap in percent, since processors may be busy; with a third argument that of all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 10, LENGTH = 30000 /* us */ };

static int one = 1, sum;
static double all, computing;

static void start_and_wait(int between, int peer)
{
    MPI_Request request;
    double begin = MPI_Wtime(), computes;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (peer >= 0)
        MPI_Recv(&sum, 1, MPI_INT, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    computes = MPI_Wtime();
    if (between)
        usleep(between);
    computing += MPI_Wtime() - computes;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    all += MPI_Wtime() - begin;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "0";
    int rank, blocks = strcmp(how, "blocking") == 0, messages = strcmp(how, "messages") == 0;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            usleep(LENGTH);
        if (rank == 1 && messages)
            MPI_Send(&one, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
        if (blocks)
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else
            start_and_wait(rank ? 0 : LENGTH / 100 * atoi(how), messages && rank == 0 ? 1 : -1);
    }
    double mine[2] = {computing, all}, sums[2];
    MPI_Reduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    FILE *out = rank == 0 && argc > 2 ? fopen(argv[2], "a") : NULL;
    if (out && !blocks)
        fprintf(out, "%.1f\n", 100 * (argc > 3 ? sums[0] / sums[1] : computing / all));
    if (out)
        fclose(out);
    return MPI_Finalize();
}
