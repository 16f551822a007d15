/* SPDX-License-Identifier: MIT */
/* What follows from the runs: medians, their spread, and the verdict. */
#ifndef NBC_COMPARE_FIGURES_H
#define NBC_COMPARE_FIGURES_H

#include "runs.h"

extern const char *const variant_names[NVARIANTS];  /* for JSON */
extern const char *const variant_labels[NVARIANTS]; /* for people */

/* A figure over the runs of a variant. */
struct figure {
    double median, low, high; /* low, high: quartiles */
};

/* A call site, collective, form and size, over all ranks and runs. */
struct site {
    const struct row *key;
    int nframes;             /* of the key that count */
    bool tells[MOST_FRAMES]; /* a frame in which it differs from others of the same call */
    char *where;
    double calls;                     /* of a rank, in a run */
    double bytes;                     /* mean of a call; negative: unknown */
    struct figure seconds[NVARIANTS]; /* in MPI, mean of the ranks */
    double hidden[NVARIANTS];         /* share of the time from start to completion in which the */
                                      /* program did other things; negative: there is none */
};

struct comparison {
    const char *command;
    struct run *runs; /* the variants in turns */
    int nruns, turns;
    bool have[NVARIANTS];
    int nranks;
    struct site *sites; /* those with most time first */
    int nsites;
    struct figure wall[NVARIANTS], seconds[NVARIANTS];
    double hidden[NVARIANTS];
    double *late[NVARIANTS]; /* for each rank: seconds after the mean of all, at a call; median */
    double noise;
    char verdict[1024];
};

/* Fills in all that follows from command, runs and nruns. Returns false if memory runs out or the
 * runs do not belong together, after a message on standard error. */
bool compare_runs(struct comparison *c);

/* Whether a rank's lateness is worth telling. */
bool is_late(const struct comparison *c, enum variant v, int rank);

/* "MPI_Iallreduce" */
const char *function_name(const struct row *key, char *text, size_t size);

/* "4K-8K", "0", "?" */
const char *size_name(const struct site *s, char *text, size_t size);

#endif
