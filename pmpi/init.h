/* SPDX-License-Identifier: MIT */
/* Beginning and end: whether the shim takes over, and what it sets up and takes down. */
#ifndef NBC_INIT_H
#define NBC_INIT_H

#include <stdbool.h>

#include "next.h"

/* Whether this process would have the shim take over. */
bool nbc_wanted(void);

/* Sets everything up, once. comm: any; leads: this process prints. Returns an MPI error code. */
int nbc_set_up(MPI_Comm comm, MPI_Comm home, bool leads);

struct nbc_call;

/* Error for a collective that is not ours here and that the MPI lacks. Where the reason is that the
 * shim stands aside it says on standard error, once, how to change that. */
int nbc_lacks(const struct nbc_call *call, const char *name);

/* MPI is about to end: called while MPI_COMM_SELF's attributes are deleted, when the attributes of
 * the program are gone already and all of MPI still works; or by the end of the last session. */
void nbc_shutdown(void);

#endif
