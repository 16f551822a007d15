/* SPDX-License-Identifier: MIT */
/* Communicators of all kinds, freed and replaced while operations are pending on them. */
#ifndef NBC_TEST_GROUPS_H
#define NBC_TEST_GROUPS_H

#include "cases.h"

enum { NGROUPS = 7 };

/* The communicators of groups that do not include this rank are MPI_COMM_NULL. */
struct groups {
    struct group *now[NGROUPS];
    struct group **retired; /* freed communicators, on which operations may be pending */
    int nretired;
};

/* Collective over MPI_COMM_WORLD, as is groups_replace. The generator is the same on all ranks. */
void groups_make(struct groups *g, struct rng *shared);

/* Frees a communicator, even if operations are pending on it, and makes another. */
void groups_replace(struct groups *g, int i, struct rng *shared);

/* Frees all communicators, when no operations are pending. */
void groups_free(struct groups *g);

#endif
