/* SPDX-License-Identifier: MIT */
/* Plans: what was worked out for an earlier call (checks passed, types and operator found,
 * algorithm chosen, schedule built), kept with its communicator and found again by the arguments.
 * Programs repeat few calls many times; a call that finds its plan, and an idle run set up for it,
 * has nothing left to do but to bind its buffers and start. Under the lock.
 *
 * Arrays of counts, displacements and types are compared whole. A plan with a datatype or an
 * operator of the program's dies when any such is freed (handles may come back with another
 * meaning), which nbc_types_generation tells. */
#ifndef NBC_PLAN_H
#define NBC_PLAN_H

#include "op/bind.h"
#include "op/run.h"

struct nbc_plan_key {
    int64_t send_count, recv_count;
    MPI_Datatype send_type, recv_type;
    MPI_Op op;
    const struct nbc_alg *override;
    int64_t segment;
    int coll, root;
    bool send_in_place, recv_in_place;
};

/* Copies of the arrays of one side, as far as they are significant. */
struct nbc_plan_arrays {
    int n;
    struct nbc_ints counts, displs; /* width 0: none */
    const void *types;              /* handles; NULL: none */
};

struct nbc_plan {
    struct nbc_plan_key key;
    struct nbc_plan_arrays send, recv;
    void *arrays;            /* where they lie */
    struct nbc_sched *sched; /* one owner */
    const struct nbc_alg *alg;
    struct nbc_handle_refs holdings;
    int64_t bytes;               /* nbc_shape_bytes */
    uint64_t generation;         /* of the types it was made with */
    bool lasting;                /* predefined ones, and so the operator: it dies with none */
    bool needs_send, needs_recv; /* these buffers may not be NULL nor, both, the same */
    int64_t own_at;              /* nor this far apart: see nbc_bound */
    struct nbc_run *idle;        /* set up for this plan, linked by next */
    int nidle;
    int refs;                     /* its place in the table, and requests that are made by it */
    struct nbc_datatype *types[]; /* the holdings' */
};

struct nbc_plans;

/* The plan for a call, NULL when there is none or its buffers want a closer look. */
struct nbc_plan *nbc_plan_find(struct nbc_plans *plans, const struct nbc_call *call,
                               const struct nbc_alg *override, int64_t segment);

/* Makes and keeps the plan of a call that was bound and whose schedule was built (one owner more).
 * NULL: not a kind that is kept, or no memory. Makes *plans when NULL. */
struct nbc_plan *nbc_plan_keep(struct nbc_plans **plans, const struct nbc_call *call,
                               const struct nbc_bound *b, struct nbc_sched *sched,
                               const struct nbc_alg *alg, const struct nbc_alg *override,
                               int64_t segment);

/* A run set up for the plan; NULL when memory ran out. */
struct nbc_run *nbc_plan_take(struct nbc_plan *plan);

/* Gives back a run that is over. */
void nbc_plan_give(struct nbc_plan *plan, struct nbc_run *run);

void nbc_plan_release(struct nbc_plan *plan);

void nbc_plans_free(struct nbc_plans *plans);

#endif
