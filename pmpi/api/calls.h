/* SPDX-License-Identifier: MIT */
/* The collectives as entry points call them: whether a call concerns nbcshim, its operation, and
 * the errors that it raises. Not under the lock. */
#ifndef NBC_CALLS_H
#define NBC_CALLS_H

#include "op/call.h"

/* Returned, with nothing done, where the call is to go to the MPI's own function: nbcshim is
 * inactive, or does not know the communicator (made by the MPI for itself, or no communicator at
 * all). The same on all ranks of the communicator. */
enum { NBC_NOT_OURS = -1 };

/* MPI_I…: starts the operation. Local. Sets *request only on success. Returns MPI_SUCCESS, or an
 * error after raising it on the communicator's error handler. MPI-4.1 sections 6.12, 8.7. */
int nbc_call_start(const struct nbc_call *call, MPI_Request *request);

/* MPI_…_init: sets up an inactive persistent operation. Collective. MPI-4.1 sections 6.13, 8.8. */
int nbc_call_init(const struct nbc_call *call, MPI_Request *request);

/* The blocking form: an operation that is started, waited for and freed, so that a rank that waits
 * in it progresses what it has started before. */
int nbc_call_blocking(const struct nbc_call *call);

/* The same for nbcshim's own purposes, whatever NBCSHIM_BLOCKING says of the program's calls. */
int nbc_call_forced(const struct nbc_call *call);

#endif
