/* SPDX-License-Identifier: MIT */
/* Whether nbcshim is active in this process. Written at init and finalize, when no second thread of
 * the program may call MPI, or, in a program of sessions, under the lock of sessions.c. */
#ifndef NBC_STATE_H
#define NBC_STATE_H

#include <mpi.h>
#include <stdbool.h>

/* Whether nbcshim takes over the collectives, the same on every rank of MPI_COMM_WORLD: set by
 * MPI_Init, or, in a program that opens sessions only, by the first communicator made whose ranks
 * want it. While it is false every call goes to the MPI below, and no communicator has a context.
 */
extern bool nbc_enabled;

/* MPI_Init has been called, and MPI_Finalize has not: MPI_COMM_WORLD and MPI_COMM_SELF may be used.
 */
extern bool nbc_world_initialized;

/* A communicator of this process alone, for what belongs to no other communicator: MPI_COMM_SELF,
 * or one from a session that nbcshim has opened. Set when nbcshim takes over. */
extern MPI_Comm nbc_home;

#endif
