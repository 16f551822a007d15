/* SPDX-License-Identifier: MIT */
/* libnbcprofile.so, which nbcrun --compare preloads before nbcshim, or before the MPI alone: it
 * passes all calls on, and times the collectives. So the same instrument measures both.
 *
 * The record: for each call site, collective, form and size, how often it was called and for how
 * long the program was in MPI for it. Any thread may call; a mutex guards the record. Local. */
#ifndef NBC_PROFILE_RECORD_H
#define NBC_PROFILE_RECORD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/stats.h"
#include "base/table.h"
#include "op/call.h"

/* --- python.c --- */

struct nbc_python;

/* Called in MPI_Init: whether the program is Python, 3.9 or later. Local. */
void nbc_python_setup(void);

/* The lines of this thread, the innermost first; equal ones are the same object. NULL: the thread
 * runs no Python. Takes the interpreter's lock (GIL), so that no lock of this library may be held.
 */
const struct nbc_python *nbc_python_find(void);

/* Writes each line as "\tLINE :FUNCTION FILE", the number in hexadecimal digits; of NULL nothing.
 */
void nbc_python_write(FILE *out, const struct nbc_python *lines);

/* --- stack.c --- */

enum { NBC_STACK_DEPTH = 8 };

struct nbc_stack {
    int n;
    const void *frame[NBC_STACK_DEPTH];  /* to which the calls return, the innermost first */
    int32_t offset[NBC_STACK_DEPTH];     /* of the return address from `place`, in bytes */
    const char *place;                   /* of the first one */
    const struct nbc_stack *same, *next; /* the first stack with the same frames; in a chain */
};

/* The stack of a call that returns to `caller`; this address lies at `place`. Equal stacks are the
 * same object. NULL without memory. */
const struct nbc_stack *nbc_stack_find(const void *caller, const void *place);

/* --- record.c --- */

/* Equal for calls that are counted together. */
struct nbc_site_key {
    const struct nbc_stack *stack;
    const struct nbc_python *python;
    int coll, kind; /* enum nbc_coll, enum nbc_kind */
    int64_t size;   /* −1: unknown, 0: no bytes, n: from 2^(n − 1) to 2^n − 1 */
};

/* What a program does at one place. Of persistent operations the starts count. */
struct nbc_site {
    struct nbc_site_key key;
    struct nbc_stats sums;
    int64_t starting, waiting; /* ns in the calls that start or block, and that complete */
    double arrival;            /* sum of the times at which the calls began */
    bool foreign;              /* calls of the MPI itself, which are not recorded */
    UT_hash_handle hh;
};

/* A call that is under way, or its operation. */
struct nbc_span {
    struct nbc_site *site; /* NULL: not recorded */
    struct nbc_moment began;
    int64_t bytes;
};

/* A handle that has been a collective's, and the operation that it has now, unless that is dropped:
 * handles are used again, so that they stay in the table. */
struct nbc_pending {
    MPI_Request request;
    struct nbc_span call;
    bool persistent, active;
    UT_hash_handle hh;
};

/* The address to which the call of the program returns, and where it lies: set by each exported
 * function. */
extern NBC_PER_THREAD const void *nbc_profile_caller, *nbc_profile_place;

/* Whether a call is not the program's own: MPI is not initialized, or the call comes from within
 * another one. */
bool nbc_profile_skips(void);

/* Around a call of the MPI's function. `request` is what it has written, NULL if it blocks. */
void nbc_profile_begin(struct nbc_span *t, const struct nbc_call *call);
void nbc_profile_end(struct nbc_span *t, const MPI_Request *request, int error);

/* Whether a request may be a collective's. */
bool nbc_profile_any_pending(void);

/* The operation of a request, NULL if it is not a collective's. */
struct nbc_pending *nbc_profile_find(MPI_Request request);
void nbc_profile_drop(struct nbc_pending *p);

/* A persistent operation has been started by a call that began then, and took so long for it. */
void nbc_profile_started(struct nbc_pending *p, struct nbc_moment began, int64_t took);

/* A call that completes, or tries to, took this time for the operation; `done` with it at `now`:
 * then it is dropped unless it is persistent. */
void nbc_profile_waited(struct nbc_pending *p, int64_t took, bool done, struct nbc_moment now);

/* Called after MPI_Init: the record begins. Called before MPI_Finalize: rank 0 writes the record of
 * all ranks to the file that NBCPROFILE names. Collective. */
void nbc_profile_open(void);
void nbc_profile_close(void);

#endif
