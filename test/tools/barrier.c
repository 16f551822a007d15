/* SPDX-License-Identifier: MIT */
/* One barrier. With the argument "locale": in the locale of the environment. With "hint ALGORITHM":
 * rank 1 gives that as a hint, on an MPI-3. */
#include <locale.h>
#include <mpi.h>
#include <string.h>

static void give_hint(char *algorithm)
{
    int rank;
    MPI_Info info;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 1)
        return;
    MPI_Info_create(&info);
    MPI_Info_set(info, "nbcshim_algorithm", algorithm);
#if MPI_VERSION >= 3
    MPI_Comm_set_info(MPI_COMM_WORLD, info);
#endif
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    MPI_Request request;
    if (argc == 2 && !setlocale(LC_ALL, ""))
        return 2;
    MPI_Init(&argc, &argv);
    if (argc == 3 && strcmp(argv[1], "hint") == 0)
        give_hint(argv[2]);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
