/* SPDX-License-Identifier: MIT */
/* One barrier. With an argument: in the locale of the environment. */
#include <locale.h>
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Request request;
    if (argc > 1 && !setlocale(LC_ALL, ""))
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
