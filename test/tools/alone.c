/* SPDX-License-Identifier: MIT */
/* Starts a process that runs without nbcshim, which ends both after a while. */
#include <mpi.h>

#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Comm other;
    char unset[] = "-u", preload[] = "LD_PRELOAD", child[] = "child", env[] = "env";
    char *arguments[] = {unset, preload, argv[0], child, NULL};
    MPI_Init(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], child) == 0) {
        sleep(12);
        MPI_Abort(MPI_COMM_WORLD, 0);
    }
    MPI_Comm_spawn(env, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                   MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
