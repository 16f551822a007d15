/* SPDX-License-Identifier: MIT */
/* An ordinary application: it uses persistent collectives if configure finds them, and prints which
 * kind it uses. See configure.ac. */
#include "config.h"

#include <mpi.h>
#include <stdio.h>

enum { STEPS = 10 };

/* Sums one number per step over all ranks. */
#ifdef HAVE_MPI_ALLREDUCE_INIT
static const char way[] = "persistent";

static double sum(double mine)
{
    static MPI_Request request = MPI_REQUEST_NULL;
    static double in, out;
    if (request == MPI_REQUEST_NULL)
        MPI_Allreduce_init(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request);
    in = mine;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (mine == STEPS)
        MPI_Request_free(&request);
    return out;
}
#else
static const char way[] = "blocking";

static double sum(double mine)
{
    double out;
    MPI_Allreduce(&mine, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return out;
}
#endif

int main(int argc, char **argv)
{
    int rank, size;
    double total = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 1; step <= STEPS; step++)
        total += sum(step) / size;
    if (rank == 0)
        printf("%s: %g\n", way, total);
    MPI_Finalize();
    return total != STEPS * (STEPS + 1) / 2;
}
