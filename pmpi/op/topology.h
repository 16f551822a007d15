/* SPDX-License-Identifier: MIT */
/* Neighbor lists of a communicator, in the order of the standard (8.6). */
#ifndef NBC_TOPOLOGY_H
#define NBC_TOPOLOGY_H

#include "below/next.h"

#include "coll.h"

struct nbc_topology {
    struct nbc_neighbors neighbors;
    int list[]; /* sources, then destinations */
};

/* Asks the MPI. Local. NULL: the communicator has no topology (*error = MPI_ERR_TOPOLOGY), or
 * another error. */
struct nbc_topology *nbc_topology_new(MPI_Comm comm, int *error);
void nbc_topology_free(struct nbc_topology *t);

#endif
