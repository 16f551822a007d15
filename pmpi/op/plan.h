/* SPDX-License-Identifier: MIT */
/* Plans: a communicator caches the result of setting up a call (checked arguments, datatypes and
 * operator, algorithm, schedule) and finds it again by the arguments. Programs repeat few calls
 * many times. A call that finds its plan, and an idle run of the plan, only sets its buffers and
 * starts. Under the lock. Local.
 *
 * Arrays of counts, displacements and datatypes are compared whole. A plan that depends on a
 * datatype or operator of the program becomes invalid when any such object is freed, because the
 * MPI may use the handle again: nbc_types_generation counts these events.
 *
 * The memory of plans that are not in use is bounded, for the process as a whole: temporary buffers
 * are as large as the program's data, and schedules grow with the number of ranks. */
#ifndef NBC_PLAN_H
#define NBC_PLAN_H

#include "op/bind.h"
#include "op/run.h"

/* What the user asks of a call, by variables and info keys. */
struct nbc_preferences {
    const struct nbc_alg *alg; /* NULL: the tuning rules select */
    int64_t segment;           /* bytes; 0: as selected */
    enum nbc_order order;      /* of reductions */
};

struct nbc_plan {
    /* What the call and the user have asked for. The arrays are copies; a side that is not
     * significant has none. The buffers do not count, but for MPI_IN_PLACE. */
    struct nbc_call call;
    struct nbc_preferences preferences; /* if asks */
    bool asks;                          /* for more than the environment does */
    unsigned in_place;                  /* the set of buffers that are MPI_IN_PLACE */
    int nsend, nrecv;                   /* entries of the arrays of each side */
    void *arrays;                       /* memory of the arrays of both sides */
    struct nbc_sched *sched;            /* the plan holds a reference */
    const struct nbc_alg *alg;
    struct nbc_handle_refs handles;
    int64_t bytes;       /* result of nbc_shape_bytes */
    size_t input;        /* result of nbc_bound_input */
    uint64_t generation; /* nbc_types_generation at its creation */
    /* Buffers that may not be NULL; if both, they may also not be the same buffer, nor lie
     * alias_offset apart (see nbc_bound). */
    bool needs_send, needs_recv;
    int64_t alias_offset;
    struct nbc_plan **list, *next; /* the cache's list that has it, NULL: dropped; the next one */
    struct nbc_plan *later, *earlier; /* if large: of those, by use */
    size_t size;                      /* bytes of the plan */
    struct nbc_run *idle;             /* idle runs of this plan, linked by next */
    int nidle;
    bool large;                   /* the plan or its run: it counts among those that are bounded */
    int refs;                     /* the cache's reference and those of requests */
    struct nbc_datatype *types[]; /* of `handles` */
};

struct nbc_plans;

/* The plan for a call; the cache keeps its reference. preferences: NULL: as the environment says.
 * NULL if there is none, or if the call must be bound again because of its buffers. */
struct nbc_plan *nbc_plan_find(struct nbc_plans *plans, const struct nbc_call *call,
                               const struct nbc_preferences *preferences);

/* Creates the plan of a call that has been bound and whose schedule has been built, and caches it.
 * The plan takes references of its own. Allocates *plans if it is NULL. Returns NULL without
 * memory. */
struct nbc_plan *nbc_plan_keep(struct nbc_plans **plans, const struct nbc_call *call,
                               const struct nbc_bound *b, struct nbc_sched *sched,
                               const struct nbc_alg *alg,
                               const struct nbc_preferences *preferences);

/* Takes a run set up for the plan, for the caller to return with nbc_plan_give. NULL without
 * memory. */
struct nbc_run *nbc_plan_take(struct nbc_plan *plan);

/* Returns a run that no operation uses. The cache may drop the plan. */
void nbc_plan_give(struct nbc_plan *plan, struct nbc_run *run);

/* Drops a reference; the last one frees the plan. */
void nbc_plan_free(struct nbc_plan *plan);
static inline void nbc_plan_release(struct nbc_plan *plan)
{
    if (--plan->refs == 0)
        nbc_plan_free(plan);
}

/* Frees the cache; plans with other references remain until these are dropped. Accepts NULL. */
void nbc_plans_free(struct nbc_plans *plans);

#endif
