/* SPDX-License-Identifier: MIT */
/* The installed MPI, and what MPI-4.1 has besides; with NBC_TEST_ABI it looks like one of the ABI
 * of MPI-5: see run.sh. */
#ifndef MPI41_H
#define MPI41_H

#include_next <mpi.h>

#define DECLARE(name, params) \
    int MPI_##name params;    \
    int PMPI_##name params

/* Intel MPI 2021.18 and MPICH 4.2 have no const here. */
#if defined NBC_TEST_NO_CONST || (defined MPICH_NUMVERSION && MPICH_NUMVERSION / 100000 == 402)
#define REQUESTS MPI_Request
#else
#define REQUESTS const MPI_Request
#endif
DECLARE(Request_get_status_any,
        (int n, REQUESTS requests[], int *index, int *flag, MPI_Status *status));
DECLARE(Request_get_status_some,
        (int n, REQUESTS requests[], int *outcount, int indices[], MPI_Status statuses[]));
DECLARE(Request_get_status_all, (int n, REQUESTS requests[], int *flag, MPI_Status statuses[]));
DECLARE(Buffer_flush, (void));
DECLARE(Buffer_iflush, (MPI_Request * request));
#undef DECLARE

/* Nothing tells whose header it is, and no function converts handles to those of Fortran. */
#ifdef NBC_TEST_ABI
#undef OPEN_MPI
#undef OMPI_MAJOR_VERSION
#undef MPICH_VERSION
#undef MPICH_NUMVERSION
#undef MPICH
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0

#undef MPI_Comm_c2f
#undef MPI_Comm_f2c
#undef MPI_Op_c2f
#undef MPI_Op_f2c
#undef MPI_Request_c2f
#undef MPI_Request_f2c
#undef MPI_Type_c2f
#undef MPI_Type_f2c
#pragma GCC poison MPI_Comm_c2f MPI_Comm_f2c MPI_Op_c2f MPI_Op_f2c
#pragma GCC poison MPI_Fint MPI_Request_c2f MPI_Request_f2c MPI_Type_c2f MPI_Type_f2c
#endif

#endif
