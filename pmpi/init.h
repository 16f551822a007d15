/* SPDX-License-Identifier: MIT */
/* Beginning and end: whether the shim takes over, and what it sets up and takes down. */
#ifndef NBC_INIT_H
#define NBC_INIT_H

#include <stdbool.h>

#include "next.h"

/* Whether the shim takes over the collectives, the same on every rank of MPI_COMM_WORLD: set by
 * MPI_Init and read only afterwards. Where it is false every call goes to the MPI below, and no
 * communicator has a context. */
extern bool nbc_on;

/* Error for a collective that neither the MPI has nor the shim, standing aside, provides. Says on
 * standard error how to change that, once. */
int nbc_off_error(MPI_Comm comm, const char *name);

/* MPI is about to end: called while MPI_COMM_SELF's attributes are deleted, when the attributes of
 * the program are gone already and all of MPI still works. */
void nbc_shutdown(void);

#endif
