/* SPDX-License-Identifier: MIT */
/* Who takes part in a call (cases.h), and with how much: for the files that make calls up. A rank
 * is its number over both groups. */
#ifndef NBC_TEST_PARTS_H
#define NBC_TEST_PARTS_H

#include "cases.h"

/* Remembers the first thing that went wrong. */
void complain(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the blocks of the collective may differ in size. */
bool uneven(enum nbc_coll coll);

int group_of(const struct world *w, int id);
int group_size(const struct world *w, int group);
const char *group_name(const struct world *w, int id);
int local_of(const struct world *w, int id); /* its rank in there */
bool is_root(const struct world *w, int id);

/* Atoms of a unit, the smallest amount a block can have. In a mixed call it can be cut into
 * elements of one, two and three atoms. */
int unit_atoms(int layout);

/* How many blocks a rank sends and receives, and units of them. */
int out_blocks(const struct world *w, int id);
int in_blocks(const struct world *w, int id);
int64_t out_units(const struct world *w, int id, int i);
int64_t in_units(const struct world *w, int id, int i);

/* The groups of an intercommunicator reduce vectors of one length, each cut up for the other. */
int64_t scattered_units(const struct world *w, int group, int local);

/* Rank that the block comes from, and its number among that rank's. Not for reductions. */
int block_source(const struct world *w, int id, int i, int *number);

#endif
