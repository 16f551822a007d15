/* SPDX-License-Identifier: MIT */
/* MPI_Comm_idup: MPI-4.1 section 7.4.2. The call is local, so what a constructor does before or
 * after the native call follows without waiting, and the program gets an own request, which
 * completes when all is done. */
#ifndef NBC_IDUP_H
#define NBC_IDUP_H

#include <mpi.h>

/* Makes the native calls of all MPI_Comm_idup of this communicator that still wait for earlier
 * ones. Called before its attributes or its error handler change, since a duplicate has those that
 * the communicator had at the call (MPI-4.1 section 7.4.2). Without the lock. Local. */
void nbc_idup_start_all(MPI_Comm comm);

#endif
