/* SPDX-License-Identifier: MIT */
/* Simulations of calls with all their algorithms. */
#ifndef NBCSIM_CELLS_H
#define NBCSIM_CELLS_H

#include "report.h"

/* The last simulations of an algorithm for one size, on increasing numbers of ranks. */
struct past {
    int n;
    double ranks[3], time[3]; /* ranks: logarithm of their number */
};

/* The growth of an algorithm's time: per rank, and per doubling of the ranks. */
struct growth {
    bool known;
    double per_rank, per_doubling;
};

struct runner {
    const struct network *net;
    const struct nbc_rules *rules;
    struct limits limits;
    bool path, estimate;
    void (*begins)(const struct call *call, const struct nbc_alg *alg); /* or NULL */
    struct past *past;     /* per algorithm: for powers of two, and for other numbers of ranks */
    struct growth *growth; /* per algorithm, once computed */
};

/* Returns false if memory ran out. The caller sets the fields before `past`. */
bool runner_begin(struct runner *r);

/* Announces that the following calls have other bytes. */
void runner_forget(struct runner *r);

/* Simulates a call with all algorithms that apply, or with one. Calls must come in ascending order
 * of ranks. On request, a simulation that is too large is replaced by an estimate: for a pipeline,
 * from one with fewer segments; otherwise from the growth of the time with the ranks. Returns NULL,
 * or an error message. */
const char *runner_cell(struct runner *r, const struct call *call, const struct nbc_alg *only,
                        struct cell *cell);

void runner_end(struct runner *r);

#endif
