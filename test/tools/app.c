/* SPDX-License-Identifier: MIT */
/* A program of a user, which cmake.sh and install.sh build with what is installed. */
#include <nbcshim.h>

int main(int argc, char **argv)
{
    int one = 1, sum = 0, size;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Finalize();
    return sum != size;
}
