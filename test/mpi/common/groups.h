/* SPDX-License-Identifier: MIT */
/* Communicators of all sorts at once, freed and made anew while operations are pending on them. */
#ifndef NBC_TEST_GROUPS_H
#define NBC_TEST_GROUPS_H

#include "cases.h"

enum { NGROUPS = 7 };

/* Groups that this rank is not in have the communicator MPI_COMM_NULL. */
struct groups {
    struct group *now[NGROUPS];
    struct group **retired; /* their communicators are freed, operations may still be pending */
    int nretired;
};

/* Collective over the world, like groups_replace. The generator is the same on all ranks. */
void groups_make(struct groups *g, struct rng *shared);

/* Frees a communicator at once, whatever is pending on it, and makes another. */
void groups_replace(struct groups *g, int i, struct rng *shared);

/* Frees all; nothing is pending any more. */
void groups_free(struct groups *g);

#endif
