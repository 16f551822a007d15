/* SPDX-License-Identifier: MIT */
/* Includes the MPI's own <mpi.h>, then nbcshim.h. nbcc puts this header first in the search path,
 * so that programs which include <mpi.h> see the prototypes of the functions that nbcshim adds. */
#ifdef __GNUC__
#pragma GCC system_header
#endif
#ifndef NBCSHIM_MPI_H
#define NBCSHIM_MPI_H
#include_next <mpi.h>
#include <nbcshim.h>
#endif
