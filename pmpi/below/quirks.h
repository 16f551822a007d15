/* SPDX-License-Identifier: MIT */
/* Works around defects of the MPI below that would hang programs, or give them wrong data. */
#ifndef NBC_QUIRKS_H
#define NBC_QUIRKS_H

#include <mpi.h>

/* Returns the major version of Open MPI, 0 of other MPIs. Without the lock. Local. */
int nbc_quirks_open_mpi_version(void);

/* Sets the environment variables that the MPI below reads at its initialization. To be called
 * before that, in a process in which nbcshim may become active. Without the lock. Local. */
void nbc_quirks_before_init(void);

/* Open MPI 5 gives the processes of MPI_Comm_spawn none of the environment variables that its
 * launcher has set for their parents (-x), LD_PRELOAD among them; earlier versions give all.
 * Without nbcshim there, the parents would wait for them forever.
 *
 * Returns info, or what must be passed to MPI_Comm_spawn instead, to be freed by nbc_quirks_forget.
 * Without the lock, by the rank on which info is significant. */
MPI_Info nbc_quirks_spawn_info(MPI_Info info);
void nbc_quirks_forget(MPI_Info passed, MPI_Info info);

/* Returns the source of a persistent receive that all completion calls of the MPI below take for
 * inactive until it is started: MPI_PROC_NULL, with which a request needs the least memory (on Open
 * MPI 4.1 180 instead of 770 bytes), unless this MPI takes such a request for a complete one, as
 * Intel MPI does; else rank 0. comm: a communicator of this process alone. Under the lock. Local.
 */
int nbc_quirks_inactive_source(MPI_Comm comm);

#endif
