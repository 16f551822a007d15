/* SPDX-License-Identifier: MIT */
/* The request object: one collective operation, nonblocking or persistent. A nonblocking operation
 * is a persistent operation that is started once: one object, one path.
 *
 * The handle is a request of the MPI below, a persistent receive that is never started. Conversions
 * to Fortran, tools, and MPI calls that nbcshim does not wrap therefore accept it. Handles and
 * objects are created once and recycled in pairs; a table finds the object of a handle.
 *
 * Under the lock of lock.h, except nbc_user_requests, which may be read without it, and
 * nbc_request_is_own. Local. */
#ifndef NBC_REQUEST_H
#define NBC_REQUEST_H

#include "comm/context.h"
#include "base/in_mpi.h"
#include "base/lock.h"
#include "op/plan.h"
#include "op/run.h"

#include "select.h"

enum nbc_state {
    NBC_IDLE,     /* in the pool */
    NBC_INACTIVE, /* persistent: not started, or complete and reported to the program */
    NBC_ACTIVE,   /* started, or deferred until its tag is free */
    NBC_COMPLETE  /* complete, not yet reported to the program */
};

/* Two cache lines, of which completion touches only the first: with tens of thousands of
 * outstanding operations, each access goes to main memory. */
struct nbc_request {
    _Alignas(64) MPI_Request handle;
    uint8_t state; /* enum nbc_state */
    uint8_t coll;  /* enum nbc_coll */
    bool seen; /* a call has seen it at `place`: it is in a list while it is complete (ready.c) */
    bool persistent : 1;
    bool blocking : 1;          /* else nonblocking, unless it is persistent */
    bool lateness_reported : 1; /* NBCSHIM_TIMEOUT has reported it */
    bool internal : 1;          /* of nbcshim, not of the program */
    bool claimed : 1;           /* inactive, and MPI_Startall is about to start it */
    uint8_t device : 2;         /* enum nbc_device_use, of a persistent one: from its info */
    int error;                  /* result of a complete operation */
    int tag;                    /* a persistent one holds it; −1: not made completely */
    uint32_t place;             /* the address, see place_of in ready.c */
    struct nbc_context *context;
    struct nbc_plan *plan;             /* from which it was created, or NULL */
    struct nbc_run *run;               /* while started; always if persistent or without a plan */
    struct nbc_request *older, *newer; /* pending operations of the queue, by seq; if complete, */
                                       /* those of the list, by completion */

    int64_t seq; /* number of the call in its queue, unless persistent */
    const void *send, *recv;
    const struct nbc_alg *alg; /* NULL: not by an algorithm of the table */
    struct nbc_start_condition
        *start_condition;    /* must be over before the operation starts, or NULL */
    struct nbc_moment began; /* if nbc_timing_on: its start */
};

/* A start condition: something that must be over before an operation starts. Each kind begins with
 * this struct. */
struct nbc_start_condition {
    struct nbc_request *request; /* the operation on which it depends */
    /* Returns whether the start condition is over; then it no longer exists, and *error is its
     * result. To be called only for the oldest deferred operation of a communicator. */
    bool (*over)(struct nbc_start_condition *self, int *error);
};

/* The state of a request that has been seen changes. */
void nbc_ready_change(struct nbc_request *r, enum nbc_state state);

/* Changes the state; no other function does. Valid transitions: IDLE to INACTIVE; INACTIVE to
 * ACTIVE, to COMPLETE (its start failed) or to IDLE; ACTIVE to COMPLETE; COMPLETE to IDLE, or to
 * INACTIVE if persistent. A request that becomes COMPLETE is not in its queue any longer. */
static inline void nbc_request_set_state(struct nbc_request *r, enum nbc_state state)
{
    nbc_assert(r->state == NBC_IDLE     ? state == NBC_INACTIVE
               : r->state == NBC_ACTIVE ? state == NBC_COMPLETE
               : r->state == NBC_COMPLETE
                   ? state == NBC_IDLE || (state == NBC_INACTIVE && r->persistent)
                   : state != NBC_INACTIVE);
    if (__builtin_expect(r->seen, 0))
        nbc_ready_change(r, state);
    r->state = (uint8_t)state;
}

/* The number of requests that the program has, active or not. Every wrapped call reads it to find
 * out whether nbcshim may have to act at all. Calls that wait must also act if another thread may
 * start an operation meanwhile: then NBC_WAITS_POLL is added. */
enum { NBC_WAITS_POLL = 1 << 30 };
extern NBC_HIDDEN int nbc_user_requests;

static inline bool nbc_any_user_requests(void)
{
    int n = __atomic_load_n(&nbc_user_requests, __ATOMIC_RELAXED);
    return __builtin_expect((n & (NBC_WAITS_POLL - 1)) != 0, 0);
}

static inline bool nbc_waits_may_poll(void)
{
    return __builtin_expect(__atomic_load_n(&nbc_user_requests, __ATOMIC_RELAXED) != 0, 0);
}

/* Says whether calls that wait must always act. Under the lock, or before a second thread can enter
 * nbcshim. */
void nbc_request_let_waits_poll(bool poll);

/* As nbc_shape_bytes. */
static inline int64_t nbc_request_bytes(const struct nbc_request *r)
{
    return r->plan ? r->plan->bytes : r->run->bytes;
}

/* Prefetches both cache lines of a request that has not been used for long. */
static inline void nbc_request_prefetch(const struct nbc_request *r)
{
    __builtin_prefetch(&r->state, 1);
    __builtin_prefetch(&r->seq, 1);
}

/* The object of a handle, NULL if the handle is not one of nbcshim's. Most calls are for the
 * request that was made or found last. */
extern NBC_HIDDEN struct nbc_request *nbc_request_recent; /* never NULL */
struct nbc_request *nbc_request_find_other(MPI_Request handle);

static inline struct nbc_request *nbc_request_find(MPI_Request handle)
{
    nbc_assert_locked();
    struct nbc_request *r = nbc_request_recent;
    if (__builtin_expect(r->handle != handle, 0))
        return nbc_request_find_other(handle);
    return r->state != NBC_IDLE ? r : NULL;
}

/* Whether a handle is one of nbcshim's. Without the lock, for a thread inside the MPI below: the
 * holder of the lock may wait for one of the MPI. */
bool nbc_request_is_own(MPI_Request handle);

/* Takes a request from the pool and makes it inactive, neither persistent nor numbered. Until it is
 * freed it holds what the operation needs: context, plan, datatypes, operator. It takes a reference
 * to the plan, from which it takes its run later, or without a plan takes over the run, also on
 * failure. alg: NULL: not by an algorithm of the table. Returns NULL without both, and if memory or
 * the requests of the MPI ran out. */
struct nbc_request *nbc_request_new(struct nbc_context *c, const struct nbc_call *call,
                                    const struct nbc_alg *alg, struct nbc_plan *plan,
                                    struct nbc_run *run);

/* The queue of an operation that is not persistent. */
static inline struct nbc_queue *nbc_request_queue(const struct nbc_request *r)
{
    return r->blocking ? &r->context->blocking : &r->context->queue;
}

/* The tag of the operation with this number. */
static inline int nbc_queue_tag(const struct nbc_queue *queue, int64_t seq)
{
    return queue->first_tag + (int)(seq & (queue->ring - 1));
}

/* Makes a request the operation with this number in a queue of its communicator. The number
 * determines its tag. */
static inline void nbc_request_number(struct nbc_request *r, const struct nbc_queue *queue,
                                      int64_t seq)
{
    r->blocking = queue == &r->context->blocking;
    r->seq = seq;
    r->tag = nbc_queue_tag(queue, seq);
}

/* The number of the operation for people, from 1 on: of the call, or, among persistent operations,
 * of its tag. The same on all ranks. */
int64_t nbc_request_call_number(const struct nbc_request *r);

/* Releases what the request holds, its run and its tag, and returns the request to the pool. The
 * request is complete or inactive, or was never started. It may not be used afterwards. */
void nbc_request_free(struct nbc_request *r);

/* Takes a run for the request if it has none. Returns false without memory. */
static inline bool nbc_request_ready(struct nbc_request *r)
{
    if (!r->run)
        r->run = nbc_plan_take(r->plan);
    return r->run;
}

/* Gives an operation that has not started a run of its own, and the algorithm of that, instead of
 * its plan or its run. */
void nbc_request_replace(struct nbc_request *r, struct nbc_run *run, const struct nbc_alg *alg);

/* Returns the run of a request to its plan, or frees it. */
static inline void nbc_request_drop_run(struct nbc_request *r)
{
    if (r->plan)
        nbc_plan_give(r->plan, r->run);
    else
        nbc_run_free(r->run);
    r->run = NULL;
}

/* Excludes a request of nbcshim's own from nbc_user_requests, or, before it is freed, includes it
 * again. */
void nbc_request_hide(bool hide);

/* Frees all idle requests, at finalize. */
void nbc_request_cleanup(void);

/* The requests in an array of the program. Those of nbcshim that are inactive count as null. */
struct nbc_own {
    int n;                      /* number of requests of nbcshim that are active or complete */
    int others;                 /* number of the requests that are not nbcshim's */
    int ready;                  /* the first place of a complete one; the length if there is none */
    int pending;                /* the same for an active one */
    struct nbc_request *active; /* that one; or NULL */
};

/* Looks through an array. If `remember`, each request of nbcshim is from now on at its place here
 * (ready.c). Under the lock. */
void nbc_own_find(struct nbc_own *own, int n, const MPI_Request *requests, bool remember);

/* --- ready.c: complete requests in an array, found without looking through it --- */

/* A call has found the request at this place. */
void nbc_ready_see(struct nbc_request *r, const MPI_Request *place);

/* A complete request in an array, by its place; NULL if none is known. turn: which part of the
 * array comes first. */
struct nbc_request *nbc_ready_find(const MPI_Request *requests, int n, unsigned turn, int *place);

/* Empties the lists, at finalize. */
void nbc_ready_clear(void);

#endif
