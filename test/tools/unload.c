/* SPDX-License-Identifier: MIT */
/* Loads nbcshim as a plugin does, starts operations by its functions, unloads it, and goes on with
 * those of the MPI: MPI_Finalize calls back what nbcshim has left with it. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *library;

static void find(const char *name, void *function)
{
    void *found = dlsym(library, name);
    if (found)
        memcpy(function, &found, sizeof found);
    else
        fprintf(stderr, "%s\n", dlerror());
}

int main(int argc, char **argv)
{
    int (*init)(int *, char ***, int, int *) = NULL, (*wait)(MPI_Request *, MPI_Status *) = NULL;
    int (*iallreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *) =
        NULL;
    int one = 1, sum = 0, size, level;
    MPI_Request r;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    find("MPI_Init_thread", &init);
    find("MPI_Iallreduce", &iallreduce);
    find("MPI_Wait", &wait);
    if (argc < 2 || !init || !iallreduce || !wait)
        return 2;
    init(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    wait(&r, MPI_STATUS_IGNORE);
    dlclose(library);
    usleep(20000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    printf("sum %s\n", sum == size ? "right" : "wrong");
    return sum != size;
}
