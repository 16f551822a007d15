/* SPDX-License-Identifier: MIT */
/* The executor's transport over point-to-point messages of the MPI below. `self` is the run. Under
 * the lock. */
#ifndef NBC_MPI_TRANSPORT_H
#define NBC_MPI_TRANSPORT_H

#include <stdbool.h>

#include "below/next.h"

#include "transport.h"

extern const struct nbc_transport nbc_mpi_transport;

/* While this is set, polls look at each message instead of progressing them: below/hook.h. */
extern bool nbc_transport_looks;

#endif
