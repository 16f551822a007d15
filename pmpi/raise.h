/* SPDX-License-Identifier: MIT */
/* How the program is told of errors. MPI-4.1 sections 9.3 to 9.5. */
#ifndef NBC_RAISE_H
#define NBC_RAISE_H

#include <mpi.h>

/* Calls the error handler of comm (for MPI_COMM_NULL: of MPI_COMM_WORLD, or of nbc_home where there
 * is none) and returns error. Without the lock: handlers are code of the program. */
int nbc_raise(MPI_Comm comm, int error);

/* Raises MPI_ERR_REQUEST for entry `entry` (from 0) of the array that `function` was given; `why`
 * says what is wrong with it. MPI_Error_string of the code returned tells all three, until the next
 * such error. Without the lock. */
int nbc_raise_entry(MPI_Comm comm, const char *function, int entry, const char *why);

#endif
