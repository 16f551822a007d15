/* SPDX-License-Identifier: MIT */
/* The executor's transport over point-to-point messages of the MPI below. `self` is the run. Under
 * the lock. */
#ifndef NBC_MPI_TRANSPORT_H
#define NBC_MPI_TRANSPORT_H

#include "below/next.h"

#include "transport.h"

extern const struct nbc_transport nbc_mpi_transport;

#endif
