/* SPDX-License-Identifier: MIT */
/* The results of the simulations of a call with all its algorithms, and reports of them. */
#ifndef NBCSIM_REPORT_H
#define NBCSIM_REPORT_H

#include "calls.h"
#include "emit.h"

enum { MOST_ALGS = 32 };

struct entry {
    const struct nbc_alg *alg;
    bool simulated;
    bool chosen;
    struct result result; /* if not simulated: its time is an estimate or 0, the rest is unset */
    double least;         /* if not simulated: the lower time on fewer ranks; 0: unknown */
};

struct cell {
    struct call call;
    struct bounds bounds;
    int n;
    struct entry entry[MOST_ALGS];
};

/* Returns the time of the best algorithm, 0 if none is known. */
double cell_best(const struct cell *cell);

/* The state of the report of a run: begin, then one call per cell, then end. */
struct report {
    FILE *out;
    const struct network *net;
    struct emit json;    /* of format_json */
    bool path, by_ranks; /* by_ranks: of format_plot, whose x axis it is */
    int64_t cells, judged, over, estimated, unknown; /* of format_regret */
    double worst, log_sum;
};

struct format {
    void (*begin)(struct report *r);
    void (*cell)(struct report *r, const struct cell *cell);
    void (*end)(struct report *r);
};

extern const struct format format_table, format_json, format_regret, format_plot;

#endif
