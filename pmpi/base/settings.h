/* SPDX-License-Identifier: MIT */
/* The NBCSHIM_... environment variables. Read once at init, afterwards only read. */
#ifndef NBC_SETTINGS_H
#define NBC_SETTINGS_H

#include <stdio.h>

#include "select.h"

enum nbc_mode { NBC_MODE_AUTO, NBC_MODE_ON, NBC_MODE_OFF };

/* AUTO only until init, which chooses one of the others. */
enum nbc_blocking { NBC_BLOCKING_AUTO, NBC_BLOCKING_OWN, NBC_BLOCKING_NATIVE };

enum nbc_hook { NBC_HOOK_AUTO, NBC_HOOK_ON, NBC_HOOK_OFF };

/* Whether buffers in the memory of a device are copied to that of the host, or given to the MPI if
 * that takes them. AUTO: as is better for the schedule. */
enum nbc_device_use { NBC_DEVICE_AUTO, NBC_DEVICE_STAGE, NBC_DEVICE_DIRECT, NBC_DEVICE_OFF };

enum nbc_progress_kind { NBC_PROGRESS_CALLS, NBC_PROGRESS_THREAD };

/* NBCSHIM_TEST: what tests need, and users do not (doc/testing.md). */
struct nbc_test_settings {
    int64_t tag_ub;       /* no tags above this one */
    int64_t nodes;        /* each node has so many consecutive ranks; 0: ask the MPI */
    int64_t trace_events; /* that a rank keeps for a trace */
    int64_t same_form;    /* 1: no call has an int count on one rank and an MPI_Count on another */
};

extern const struct nbc_test_settings nbc_test_defaults;

struct nbc_settings {
    enum nbc_mode mode;                          /* NBCSHIM */
    enum nbc_blocking blocking;                  /* NBCSHIM_BLOCKING */
    enum nbc_hook hook;                          /* NBCSHIM_HOOK */
    const struct nbc_alg *algorithm[NBC_NCOLLS]; /* NBCSHIM_ALGORITHM_… */
    enum nbc_device_use device;                  /* NBCSHIM_DEVICE */
    bool level_zero;                             /* NBCSHIM_LEVEL_ZERO */
    int64_t segment_size;                        /* NBCSHIM_SEGMENT_SIZE, 0: not set */
    enum nbc_order order;                        /* NBCSHIM_REDUCTION_ORDER */
    enum nbc_progress_kind progress;             /* NBCSHIM_PROGRESS */
    bool dynamic;                                /* NBCSHIM_DYNAMIC */
    int64_t timeout;                             /* NBCSHIM_TIMEOUT in seconds, 0: not set */
    int64_t init_timeout;                        /* NBCSHIM_INIT_TIMEOUT in seconds, 0: none */
    bool check;                                  /* NBCSHIM_CHECK */
    bool shared_memory;                          /* NBCSHIM_SHARED_MEMORY */
    const char *stats;             /* NBCSHIM_STATS: "1", "verbose", a file, or NULL */
    const char *trace;             /* NBCSHIM_TRACE: a file, or NULL */
    const char *tuning;            /* NBCSHIM_TUNING: a file, or NULL */
    struct nbc_test_settings test; /* NBCSHIM_TEST */
    bool spawned;                  /* this job was spawned by another one */
    bool for_blocking; /* one of them asks for what nbcshim does in blocking collectives */
};

extern struct nbc_settings nbc_settings;

/* Reads the environment. Blanks around a value and the case of letters in words do not matter, and
 * an empty variable is like one that is not set. Unknown and malformed variables are ignored; if
 * `warn`, with one line each on standard error. */
void nbc_settings_read(bool warn);

/* The file that a variable names. A spawned job inherits the variables of the job that spawned it,
 * so each of its processes appends its process number to the name. Failures are reported with one
 * line on standard error.
 *
 * nbc_settings_try_file returns whether the file can be written, which it leaves as it is: for
 * init, before the job has done any work. nbc_settings_open_file opens it for writing and returns
 * NULL on failure; nbc_settings_close_file closes it. */
bool nbc_settings_try_file(const char *variable, const char *name);
FILE *nbc_settings_open_file(const char *variable, const char *name);
void nbc_settings_close_file(FILE *out, const char *variable, const char *name);

/* NBCSHIM_ALGORITHM_ALLREDUCE and its like, in *room; returns it. */
enum { NBC_VARIABLE_LENGTH = 64 };
const char *nbc_algorithm_variable(enum nbc_coll coll, char room[NBC_VARIABLE_LENGTH]);

/* Sets *use, an enum nbc_device_use, if the name is one of it: "stage". Returns whether it is. */
bool nbc_device_by_name(const char *name, void *use);
const char *nbc_device_name(enum nbc_device_use use);

/* Parses a positive number of bytes, with K, M or G for powers of 1024. Returns false, and leaves
 * *size unchanged, if the value is none. */
bool nbc_parse_size(const char *value, int64_t *size);

/* --- the tuning rules ------------------------------------------------------------------------- */

/* Those in force: those of the file that NBCSHIM_TUNING names, followed by the built-in rules. Set
 * at init, before a communicator has a context; afterwards only read. */
extern const struct nbc_rules *nbc_tuning;

/* The file whose rules are in force, NULL if only the built-in ones are. */
extern const char *nbc_tuning_file;

/* Reads the file, if NBCSHIM_TUNING names one. If the file cannot be read or has an invalid line,
 * all of it is ignored; if `warn`, one line on standard error says so. */
void nbc_tuning_read(bool warn);

/* Puts only the built-in rules in force, because the ranks have read different rules. */
void nbc_tuning_drop(void);

#endif
