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

#include "comm/context.h"
#include "base/lock.h"
#include "op/run.h"

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
    bool drains; /* receives what a failed operation still owes; nobody waits for it (drain_op.h) */
    bool lateness_reported; /* by NBCSHIM_TIMEOUT */
    uint8_t coll;           /* enum nbc_coll */
    struct nbc_context *context;
    struct nbc_plan *plan; /* by which it was made, or NULL */
    struct nbc_run *run;   /* while under way; always, when persistent or without a plan */
    struct nbc_request *older, *newer; /* pending nonblocking ones of the context, by seq */

    int64_t seq; /* nonblocking: number of the call on its communicator */
    const void *send, *recv;
    const struct nbc_alg *alg;             /* NULL: not by an algorithm of the table */
    struct nbc_prerequisite *prerequisite; /* what must be over before it starts, or NULL */
    int64_t started;                       /* nbc_now, where nbc_timing_on */
    int64_t waited_before;                 /* nbc_waited at its start, where nbc_timing_on */
    int32_t trace_id;                      /* where nbc_tracing */
};

/* What must be over before an operation starts; whoever makes one puts this struct in front of his
 * own. */
struct nbc_prerequisite {
    struct nbc_request *request; /* the operation that has to progress for it */
    /* Whether it is over. Then it is gone, and *error is its result. To be called for the oldest
     * deferred operation of a communicator only. */
    bool (*over)(struct nbc_prerequisite *self, int *error);
};

/* The one place that changes the state. INACTIVE may become ACTIVE, COMPLETE (it failed at its
 * start) or IDLE; ACTIVE COMPLETE, or INACTIVE again (MPI_Startall that fails); COMPLETE INACTIVE,
 * when persistent, or IDLE; IDLE INACTIVE. */
static inline void nbc_request_set_state(struct nbc_request *r, enum nbc_state state)
{
    nbc_assert(r->state == NBC_IDLE     ? state == NBC_INACTIVE
               : r->state == NBC_ACTIVE ? state == NBC_COMPLETE || state == NBC_INACTIVE
               : r->state == NBC_COMPLETE
                   ? state == NBC_IDLE || (state == NBC_INACTIVE && r->persistent)
                   : state != NBC_INACTIVE);
    r->state = state;
}

/* Requests in the hands of the program, active or not; read by each wrapped call to tell whether
 * it can concern us at all. */
extern int nbc_user_requests;

static inline bool nbc_any_user_requests(void)
{
    return __builtin_expect(__atomic_load_n(&nbc_user_requests, __ATOMIC_RELAXED) != 0, 0);
}

/* Its two lines: when its turn comes after a long time they have left the cache. */
static inline void nbc_request_prefetch(const struct nbc_request *r)
{
    __builtin_prefetch(&r->state, 1);
    __builtin_prefetch(&r->seq, 1);
}

/* The object of a handle, NULL when it is none of ours. */
struct nbc_request *nbc_request_find(MPI_Request handle);

/* What an operation is made of. */
struct nbc_operation {
    enum nbc_coll coll;
    const struct nbc_alg *alg; /* NULL: not by an algorithm of the table */
    const void *send, *recv;
    struct nbc_plan *plan; /* by which it is made; NULL: it has a run */
    struct nbc_run *run;   /* taken over, also on failure; NULL: the plan makes one in time */
    bool drains;
};

/* Makes an inactive request from the pool, neither persistent nor numbered. It keeps what the
 * operation needs until it is freed: context, types, operator. Returns MPI_SUCCESS, or
 * MPI_ERR_NO_MEM when memory (or the MPI's requests) ran out. */
int nbc_request_new(struct nbc_context *c, const struct nbc_operation *op,
                    struct nbc_request **out);

/* Makes it the nonblocking operation with that number on its communicator, which tells its tag. */
void nbc_request_number(struct nbc_request *r, int64_t seq);

/* Makes it persistent, with a tag that it gives back when it is freed. */
void nbc_request_make_persistent(struct nbc_request *r, int tag);

/* Gives up what the operation keeps, its run and its tag, and goes to the pool. It is complete or
 * inactive, or was never started. Not to be touched after. */
void nbc_request_free(struct nbc_request *r);

/* Gives it a run if it has none; false when memory ran out. */
bool nbc_request_ready(struct nbc_request *r);

/* Its run is over and goes back to the plan, or ends. */
void nbc_request_drop_run(struct nbc_request *r);

/* Takes a request that the program does not know of out of nbc_user_requests, or, before its end,
 * puts it back. */
void nbc_request_hide(bool hide);

/* Frees all idle ones, at finalize. */
void nbc_request_cleanup(void);

#endif
