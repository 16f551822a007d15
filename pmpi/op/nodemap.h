/* SPDX-License-Identifier: MIT */
/* The node of each rank of a communicator. At init the ranks of MPI_COMM_WORLD tell their hosts.
 * All else follows from the ranks that the processes of a communicator have there, by local calls:
 * when the communicator is created, whether all its ranks share a node, which needs no memory; and
 * the node map when a collective is first called. Set up at init; afterwards under the lock. */
#ifndef NBC_NODEMAP_H
#define NBC_NODEMAP_H

#include "op/members.h"
#include "below/next.h"

/* Finds the nodes of MPI_COMM_WORLD. Collective over it. Returns an MPI error code.
 * nbc_nodemap_cleanup frees them; local. */
int nbc_nodemap_setup(void);
void nbc_nodemap_cleanup(void);

/* The number of nodes of MPI_COMM_WORLD; 0 if it is not known. */
int nbc_nodemap_count(void);

/* Whether a node has more ranks of MPI_COMM_WORLD than processors, as far as is known. */
extern NBC_HIDDEN bool nbc_oversubscribed;

/* Sets local, sockets, oversubscribed, handshake and mixed of a communicator that is being created,
 * from its sizes. Only at its creation do all its processes have the same information: later, some
 * may have initialized or finalized MPI_COMM_WORLD and others not. Local. Returns an MPI error
 * code. */
int nbc_nodemap_place(struct nbc_members *m, MPI_Comm comm, bool spans_jobs);

/* Sets *map to the node map for the shape of a collective. The map is the same on all ranks, and
 * the members own it. Sets *map to NULL if the nodes are not known, or all ranks are on one, or
 * each on another. Local. Returns an MPI error code. */
int nbc_nodemap_of(struct nbc_members *m, MPI_Comm comm, const struct nbc_nodes **map);

/* Frees a node map; accepts NULL. */
void nbc_nodemap_free(struct nbc_nodes *map);

#endif
