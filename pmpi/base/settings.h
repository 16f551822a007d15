/* SPDX-License-Identifier: MIT */
/* The NBCSHIM_… variables. Read once at init, read only afterwards. */
#ifndef NBC_SETTINGS_H
#define NBC_SETTINGS_H

#include <stdio.h>

#include "select.h"

enum nbc_mode { NBC_MODE_AUTO, NBC_MODE_ON, NBC_MODE_OFF };

enum nbc_blocking { NBC_BLOCKING_OWN, NBC_BLOCKING_NATIVE };

enum nbc_progress_kind { NBC_PROGRESS_CALLS, NBC_PROGRESS_THREAD };

struct nbc_settings {
    enum nbc_mode mode;                          /* NBCSHIM */
    enum nbc_blocking blocking;                  /* NBCSHIM_BLOCKING */
    const struct nbc_alg *algorithm[NBC_NCOLLS]; /* NBCSHIM_ALGORITHM_… */
    int64_t segment_size;                        /* NBCSHIM_SEGMENT_SIZE, 0: none */
    int64_t tag_ub;                              /* NBCSHIM_TAG_UB, 0: none */
    enum nbc_progress_kind progress;             /* NBCSHIM_PROGRESS */
    int64_t progress_cpu;                        /* NBCSHIM_PROGRESS_CPU, −1: none */
    bool dynamic;                                /* NBCSHIM_DYNAMIC */
    int64_t timeout;                             /* NBCSHIM_TIMEOUT in seconds, 0: none */
    int64_t nodes;                               /* NBCSHIM_NODES, 0: ask the MPI */
    bool check;                                  /* NBCSHIM_CHECK */
    const char *stats;                           /* NBCSHIM_STATS: "1", a file, or NULL */
    const char *trace;                           /* NBCSHIM_TRACE: a file, or NULL */
    int64_t trace_events;                        /* NBCSHIM_TRACE_EVENTS */
    const char *tuning;                          /* NBCSHIM_TUNING, NULL: none */
    bool spawned;                                /* another job has started this one */
};

extern struct nbc_settings nbc_settings;

/* Reads the environment. Variables that are unknown or malformed are ignored, with one line each on
 * standard error where warn is true. */
void nbc_settings_read(bool warn);

/* Opens the file that a variable names, for writing. A job that another one has started has the
 * same variables, and a file of its own: with the number of the process behind the name. */
FILE *nbc_settings_open_file(const char *name);

/* Differs, as good as always, where ranks would do the same call in different ways. */
int nbc_settings_hash(void);

/* A number of bytes above 0, with K, M or G for powers of 1024. */
bool nbc_parse_size(const char *value, int64_t *size);

#endif
