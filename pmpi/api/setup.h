/* SPDX-License-Identifier: MIT */
/* What serves all communicators: whether it is wanted, and its beginning and end. */
#ifndef NBC_SETUP_H
#define NBC_SETUP_H

#include <stdbool.h>

#include "below/next.h"

/* Whether this process would have nbcshim take over. */
bool nbc_wanted(void);

/* Sets everything up, once. comm: any communicator; home: see state.h; leads: this process prints
 * the statistics. Returns an MPI error code. */
int nbc_set_up(MPI_Comm comm, MPI_Comm home, bool leads);

/* MPI is about to end: called while MPI_COMM_SELF's attributes are deleted, when the attributes of
 * the program are gone already and all of MPI still works; or by the end of the last session. */
void nbc_shutdown(void);

struct nbc_call;

/* Raises the error for a collective on a communicator that nbcshim does not know, where the MPI
 * lacks the function. Where the reason is that nbcshim is inactive, one line on standard error says
 * once how to change that. Returns the error. */
int nbc_raise_lacking(const struct nbc_call *call, const char *name);

#endif
