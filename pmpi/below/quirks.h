/* SPDX-License-Identifier: MIT */
/* Works around defects of the MPI below that would hang programs. */
#ifndef NBC_QUIRKS_H
#define NBC_QUIRKS_H

#include <stdbool.h>

#include <mpi.h>

/* Whether the blocking collectives of nbcshim should replace those of the MPI unless the user wants
 * otherwise: MPICH before 4.3 has faults in its own (a segmentation fault with MPI_Exscan_c), and
 * most take longer. Local. */
bool nbc_quirks_replace_blocking(void);

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

#endif
