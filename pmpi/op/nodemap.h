/* SPDX-License-Identifier: MIT */
/* Which node each rank of a communicator is on. The MPI is asked once, at init, about
 * MPI_COMM_WORLD; what is true of a communicator follows from the ranks of its processes there, by
 * local calls: at its creation whether all share a node, which takes no memory, and a map when a
 * collective that can use one is first called. Set up at init; then under the lock. */
#ifndef NBC_NODEMAP_H
#define NBC_NODEMAP_H

#include "op/members.h"
#include "below/next.h"

#include "coll.h"

/* Collective over MPI_COMM_WORLD. Returns an MPI error code. */
int nbc_nodemap_setup(void);
void nbc_nodemap_cleanup(void);

/* Sets local, oversubscribed and mixed of a communicator that is being made, from its sizes. That
 * is the moment when all its processes know equally much: later some may have begun, or ended,
 * MPI_COMM_WORLD, and others not. Local. Returns an MPI error code. */
int nbc_nodemap_place(struct nbc_members *m, MPI_Comm comm);

/* Sets *map to the node map for the shape of a collective, the same on all ranks, which the members
 * own; or to NULL where no algorithm of the collective can use one. Local. Returns an MPI error
 * code.
 */
int nbc_nodemap_of(struct nbc_members *m, MPI_Comm comm, enum nbc_coll coll,
                   const struct nbc_nodes **map);

void nbc_nodemap_free(struct nbc_nodes *map);

#endif
