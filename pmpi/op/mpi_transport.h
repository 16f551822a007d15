/* SPDX-License-Identifier: MIT */
/* The executor's transport over the MPI below. `self` is the run. All under the lock. */
#ifndef NBC_MPI_TRANSPORT_H
#define NBC_MPI_TRANSPORT_H

#include "below/next.h"

#include "transport.h"

extern const struct nbc_transport nbc_mpi_transport;

/* A communicator of this process alone that no message of the program travels on, for copies of
 * more data than MPI_Pack counts; MPI_COMM_NULL while there is none. Set at init and finalize. */
extern MPI_Comm nbc_transport_alone;

#endif
