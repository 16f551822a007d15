/* SPDX-License-Identifier: MIT */
/* Its highest rank is killed while all communicate; the others go on, and wait for it. */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

enum { BEFORE = 20, COUNT = 10000 };

int main(int argc, char **argv)
{
    static double mine[COUNT], sum[COUNT];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0;; i++) {
        MPI_Request r;
        MPI_Iallreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &r);
        if (i == BEFORE && rank == size - 1)
            kill(getpid(), SIGKILL);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
}
