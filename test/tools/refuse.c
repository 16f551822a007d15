/* SPDX-License-Identifier: MIT */
/* To be preloaded after nbcshim: an MPI that sends nothing while the program says so. */
#include "below.h"

int refuse, refused, sent; /* refuse: set by the program */

int PMPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    BELOW(Isend);
    if (refuse) {
        refused++;
        return MPI_ERR_NO_MEM;
    }
    sent++;
    return below(buf, count, type, dest, tag, comm, request);
}
