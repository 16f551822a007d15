/* SPDX-License-Identifier: MIT */
/* The runs that nbcrun --compare has made: files that libnbcprofile.so has written. */
#ifndef NBC_COMPARE_RUNS_H
#define NBC_COMPARE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

enum { MOST_FRAMES = 12 };

/* How a program was run. */
enum variant { NATIVE, NBCSHIM, THREAD, NVARIANTS };

/* A call that led to a collective, the collective's own call first; lines of Python come last. */
struct frame {
    unsigned long address; /* to which it returns, in the file; a line of Python: its number */
    const char *symbol;    /* "?": none that the dynamic linker knows; ":function" of Python */
    const char *file;
};

/* What one rank did at one call site, with one collective, form and size. Times in seconds. */
struct row {
    int rank, kind, size;
    char coll[32];
    struct frame frames[MOST_FRAMES];
    int nframes;
    char *text; /* that has their names */
    double calls, bytes, inside, waiting, flight, shown, arrival;
};

struct run {
    enum variant variant;
    int nranks, nrows;
    bool inactive; /* nbcshim did nothing */
    double *wall;  /* of each rank */
    char **host;
    struct row *rows;
};

bool is_python(const struct frame *f);

/* Reads a file. Returns false after a message on standard error. Nothing is freed: the program ends
 * soon. */
bool run_read(struct run *run, enum variant variant, const char *file);

#endif
