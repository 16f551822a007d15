/* SPDX-License-Identifier: MIT */
/* A variant of an operation that is measured, and its samples. */
#ifndef NBC_BENCH_RUNNER_H
#define NBC_BENCH_RUNNER_H

#include <signal.h>

#include "cases.h"

enum { MAX_SAMPLES = 1001 };

/* The variants of a collective. */
enum variant { SHIM, NATIVE, ROUNDS, SHIM_PERSISTENT, NATIVE_PERSISTENT, NVARIANTS };

extern const char *const variant_names[NVARIANTS];

struct runner {
    enum variant variant;
    const struct operands *o;
    const struct calls *calls;
    MPI_Request request; /* persistent: always; nonblocking: while the operation is active */
    struct rounds *rounds;
    double sample[MAX_SAMPLES];
};

bool variant_is_persistent(enum variant v);

/* Makes a runner; a nonblocking operation runs once. Collective: returns false on all ranks if any
 * rank cannot make it. Free it in either case; a zeroed runner may be freed too. */
bool runner_make(struct runner *r, enum variant v, const struct operands *o);
void runner_free(struct runner *r);

/* Not for ROUNDS, whose start and completion are one call. */
void runner_start(struct runner *r);
void runner_wait(struct runner *r);
bool runner_test(struct runner *r);

/* How many runs have ended, of all runners: for a signal handler that tells a slow job from one
 * that hangs. */
extern volatile sig_atomic_t runner_runs;

/* Whether it holds on all ranks. Collective. */
bool on_all_ranks(MPI_Comm comm, bool mine);

/* Replaces each of n values by the maximum over all ranks. */
void of_slowest(MPI_Comm comm, double *figures, int n);

/* Allreduces of the MPI, of 32 KiB, for 0.3 s, or less if fewer than ENOUGH samples are to follow;
 * to be called before the first one. If there are more ranks than processors, the first 0.2 s of
 * messages on MPICH take up to ten times as long as later ones, in the calls of the MPI too;
 * barriers do not end that. Collective. */
enum { ENOUGH = 15 };
void runner_warm_up(MPI_Comm comm, int samples);

/* Returns the seconds per run, of the slowest rank. */
double runner_sample(struct runner *r, int calls);

/* Returns the number of runs that take this time, from 1 to 2000; the same on all ranks. */
int runner_calibrate(struct runner *r, double seconds);

struct quartiles {
    double median, low, high;
};

/* Returns the quartiles of n samples, which it sorts. */
struct quartiles quartiles_of(double *samples, int n);

#endif
