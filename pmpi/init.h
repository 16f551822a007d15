/* SPDX-License-Identifier: MIT */
/* Beginning and end: whether the shim takes over, and what it sets up and takes down. */
#ifndef NBC_INIT_H
#define NBC_INIT_H

#include <stdbool.h>

#include "next.h"

/* Whether the shim takes over the collectives, the same on every rank of MPI_COMM_WORLD: set by
 * MPI_Init, or, in a program that opens sessions only, by the first communicator made whose ranks
 * want it. Where it is false every call goes to the MPI below, and no communicator has a context.
 */
extern bool nbc_on;

/* MPI_COMM_WORLD and MPI_COMM_SELF may be used: MPI_Init has been called. */
extern bool nbc_world;

/* A communicator of this process alone, for what belongs to no other one: MPI_COMM_SELF, or one
 * from a session of our own. Set when the shim takes over. */
extern MPI_Comm nbc_home;

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
