/* SPDX-License-Identifier: MIT */
/* To be preloaded after nbcshim: an MPI that sends nothing while the program says so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

int refuse, refused, sent; /* refuse: set by the program */

int PMPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    static __typeof(PMPI_Isend) *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Isend");
    if (refuse) {
        refused++;
        return MPI_ERR_NO_MEM;
    }
    sent++;
    return next(buf, count, type, dest, tag, comm, request);
}
