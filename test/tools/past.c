/* SPDX-License-Identifier: MIT */
/* A program that takes MPI_Init from the library of the MPI, as those of Julia do: past nbcshim,
 * which its other calls reach. */
#define _GNU_SOURCE
#ifdef PERSISTENT
#include <nbcshim.h>
#else
#include <mpi.h>
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The library that has it: nbcshim has no such function. */
static void *open_mpi(void)
{
    Dl_info info;
    void *f = dlsym(RTLD_DEFAULT, "MPI_Get_version");
    return f && dladdr(f, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL) : NULL;
}

int main(void)
{
    void *mpi = open_mpi(), *f = mpi ? dlsym(mpi, "MPI_Init") : NULL;
    int (*init)(int *, char ***);
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int size, one = 1, sum = 0;
    if (!f)
        return 2;
    memcpy(&init, &f, sizeof init);
    init(NULL, NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_size(comm, &size);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#ifdef PERSISTENT /* fails where the MPI lacks it */
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    MPI_Request_free(&request);
#endif
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return sum != size;
}
