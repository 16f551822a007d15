/* SPDX-License-Identifier: MIT */
/* The ranks in MPI_COMM_WORLD of the processes to which a communicator sends: those of its group,
 * with an intercommunicator those of the remote group. A table has references, so that duplicates
 * share it. Under the lock, except where stated. Local. */
#ifndef NBC_WORLD_RANKS_H
#define NBC_WORLD_RANKS_H

#include "below/next.h"

struct nbc_world_ranks {
    int refs;
    int of[]; /* by rank */
};

/* Creates the table of a communicator, whose processes are all in MPI_COMM_WORLD, or else returns
 * MPI_ERR_GROUP. *ranks is NULL if each process has the same rank in both. n: the number of ranks.
 * Without the lock. Returns an MPI error code. */
int nbc_world_ranks_new(MPI_Comm comm, int inter, int n, struct nbc_world_ranks **ranks);

/* Drops a reference; accepts NULL. */
void nbc_world_ranks_release(struct nbc_world_ranks *ranks);

#endif
