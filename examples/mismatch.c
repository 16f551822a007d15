/* SPDX-License-Identifier: MIT */
/* An erroneous program: the ranks disagree on the root of a broadcast. With most MPIs it hangs, or
 * delivers no data and reports no error. NBCSHIM_CHECK=1 reports the call and the ranks:
 *
 *     mpicc -o mismatch mismatch.c
 *     NBCSHIM_CHECK=1 nbcrun mpiexec -n 3 ./mismatch */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, value;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    value = rank;
    MPI_Ibcast(&value, 1, MPI_INT, rank == 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
