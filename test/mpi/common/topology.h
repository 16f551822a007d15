/* SPDX-License-Identifier: MIT */
/* The edges of a process topology, and which end fits which: MPI-4.1 section 8.6 by the letter. */
#ifndef NBC_TEST_TOPOLOGY_H
#define NBC_TEST_TOPOLOGY_H

#include "util.h"

/* Edge k of a list: its other end, and a tag that is the same at both ends and different for each
 * of several edges from one process to another. Peers may be MPI_PROC_NULL. */
struct edges {
    int n;
    int *peer, *tag;
};

struct topology {
    struct edges in, out;
};

/* Local. To be freed. */
struct topology *topology_of(MPI_Comm comm);
void topology_free(struct topology *t);

/* Sends a token over each edge by plain point-to-point messages as the standard defines the
 * neighborhood collectives, and reports where the lists and tags above say something else.
 * Collective. */
void topology_verify(const struct topology *t, MPI_Comm comm);

/* A communicator with some topology, of a kind and shape drawn from a generator that is the same on
 * all ranks: Cartesian of 1 to 3 dimensions, graph, distributed graph made in either way.
 * Collective. MPI_COMM_NULL on ranks that a grid leaves out. */
MPI_Comm topology_random(MPI_Comm comm, struct rng *shared);

/* The same, by kind. */
enum topology_kind { TOPOLOGY_CART, TOPOLOGY_GRAPH, TOPOLOGY_DIST, TOPOLOGY_ADJACENT, NTOPOLOGIES };
MPI_Comm topology_make(MPI_Comm comm, enum topology_kind kind, struct rng *shared);

#endif
