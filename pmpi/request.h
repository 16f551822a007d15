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
#include "next.h"
#include "types.h"

#include "exec.h"
#include "select.h"

enum nbc_state {
    NBC_IDLE,     /* in the pool */
    NBC_INACTIVE, /* persistent, not started or completed and told */
    NBC_ACTIVE,   /* under way, or deferred until its tag is free */
    NBC_COMPLETE  /* done, not yet told to the program */
};

struct nbc_request {
    MPI_Request handle;
    enum nbc_state state;
    bool persistent;
    bool orphan; /* receives what a failed operation still owes; nobody waits for it (orphan.h) */
    int error;   /* of a complete operation */

    /* For what is no collective of ours (idup.c): moves it on instead of exec, true when it is
     * complete; error is set then. Under the lock, which it may let go meanwhile. */
    bool (*poll)(struct nbc_request *r);

    /* What the transport wants to know. */
    MPI_Comm comm; /* the hidden one */
    int tag; /* −1: a failed persistent operation has lost it to its orphan */
    MPI_Op op;
    nbc_kernel *kernel; /* instead of op, where there is one */
    struct nbc_datatype **types; /* by slot; held */
    int ntypes;
    int cursor; /* of polls over many messages */

    struct nbc_check *check; /* that must pass before it starts, or NULL */

    struct nbc_exec exec;
    struct nbc_sched *sched; /* one owner of it */
    struct nbc_plan *plan;   /* whose schedule and layout it keeps while idle; or NULL */
    struct nbc_context *context;
    struct nbc_operator *reducer; /* held, or NULL */
    enum nbc_coll coll;
    const struct nbc_alg *alg; /* NULL: not by an algorithm of the table */
    int64_t started;           /* nbc_now, where nbc_stamped */
    bool told;                 /* that it is late */
    int64_t waited_before;     /* nbc_waited at its start, where nbc_stamped */
    int32_t trace_id, last_peer; /* for trace.c */
    int64_t seq; /* nonblocking: number of the call on its communicator */

    void *memory; /* working memory of exec, types, temporary buffer; grows, is recycled */
    size_t room;

    struct nbc_request *prev, *next; /* active operations of the process (progress.c); the pool */
    struct nbc_request *older, *newer; /* pending nonblocking ones of the context, by seq */
    UT_hash_handle hh;
};

/* Requests in the hands of the program, active or not; read by each wrapped call to tell whether
 * it can concern us at all. */
extern int nbc_live;

static inline bool nbc_any_live(void)
{
    return __builtin_expect(__atomic_load_n(&nbc_live, __ATOMIC_RELAXED) != 0, 0);
}

/* The object of a handle, NULL when it is none of ours. */
struct nbc_request *nbc_request_find(MPI_Request handle);

/* An object from the pool, or a new one; NULL when memory (or the MPI's requests) ran out. */
struct nbc_request *nbc_request_new(void);

/* Working memory of at least `size` bytes in r->memory, aligned to 64; false when there is none. */
bool nbc_request_reserve(struct nbc_request *r, size_t size);

/* Gives up what the operation holds (types, operator, context, tag). It goes back to its plan, as it
 * is, or to the pool. It is complete or inactive, or was never started. Not to be touched after. */
void nbc_request_free(struct nbc_request *r);

/* Takes a request that the program does not know of out of nbc_live, or, before its end, puts it
 * back. */
void nbc_request_hide(bool hide);

/* For plans: an idle request comes to life, or loses its schedule and goes to the pool. */
void nbc_request_revive(struct nbc_request *r);
void nbc_request_strip(struct nbc_request *r);

/* Frees all idle ones, at finalize. */
void nbc_request_cleanup(void);

#endif
