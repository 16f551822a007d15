/* SPDX-License-Identifier: MIT */
/* The neighbor lists of a process topology, in the order of MPI-4.1 section 8.6. */
#ifndef NBC_TOPOLOGY_H
#define NBC_TOPOLOGY_H

#include "below/next.h"

#include "coll.h"

struct nbc_topology {
    struct nbc_neighbors neighbors;
    int list[]; /* sources, then destinations */
};

/* Queries the neighbors of this rank in a communicator. Local. The caller frees the result. Returns
 * NULL on an error, which *error receives: MPI_ERR_TOPOLOGY if the communicator has no topology. */
struct nbc_topology *nbc_topology_new(MPI_Comm comm, int *error);
void nbc_topology_free(struct nbc_topology *t);

#endif
