/* SPDX-License-Identifier: MIT */
/* The last of four ranks comes three seconds late to an MPI_Iallreduce. Meanwhile rank 0 waits for
 * it, rank 1 computes without calling MPI, and rank 2 is blocked in a barrier of the MPI's own
 * (NBCSHIM_BLOCKING=native). "signal": each rank gets a SIGUSR1 after a second. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LATE = 3 };

static void signal_soon(void)
{
    pid_t parent = getpid();
    if (fork() != 0)
        return;
    usleep(500000); /* for MPI_Init */
    sleep(1);
    kill(parent, SIGUSR1);
    _exit(0);
}

static void compute_until(double end)
{
    while (MPI_Wtime() < end)
        usleep(1000);
}

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum = 0;
    MPI_Request request;
    if (argc > 1 && strcmp(argv[1], "signal") == 0)
        signal_soon();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    double end = MPI_Wtime() + LATE;
    if (rank == size - 1)
        compute_until(end);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 1)
        compute_until(end);
    if (rank == 2)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank != 2)
        MPI_Barrier(MPI_COMM_WORLD);
    if (sum != size)
        fprintf(stderr, "rank %d: the sum is %d\n", rank, sum);
    MPI_Finalize();
    return sum != size;
}
