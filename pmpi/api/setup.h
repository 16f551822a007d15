/* SPDX-License-Identifier: MIT */
/* Setup and shutdown of the state that is not of a single communicator. All without the lock. */
#ifndef NBC_SETUP_H
#define NBC_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

/* Whether this process wants nbcshim to be active. */
bool nbc_wanted(void);

/* Sets the state up, once. comm: any communicator; home: nbc_handle_comm, see state.h; rank: of
 * this process among all processes of the job. Collective if NBCSHIM_TRACE is set. Returns an MPI
 * error code. */
int nbc_set_up(MPI_Comm comm, MPI_Comm home, int rank);

/* Sets nbc_native_blocking from the settings. own: collectives that nbcshim carries out in any
 * case. */
void nbc_set_native_blocking(uint32_t own);

/* Whether it is: in MPI_Init, if a session has created a communicator before. */
bool nbc_is_set_up(void);

/* Frees all state. Called when the MPI is about to end: while MPI_Finalize deletes the attributes
 * of MPI_COMM_SELF, after those of the program, when all of MPI still works; or at the end of the
 * last session. */
void nbc_shutdown(void);

struct nbc_call;

/* Raises the error for a collective on a communicator without a context, where the MPI lacks the
 * function, and returns it. If the reason is that nbcshim is inactive, a line on standard error
 * says once how to change that. */
int nbc_raise_lacking(const struct nbc_call *call, const char *name);

#endif
