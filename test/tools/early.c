/* SPDX-License-Identifier: MIT */
/* To be preloaded after nbcshim: an MPI whose MPI_Irecv receives a message at once that is there
 * already and too long, and returns the error, as MPICH's device ch3 does. */
#include "below.h"

#include <stdio.h>

static int early;

static int is_too_long(int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    int flag, length = 0, size;
    MPI_Status status;
    PMPI_Iprobe(source, tag, comm, &flag, &status);
    if (flag)
        PMPI_Get_count(&status, MPI_BYTE, &length);
    PMPI_Type_size(type, &size);
    return length > count * size;
}

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    BELOW(Irecv);
    if (!is_too_long(count, type, source, tag, comm))
        return below(buf, count, type, source, tag, comm, request);
    early++;
    int error = below(buf, count, type, source, tag, comm, request);
    return error ? error : PMPI_Wait(request, MPI_STATUS_IGNORE);
}

__attribute__((destructor)) static void report(void)
{
    if (early)
        fprintf(stderr, "received early: %d\n", early);
}
