/* SPDX-License-Identifier: MIT */
/* One thing to be measured, and how samples of it are taken and summed up. */
#ifndef NBC_BENCH_RUNNER_H
#define NBC_BENCH_RUNNER_H

#include "cases.h"

enum { MAX_SAMPLES = 1001 };

/* The ways to carry a collective out. */
enum variant { SHIM, NATIVE, ROUNDS, SHIM_PERSISTENT, NATIVE_PERSISTENT, NVARIANTS };

extern const char *const variant_names[NVARIANTS];

struct runner {
    enum variant variant;
    const struct operands *o;
    const struct calls *calls;
    MPI_Request request; /* persistent: from the start on; nonblocking: while it is under way */
    struct rounds *rounds;
    double sample[MAX_SAMPLES];
};

bool variant_is_persistent(enum variant v);

/* On all ranks or on none: false where a rank cannot make it. A nonblocking one has run once. To be
 * freed in either case; one that is all zero may be. */
bool runner_make(struct runner *r, enum variant v, const struct operands *o);
void runner_free(struct runner *r);

/* Not for ROUNDS, which are started and waited for in one. */
void runner_start(struct runner *r);
void runner_wait(struct runner *r);
bool runner_test(struct runner *r);

void runner_run(struct runner *r);

/* Each of n figures becomes that of the slowest rank. */
void of_slowest(MPI_Comm comm, double *figures, int n);

/* Seconds per run, of the slowest rank. */
double runner_sample(struct runner *r, int calls);

/* As many runs as last so many seconds, from 1 to 2000; the same on all ranks. */
int runner_calibrate(struct runner *r, double seconds);

struct quartiles {
    double median, low, high;
};

/* Of n samples, which are put in order. */
struct quartiles quartiles_of(double *samples, int n);

#endif
