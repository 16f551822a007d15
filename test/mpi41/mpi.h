/* SPDX-License-Identifier: MIT */
/* The installed MPI, and what MPI-4.1 has besides: see run.sh. */
#ifndef MPI41_H
#define MPI41_H

#include_next <mpi.h>

#define DECLARE(name, params) \
    int MPI_##name params;    \
    int PMPI_##name params

DECLARE(Request_get_status_any,
        (int n, const MPI_Request requests[], int *index, int *flag, MPI_Status *status));
DECLARE(Request_get_status_some,
        (int n, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]));
DECLARE(Request_get_status_all,
        (int n, const MPI_Request requests[], int *flag, MPI_Status statuses[]));
DECLARE(Buffer_flush, (void));
DECLARE(Buffer_iflush, (MPI_Request * request));
#undef DECLARE

#endif
