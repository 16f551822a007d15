/* SPDX-License-Identifier: MIT */
/* The ranks of a test case (cases.h) and the sizes of their blocks, for the files that construct
 * cases. A rank is identified by its number over both groups. */
#ifndef NBC_TEST_PARTS_H
#define NBC_TEST_PARTS_H

#include "cases.h"

/* Records the first error in w->text. */
void complain(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the blocks of the collective may differ in size. */
bool uneven(enum nbc_coll coll);

int group_of(const struct world *w, int id);
int group_size(const struct world *w, int group);
const char *group_name(const struct world *w, int id);
int local_of(const struct world *w, int id); /* its rank in its group */
bool is_root(const struct world *w, int id);

/* Returns the atoms of a unit, the smallest size of a block. In a mixed case a unit can be divided
 * into elements of one, two and three atoms. */
int unit_atoms(int layout);

/* The numbers of blocks that a rank sends and receives, and the units of a block. */
int out_blocks(const struct world *w, int id);
int in_blocks(const struct world *w, int id);
int64_t out_units(const struct world *w, int id, int i);
int64_t in_units(const struct world *w, int id, int i);

/* Units of the part of a reduce_scatter that goes to a rank. The groups of an intercommunicator
 * reduce vectors of the same length, which each divides in its own way. */
int64_t scattered_units(const struct world *w, int group, int local);

/* Returns the rank that a block comes from and its index among that rank's blocks. Not for
 * reductions. */
int block_source(const struct world *w, int id, int i, int *number);

#endif
