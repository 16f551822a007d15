/* SPDX-License-Identifier: MIT */
/* The same calls twice in one process: as the program finds them (the shim), and in the MPI library
 * itself, reached through its own handle. */
#ifndef NBC_BENCH_NATIVE_H
#define NBC_BENCH_NATIVE_H

#include "nbcshim.h"

struct calls {
#define FN(name) __typeof__(MPI_##name) *name;
#include "native.def"
#undef FN
};

extern struct calls shim, native;

/* Fills both. Functions that the MPI lacks are NULL in native. Returns the path of the MPI library,
 * NULL if it was not found. */
const char *calls_load(void);

#endif
