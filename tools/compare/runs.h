/* SPDX-License-Identifier: MIT */
/* The runs that nbcrun --compare has made: files that libnbcprofile.so has written. */
#ifndef NBC_COMPARE_RUNS_H
#define NBC_COMPARE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

/* How a program was run. */
enum variant { NATIVE, NBCSHIM, THREAD, NVARIANTS };

/* What one rank did at one call site, with one collective, form and size. Times in seconds. */
struct row {
    int rank, kind, size;
    char coll[32], symbol[64], *file;
    unsigned long address;
    double calls, bytes, inside, waiting, flight, arrival;
};

struct run {
    enum variant variant;
    int nranks, nrows;
    double *wall; /* of each rank */
    char **host;
    struct row *rows;
};

/* Reads a file. Returns false after a message on standard error. Nothing is freed: the program ends
 * soon. */
bool run_read(struct run *run, enum variant variant, const char *file);

#endif
