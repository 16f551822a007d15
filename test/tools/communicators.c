/* SPDX-License-Identifier: MIT */
/* Makes communicators until the MPI has no more, at most as many as its argument says, and prints
 * their number. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, n = 0;
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    while (argc > 1 && n < atoi(argv[1])) {
        int error = n % 2 ? MPI_Comm_dup(MPI_COMM_WORLD, &comm)
                          : MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
        if (error)
            break;
        n++;
    }
    if (rank == 0)
        printf("%d communicators\n", n);
    MPI_Finalize();
    return 0;
}
