/* SPDX-License-Identifier: MIT */
/* Simulations of calls by all their algorithms. */
#ifndef NBCSIM_CELLS_H
#define NBCSIM_CELLS_H

#include "report.h"

/* The last simulations of an algorithm for one size, on ever more ranks. */
struct past {
    int n;
    double ranks[3], time[3]; /* ranks: their logarithm */
};

/* What ranks add to an algorithm's time, each one or all together when they double. */
struct growth {
    bool known;
    double per_rank, per_doubling;
};

struct runner {
    const struct network *net;
    const struct nbc_rules *rules;
    struct limits limits;
    bool path, estimate;
    struct past *past;     /* per algorithm: numbers of ranks that are powers of two, and others */
    struct growth *growth; /* per algorithm, once that has been asked */
};

/* False: no memory. The fields before `past` are the caller's. */
bool runner_begin(struct runner *r);

/* What follows is about other bytes. */
void runner_forget(struct runner *r);

/* One call by all algorithms that apply, or by one. Of several calls that with more ranks come
 * later: what is too large to be simulated is then estimated, if that is asked for: a pipeline from
 * one with fewer segments, anything from the way in which its time has grown with the ranks. NULL,
 * or what went wrong. */
const char *runner_cell(struct runner *r, const struct call *call, const struct nbc_alg *only,
                        struct cell *cell);

void runner_end(struct runner *r);

#endif
