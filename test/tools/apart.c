/* SPDX-License-Identifier: MIT */
/* A program that loads the MPI itself with RTLD_LOCAL, as ctypes of Python does, and takes its
 * functions from there. The argument is the MPI's library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *mpi;

static int call_init(void)
{
    int (*init)(int *, char ***);
    void *found = dlsym(mpi, "MPI_Init");
    memcpy(&init, &found, sizeof found);
    return found ? init(NULL, NULL) : 1;
}

static int call_finalize(void)
{
    int (*finalize)(void);
    void *found = dlsym(mpi, "MPI_Finalize");
    memcpy(&finalize, &found, sizeof found);
    return found ? finalize() : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        mpi = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL);
    if (!mpi) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    return call_init() || call_finalize();
}
