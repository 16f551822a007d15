/* SPDX-License-Identifier: MIT */
/* What trace.sh traces: rank 3 of 4 is late to an MPI_Ibarrier, all compute during an MPI_Ibcast;
 * then two reductions at once, one of them on a communicator with the ranks in reverse. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 4096, ROUNDS = 20 };

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end)
        usleep(1000);
}

int main(int argc, char **argv)
{
    static double in[COUNT], out[2][COUNT];
    int rank, size, wrong = 0;
    MPI_Comm reversed;
    MPI_Request request, two[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    for (int i = 0; i < COUNT; i++)
        in[i] = rank;
    /* The MPI's constructor may let them go at different times, where they share processors. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 3)
        compute(0.2);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ibcast(in, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
    compute(0.2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Iallreduce(in, out[0], COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &two[0]);
        MPI_Iallreduce(in, out[1], COUNT, MPI_DOUBLE, MPI_SUM, reversed, &two[1]);
        MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
    }
    for (int i = 1; i < COUNT; i++)
        wrong |= out[0][i] != size * (size - 1) / 2 || out[1][i] != out[0][i];
    MPI_Comm_free(&reversed);
    MPI_Finalize();
    return wrong;
}
