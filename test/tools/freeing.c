/* SPDX-License-Identifier: MIT */
/* To be preloaded after nbcshim: an MPI that frees a message under way when another one fails. */
#include "below.h"

int freed; /* messages so far, of which there is at most one */

int PMPI_Testsome(int n, MPI_Request *requests, int *count, int *indices, MPI_Status *statuses)
{
    BELOW(Testsome);
    int error = below(n, requests, count, indices, statuses);
    for (int i = 0; i < n && error && !freed; i++)
        if (requests[i] != MPI_REQUEST_NULL) {
            requests[i] = MPI_REQUEST_NULL;
            freed++;
        }
    return error;
}
