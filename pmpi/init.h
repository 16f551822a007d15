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

/* Error for a collective that is not ours here and that the MPI lacks. Where the reason is that the
 * shim stands aside it says on standard error, once, how to change that. */
int nbc_lacks(MPI_Comm comm, const char *name);

/* MPI is about to end: called while MPI_COMM_SELF's attributes are deleted, when the attributes of
 * the program are gone already and all of MPI still works. */
void nbc_shutdown(void);

#endif
