/* SPDX-License-Identifier: MIT */
/* A program that takes MPI_Init from the library of the MPI, as those of Julia do: past nbcshim,
 * which its other calls reach. -DPERSISTENT: with a collective that the MPI may lack. -DUNKNOWN: it
 * takes MPI_Comm_dup instead, and goes on after an error of that collective on the duplicate. */
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

#ifdef UNKNOWN
static int run(void *f)
{
    int (*make)(MPI_Comm, MPI_Comm *);
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    memcpy(&make, &f, sizeof make);
    MPI_Init(NULL, NULL);
    make(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int error = MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    printf("%s %d\n", error ? "refused" : "made", request == MPI_REQUEST_NULL);
    MPI_Finalize();
    return 0;
}
#else
static int run(void *f)
{
    int (*init)(int *, char ***);
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int size, one = 1, sum = 0;
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
#endif

int main(void)
{
#ifdef UNKNOWN
    const char *name = "MPI_Comm_dup";
#else
    const char *name = "MPI_Init";
#endif
    void *mpi = open_mpi(), *f = mpi ? dlsym(mpi, name) : NULL;
    return f ? run(f) : 2;
}
