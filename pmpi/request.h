/* SPDX-License-Identifier: MIT */
/* The request object: one collective operation, nonblocking or persistent. Nonblocking is
 * persistent started once: one object, one path.
 *
 * Its handle is a real request of the MPI below, a persistent receive from MPI_PROC_NULL that is
 * never started; so conversions to Fortran, other tools and calls that we do not wrap survive it.
 * Handles and objects are made once, recycled in pairs, and found by a table from handle to object.
 *
 * All under the lock of lock.h, but for the two counters, which may be read without it. */
#ifndef NBC_REQUEST_H
#define NBC_REQUEST_H

#include "context.h"
#include "run.h"

#include "select.h"

enum nbc_state {
    NBC_IDLE,     /* in the pool */
    NBC_INACTIVE, /* persistent, not started or completed and told */
    NBC_ACTIVE,   /* under way, or deferred until its tag is free */
    NBC_COMPLETE  /* done, not yet told to the program */
};

/* Two lines of cache, of which completion touches the first only: with tens of thousands of
 * operations outstanding, each is in main memory. */
struct nbc_request {
    _Alignas(64) MPI_Request handle;
    enum nbc_state state;
    int error; /* of a complete operation */
    int tag;   /* −1: a failed persistent operation has lost it to its orphan */
    bool persistent;
    bool orphan;  /* receives what a failed operation still owes; nobody waits for it (orphan.h) */
    bool told;    /* that it is late */
    uint8_t coll; /* enum nbc_coll */
    struct nbc_context *context;
    struct nbc_plan *plan; /* by which it was made, or NULL */
    struct nbc_run *run;   /* while under way; always, when persistent or without a plan */
    struct nbc_request *older, *newer; /* pending nonblocking ones of the context, by seq */

    int64_t seq; /* nonblocking: number of the call on its communicator */
    const void *send, *recv;
    const struct nbc_alg *alg;   /* NULL: not by an algorithm of the table */
    struct nbc_check *check;     /* that must pass before it starts, or NULL */
    int64_t started;             /* nbc_now, where nbc_timing_on */
    int64_t waited_before;       /* nbc_waited at its start, where nbc_timing_on */
    int32_t trace_id, last_peer; /* for trace.c */
};

/* Requests in the hands of the program, active or not; read by each wrapped call to tell whether
 * it can concern us at all. */
extern int nbc_live;

static inline bool nbc_any_live(void)
{
    return __builtin_expect(__atomic_load_n(&nbc_live, __ATOMIC_RELAXED) != 0, 0);
}

/* Its two lines: when its turn comes after a long time they have left the cache. */
static inline void nbc_request_prefetch(const struct nbc_request *r)
{
    __builtin_prefetch(&r->state, 1);
    __builtin_prefetch(&r->seq, 1);
}

/* The object of a handle, NULL when it is none of ours. */
struct nbc_request *nbc_request_find(MPI_Request handle);

/* An object from the pool, or a new one, inactive and empty; NULL when memory (or the MPI's
 * requests) ran out. */
struct nbc_request *nbc_request_new(void);

/* Makes it keep what the operation needs until it is freed: context, types, operator. Its plan, or
 * its run, is set. */
void nbc_request_hold(struct nbc_request *r, struct nbc_context *c);

/* Gives up what the operation keeps, its run and its tag, and goes to the pool. It is complete or
 * inactive, or was never started. Not to be touched after. */
void nbc_request_free(struct nbc_request *r);

/* Gives it a run if it has none; false when memory ran out. */
bool nbc_request_ready(struct nbc_request *r);

/* Its run is over and goes back to the plan, or ends. */
void nbc_request_drop_run(struct nbc_request *r);

/* Takes a request that the program does not know of out of nbc_live, or, before its end, puts it
 * back. */
void nbc_request_hide(bool hide);

/* Frees all idle ones, at finalize. */
void nbc_request_cleanup(void);

#endif
