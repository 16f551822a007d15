/* SPDX-License-Identifier: MIT */
/* What trace.sh traces: rank 3 of 4 is late to an MPI_Ibarrier, all compute during an MPI_Ibcast;
 * then two reductions at once, one of them on a communicator with the ranks in reverse. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 4096, ROUNDS = 20, BEGUN = 1 };

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
    if (rank == 3) {
        for (int i = 0; i < 3; i++) /* the others have begun, however busy the processors are */
            MPI_Recv(NULL, 0, MPI_INT, i, BEGUN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(0.2);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (rank < 3)
        MPI_Send(NULL, 0, MPI_INT, 3, BEGUN, MPI_COMM_WORLD);
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
