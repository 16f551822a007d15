/* SPDX-License-Identifier: MIT */
/* The algorithm `mpi`: the MPI below carries out a collective on the program's communicator, where
 * hardware that collectives are offloaded to belongs to it. A blocking call goes to the MPI's
 * blocking function. A nonblocking one starts the MPI's nonblocking operation at once, so that all
 * ranks start them in the order of the calls; its run has no schedule, and the request remains one
 * of nbcshim. Persistent calls never qualify: their starts may come in a different order on each
 * rank, as nonblocking operations of the MPI may not. */
#ifndef NBC_BY_MPI_H
#define NBC_BY_MPI_H

#include "op/bind.h"
#include "op/run.h"

/* Whether the MPI has the function for a call, and the function is known to have no fault with such
 * calls. The same on all ranks. */
bool nbc_by_mpi_can(const struct nbc_call *call, const struct nbc_bound *b);

/* Calls the MPI's function. request: of a nonblocking call. */
int nbc_by_mpi_call(const struct nbc_call *call, MPI_Request *request);

/* Creates a run that carries out a call and holds none of its handles. Its first poll starts the
 * operation of the MPI, while the arguments of the call exist. devices: buffers may be in the
 * memory of one; they are staged, on the hidden communicator, and the call may block then. An MPI
 * that takes them in messages need not do so in its collectives. NULL without memory. */
struct nbc_run *nbc_by_mpi_run(const struct nbc_call *call, const struct nbc_bound *b,
                               MPI_Comm hidden, bool devices);

#endif
