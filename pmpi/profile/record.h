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

#include "op/call.h"

/* What a program does at one place. Times are in nanoseconds. */
struct nbc_site {
    const void *address; /* to which the call returns */
    enum nbc_coll coll;
    enum nbc_kind kind;
    int size;        /* −1: unknown, 0: no bytes, n: from 2^(n − 1) to 2^n − 1 */
    bool foreign;    /* calls of the MPI itself, which are not recorded */
    int64_t calls;   /* operations: of persistent ones, starts */
    int64_t bytes;   /* of all calls */
    int64_t inside;  /* in the calls that start or block */
    int64_t waiting; /* in the calls that complete */
    int64_t flight;  /* from start to completion, unless it blocks */
    double arrival;  /* sum of the times at which the calls began */
};

/* An operation of a request. */
struct nbc_pending {
    struct nbc_site *site;
    int64_t began, bytes;
    bool persistent, active;
};

/* A call that is under way. */
struct nbc_timed {
    struct nbc_site *site; /* NULL: not recorded */
    int64_t began, bytes;
};

/* The address to which the call of the program returns: set by each exported function. */
extern _Thread_local const void *nbc_profile_caller;

/* Whether a call is not the program's own: MPI is not initialized, or the call comes from within
 * another one. */
bool nbc_profile_skips(void);

/* Around a call of the MPI's function. `request` is what it has written, NULL if it blocks. */
void nbc_profile_begin(struct nbc_timed *t, const struct nbc_call *call, enum nbc_kind kind);
void nbc_profile_end(struct nbc_timed *t, const MPI_Request *request, int error);

/* Whether a request may be a collective's. */
bool nbc_profile_any_pending(void);

/* The operation of a request, NULL if it is not a collective's. Valid until it is dropped. */
struct nbc_pending *nbc_profile_find(MPI_Request request);
void nbc_profile_drop(MPI_Request request);

/* A persistent operation has been started by a call that began then. */
void nbc_profile_started(struct nbc_pending *p, int64_t began, int64_t now);

/* A call that completes, or tries to, took this time for the operation; `done` with it at `now`. */
void nbc_profile_waited(struct nbc_pending *p, int64_t took, bool done, int64_t now);

/* Nested calls are not recorded between these two. */
void nbc_profile_enter(void);
void nbc_profile_leave(void);

int64_t nbc_profile_now(void);

/* Called after MPI_Init: the record begins. Called before MPI_Finalize: rank 0 writes the record of
 * all ranks to the file that NBCPROFILE names. Collective. */
void nbc_profile_open(void);
void nbc_profile_close(void);

#endif
