/* SPDX-License-Identifier: MIT */
/* nbcinfo --selftest: whether nbcshim gives right results on the ranks of a site, and how fast. An
 * MPI program, run by the site's launcher, which takes a minute at most. */
#ifndef NBC_TOOLS_SELFTEST_H
#define NBC_TOOLS_SELFTEST_H

#include <mpi.h>

#include <stdbool.h>

#include "coll.h"
#include "emit.h"

struct selftest_options {
    bool threads; /* two per rank, with MPI_THREAD_MULTIPLE */
    int seconds;  /* how long it takes at most, unless a call hangs; 0: the default */
};

/* Initializes MPI, tests, and writes the results at rank 0 as text or JSON, after what `about`
 * writes. Returns the exit status, 0 if all results are right. */
int selftest(int argc, char **argv, struct emit *e, void (*about)(struct emit *e),
             const struct selftest_options *options);

/* Whether there is time left until `seconds` after the start, as rank 0 of the communicator sees
 * it. */
bool selftest_has_time(MPI_Comm comm, double seconds);

/* --- right.c: results --- */

enum { KINDS_OF_CALL = 3 }; /* nonblocking, persistent, between groups */

struct right {
    int calls[KINDS_OF_CALL]; /* operations that completed */
    int large;                /* of these with MPI_Count */
    int rounds;               /* in which each collective was called; 0: time ran out before */
    int failures[NBC_NCOLLS]; /* of all ranks together */
};

extern const char *const right_kinds[KINDS_OF_CALL];

/* Calls every collective in every kind on MPI_COMM_WORLD, on topologies and between two groups,
 * with larger and larger data, again until `seconds` have passed; once at least, if `at_most`
 * allows. Results at all ranks. Collective. */
struct right right_run(bool threads, double seconds, double at_most);

/* Initializes MPI. Returns whether it gives as many threads as are needed. */
bool right_init(int *argc, char ***argv, bool threads);

/* --- times.c --- */

/* Measures until `seconds` have passed, and emits times beside the MPI's own at rank 0. Sets
 * slow[coll] to 1 if a selected algorithm takes twice as long as another one. Returns how many
 * measurements were left out. */
int times_run(struct emit *e, double seconds, int slow[NBC_NCOLLS]);

#endif
