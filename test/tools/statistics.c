/* SPDX-License-Identifier: MIT */
/* What statistics.sh looks at: rank 1 is late to ROUNDS MPI_Iallreduce, and only ranks other than 0
 * make an MPI_Ibarrier. "none": neither. */
#include <mpi.h>
#include <unistd.h>

enum { COUNT = 1000, ROUNDS = 20, LATE = 30000 /* us */ };

static void round_of(int rank)
{
    static double in[COUNT], out[COUNT];
    MPI_Request request;
    if (rank == 1)
        usleep(LATE);
    MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void some_ranks(int rank)
{
    MPI_Comm others;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &others);
    if (rank > 0) {
        MPI_Ibarrier(others, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&others);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROUNDS && argc == 1; i++)
        round_of(rank);
    if (argc == 1)
        some_ranks(rank);
    return MPI_Finalize();
}
