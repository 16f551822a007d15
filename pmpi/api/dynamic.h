/* SPDX-License-Identifier: MIT */
/* Connections between jobs that were started apart (MPI-4.1 chapter 11). Each job has decided for
 * itself whether nbcshim is active, so they exchange that, by a collective call of the MPI below.
 * The other job must run under nbcshim as well, or this one must set NBCSHIM_DYNAMIC=0. */
#ifndef NBC_DYNAMIC_H
#define NBC_DYNAMIC_H

#include "below/next.h"

/* Called in MPI_Init, without the lock. If this job was spawned, agrees with the job that spawned
 * it and attaches a context to the intercommunicator. Collective over both jobs. Returns
 * MPI_SUCCESS, or an error that has been raised. */
int nbc_dynamic_meet_parent(void);

#endif
