/* SPDX-License-Identifier: MIT */
/* The executor's transport over point-to-point messages of the MPI below. `self` is the run. Under
 * the lock. */
#ifndef NBC_MPI_TRANSPORT_H
#define NBC_MPI_TRANSPORT_H

#include <stdbool.h>

#include "below/next.h"

#include "transport.h"

extern NBC_HIDDEN const struct nbc_transport nbc_mpi_transport;

/* nbc_exec_start and nbc_exec_poll, which take fewer instructions over this transport. */
struct nbc_exec;
bool nbc_transport_start(struct nbc_exec *e);
bool nbc_transport_poll(struct nbc_exec *e);

/* nbc_transport_poll in a call that waits: it looks at shared memory for as long as a short message
 * may take first, since a poll of the MPI takes longer. */
bool nbc_transport_await(struct nbc_exec *e);

/* The same for staged schedules. */
extern const struct nbc_transport nbc_staged_transport;

#endif
