/* SPDX-License-Identifier: MIT */
/* Which node each rank of a communicator is on. The MPI is asked once, at init, about
 * MPI_COMM_WORLD; what is true of a communicator follows from the ranks of its processes there, by
 * local calls: at its creation whether all share a node, which takes no memory, and a map when a
 * collective that can use one is first called. Set up at init; then under the lock. */
#ifndef NBC_NODEMAP_H
#define NBC_NODEMAP_H

#include "context.h"

/* Collective over MPI_COMM_WORLD. Returns an MPI error code. */
int nbc_nodemap_setup(void);
void nbc_nodemap_cleanup(void);

/* Sets local, crowded and mixed of a communicator that is being made. That is the moment when all
 * its processes know equally much: later some may have begun, or ended, MPI_COMM_WORLD, and others
 * not. Returns an MPI error code. */
int nbc_nodemap_place(struct nbc_context *c);

/* *map: the one for the shape of a collective, the same on all ranks; the context keeps it. NULL:
 * there is none, or it is of no use to any algorithm of the collective. Returns an MPI error code.
 */
int nbc_nodemap_of(struct nbc_context *c, enum nbc_coll coll, const struct nbc_nodes **map);

void nbc_nodemap_free(struct nbc_nodes *map);

#endif
