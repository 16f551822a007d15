/* SPDX-License-Identifier: MIT */
/* Starts a process that runs without nbcshim, which ends both after a while; or one that has the
 * variable which is the argument, with which it does a collective. */
#include <mpi.h>

#include <string.h>
#include <unistd.h>

static int meet(MPI_Comm other)
{
    int one = 1, remote = 0;
    MPI_Allreduce(&one, &remote, 1, MPI_INT, MPI_SUM, other);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return remote == 1 ? 0 : 1;
}

int main(int argc, char **argv)
{
    MPI_Comm other;
    char unset[] = "-u", preload[] = "LD_PRELOAD", child[] = "child", guest[] = "guest",
         env[] = "env";
    char *arguments[] = {unset, preload, argv[0], child, NULL};
    char *with[] = {argc > 1 ? argv[1] : NULL, argv[0], guest, NULL};
    MPI_Init(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], child) == 0) {
        sleep(12);
        MPI_Abort(MPI_COMM_WORLD, 0);
    }
    if (argc > 1 && strcmp(argv[1], guest) == 0) {
        MPI_Comm_get_parent(&other);
        return meet(other);
    }
    MPI_Comm_spawn(env, argc > 1 ? with : arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                   MPI_ERRCODES_IGNORE);
    if (argc > 1)
        return meet(other);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
