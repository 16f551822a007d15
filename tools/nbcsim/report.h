/* SPDX-License-Identifier: MIT */
/* What the simulations of one call by all its algorithms came to, and ways to show it. */
#ifndef NBCSIM_REPORT_H
#define NBCSIM_REPORT_H

#include "calls.h"
#include "emit.h"

enum { MOST_ALGS = 32 };

struct entry {
    const struct nbc_alg *alg;
    bool simulated;
    bool chosen;
    struct result
        result;   /* not simulated: its time is an estimate, or 0, and nothing else is there */
    double least; /* not simulated: its time on fewer ranks, which is less; 0: unknown */
};

struct cell {
    struct call call;
    struct bounds bounds;
    int n;
    struct entry entry[MOST_ALGS];
};

/* Time of the best algorithm; of the chosen one, or 0 where that is not known. */
double cell_best(const struct cell *cell);
double cell_chosen(const struct cell *cell);
const struct nbc_alg *cell_best_alg(const struct cell *cell);

/* By how much the chosen one is worse than the best, as a share; negative: not known. */
double cell_regret(const struct cell *cell);

/* Reports: one of these for a run. begin, then a cell at a time, then end. */
struct report {
    FILE *out;
    const struct network *net;
    struct emit json; /* format_json */
    bool path;
    int64_t cells, judged, over, estimated, unknown; /* regret */
    double worst, log_sum;
};

struct format {
    void (*begin)(struct report *r);
    void (*cell)(struct report *r, const struct cell *cell);
    void (*end)(struct report *r);
};

extern const struct format format_table, format_json, format_regret, format_plot;

#endif
