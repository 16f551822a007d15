/* SPDX-License-Identifier: MIT */
/* The collectives, as their entry points call them. These functions decide whether a call is for
 * nbcshim, make its operation and raise its errors. All without the lock. */
#ifndef NBC_CALLS_H
#define NBC_CALLS_H

#include <stdint.h>

#include "op/call.h"

struct nbc_context;

/* All zero. To copy this takes 9 ns less than to initialize a call (gcc 12: rep stos). */
extern NBC_HIDDEN const struct nbc_call nbc_no_call;

/* Returned by all of these, which then have done nothing, where the function of the MPI below has
 * to be called instead: nbcshim is inactive, or the communicator has no context (the MPI made it
 * for itself, or the handle is invalid). The same on all ranks of the communicator. */
enum { NBC_CALL_BELOW = -1 };

/* MPI_I…: starts the operation. Local. Sets *request only on success. Returns MPI_SUCCESS, or an
 * error after raising it on the communicator. MPI-4.1 sections 6.12, 8.7. */
int nbc_call_start(const struct nbc_call *call, MPI_Request *request);

/* MPI_…_init: makes an inactive persistent operation. Collective. Sets *request only on success.
 * Errors as nbc_call_start. MPI-4.1 sections 6.13, 8.8. */
int nbc_call_init(const struct nbc_call *call, MPI_Request *request);

/* The blocking form: starts the operation, waits for it and frees it. Operations started earlier
 * progress meanwhile. Errors as nbc_call_start. */
int nbc_call_blocking(const struct nbc_call *call);

/* The same for nbcshim's own purposes: does not depend on NBCSHIM_BLOCKING, and the caller knows
 * that nbcshim is active. */
int nbc_call_forced(const struct nbc_call *call);

/* The bitwise AND of the words of all ranks of a communicator, of both groups of an
 * intercommunicator, by operations of nbcshim, at most 1024 words. All operations progress
 * meanwhile; afterwards all ranks have made the call. Under the lock, which it releases to wait.
 * Returns an MPI error code, not raised. */
int nbc_call_and(struct nbc_context *c, enum nbc_purpose purpose, const uint64_t *mine,
                 uint64_t *all, int words);

#endif
