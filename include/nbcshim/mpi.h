/* SPDX-License-Identifier: MIT */
/* The MPI's own <mpi.h>, and behind it nbcshim.h: nbcc has programs that include <mpi.h> find this
 * one first, so that they see the prototypes of what nbcshim adds. */
#ifdef __GNUC__
#pragma GCC system_header
#endif
#ifndef NBCSHIM_MPI_H
#define NBCSHIM_MPI_H
#include_next <mpi.h>
#include <nbcshim.h>
#endif
