/* SPDX-License-Identifier: MIT */
/* Tuning rules for a network, made of simulations: for ranges of ranks and bytes an algorithm that
 * is nowhere among the calls simulated much worse than the best, in as few rules as do. */
#ifndef NBCSIM_ADVICE_H
#define NBCSIM_ADVICE_H

#include "list.h"
#include "report.h"

struct advice;

/* Not for collectives whose bytes no rank knows of the others: rules cannot tell such calls apart.
 */
bool advice_possible(enum nbc_coll coll);

/* For these numbers of ranks and bytes, both ascending. NULL: no memory. */
struct advice *advice_new(enum nbc_coll coll, const struct list *ranks, const struct list *bytes);

/* Where to put the simulations of the i-th number of ranks and the b-th of bytes. */
struct cell *advice_cell(struct advice *a, int i, int b);

/* Rules in the form of rules.h. */
void advice_print(const struct advice *a, FILE *out);

void advice_free(struct advice *a);

#endif
