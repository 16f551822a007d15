/* SPDX-License-Identifier: MIT */
/* The executor's transport over point-to-point messages of the MPI below. `self` is the run. Under
 * the lock. */
#ifndef NBC_MPI_TRANSPORT_H
#define NBC_MPI_TRANSPORT_H

#include <stdbool.h>

#include "below/next.h"

#include "transport.h"

extern const struct nbc_transport nbc_mpi_transport;

/* The same for staged schedules. */
extern const struct nbc_transport nbc_staged_transport;

struct nbc_run;

/* Ends a run that is not complete, with an error: cancels the messages in flight. */
void nbc_transport_give_up(struct nbc_run *run, int error);

/* While this is set, polls look at each message instead of progressing them: below/hook.h. */
extern bool nbc_inside_mpi_loop;

#endif
