/* SPDX-License-Identifier: MIT */
/* The functions of MPI twice in one process: as the program finds them (the shim), and as the MPI
 * library defines them, looked up by the handle of that library. */
#ifndef NBC_BENCH_NATIVE_H
#define NBC_BENCH_NATIVE_H

#include "config.h"
#include "nbcshim.h"

struct calls {
#define FN(name) __typeof__(MPI_##name) *name;
#include "native.def"
#undef FN
};

extern struct calls shim, native;

/* MPI_STATUSES_IGNORE. MPICH's is an array of no elements for gcc, which warns of it. */
extern MPI_Status *volatile no_statuses;

/* Sets both. Functions that the MPI lacks are NULL in `native`. Returns the path of the MPI
 * library, or NULL if it was not found. */
const char *calls_load(void);

#endif
