/* SPDX-License-Identifier: MIT */
/* The edges of a process topology and the matching of their ends, as MPI-4.1 section 8.6 defines
 * it. */
#ifndef NBC_TEST_TOPOLOGY_H
#define NBC_TEST_TOPOLOGY_H

#include "util.h"

/* An edge: its other end, which may be MPI_PROC_NULL, and a tag that is the same at both ends and
 * distinguishes edges between the same processes. */
struct edges {
    int n;
    int *peer, *tag;
};

struct topology {
    struct edges in, out;
};

/* Returns the edges of a communicator, to be freed by topology_free. Local. The second one does not
 * ask what kind of topology it has. */
struct topology *topology_of(MPI_Comm comm);
struct topology *topology_cartesian(MPI_Comm comm);
void topology_free(struct topology *t);

/* Sends a token over each edge by point-to-point messages, as the standard defines the neighborhood
 * collectives, and reports where the lists and tags above disagree. Collective. */
void topology_verify(const struct topology *t, MPI_Comm comm);

/* Returns a communicator with a topology whose kind and shape are drawn from a generator that is
 * the same on all ranks: Cartesian of 1 to 3 dimensions, graph, or distributed graph by either
 * function. MPI_COMM_NULL on ranks outside a grid. Collective. */
MPI_Comm topology_random(MPI_Comm comm, struct rng *shared);

/* The same, for a given kind. */
enum topology_kind { TOPOLOGY_CART, TOPOLOGY_GRAPH, TOPOLOGY_DIST, TOPOLOGY_ADJACENT, NTOPOLOGIES };
MPI_Comm topology_make(MPI_Comm comm, enum topology_kind kind, struct rng *shared);

#endif
