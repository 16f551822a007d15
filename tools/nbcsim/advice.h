/* SPDX-License-Identifier: MIT */
/* Tuning rules from simulations of a network: for ranges of ranks and bytes, an algorithm that is
 * not much slower than the best one in any simulated call, in as few rules as possible. */
#ifndef NBCSIM_ADVICE_H
#define NBCSIM_ADVICE_H

#include "list.h"
#include "report.h"

struct advice;

/* Whether rules can distinguish calls of the collective: ranks must know each other's bytes. */
bool advice_possible(enum nbc_coll coll);

/* Returns advice for these numbers of ranks and bytes, both ascending; NULL if memory ran out. */
struct advice *advice_new(enum nbc_coll coll, const struct list *ranks, const struct list *bytes);

/* Returns the cell for the simulations of the i-th number of ranks and the b-th number of bytes. */
struct cell *advice_cell(struct advice *a, int i, int b);

/* Writes the rules in the form of rules.h. */
void advice_print(const struct advice *a, FILE *out);

void advice_free(struct advice *a);

#endif
