/* SPDX-License-Identifier: MIT */
/* Keeps MPICH from raising an error on MPI_COMM_WORLD that belongs to another communicator. */
#ifndef NBC_SUPPRESS_ERRORS_H
#define NBC_SUPPRESS_ERRORS_H

#include <stdbool.h>

/* Around a call of the MPI below by this thread, without the lock. nbc_suppress_errors_end returns
 * whether an error of the call was not raised: then the caller raises it. False where the MPI
 * raises errors on the right communicator, and in the static library. */
void nbc_suppress_errors_begin(void);
bool nbc_suppress_errors_end(void);

#endif
