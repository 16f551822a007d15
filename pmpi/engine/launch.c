/* SPDX-License-Identifier: MIT */
#include "engine/launch.h"

#include "base/in_mpi.h"
#include "base/hints.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/device.h"
#include "below/quirks.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/bind.h"
#include "op/by_mpi.h"
#include "op/run.h"

#include "coll.h"
#include "sched.h"
#include "select.h"

nbc_start_condition_maker *nbc_launch_start_condition;

const struct nbc_alg *nbc_launch_choose(struct nbc_shape *s,
                                        const struct nbc_preferences *preferences)
{
    s->order = preferences->order;
    if (s->order != NBC_ORDER_ANY)
        s->commutative = false;
    const struct nbc_alg *alg = nbc_select(s, preferences->alg, nbc_tuning, &s->segment);
    if (preferences->segment)
        s->segment = preferences->segment;
    s->eager = nbc_tuning->eager;
    return alg;
}

static void wish_by_hints(const struct nbc_hints *hints, enum nbc_coll coll,
                          struct nbc_preferences *preferences)
{
    if (!preferences->alg)
        preferences->alg = hints->algorithm[coll];
    if (!preferences->segment)
        preferences->segment = hints->segment_size;
    if (!preferences->order)
        preferences->order = hints->order;
}

/* What is offloaded is the MPI's, unless the user's rules decide. */
static const struct nbc_alg *offload(enum nbc_coll coll)
{
    static const struct nbc_alg *rows[NBC_NCOLLS]; /* under the lock */
    if (!rows[coll])
        rows[coll] = nbc_alg_by_name(coll, "mpi");
    return nbc_tuning_file ? NULL : rows[coll];
}

void nbc_launch_ask(const struct nbc_call *call, const struct nbc_context *c,
                    struct nbc_preferences *preferences)
{
    if (call->has_info) {
        struct nbc_hints hints = {0};
        nbc_hints_read(call->info, &hints);
        wish_by_hints(&hints, call->coll, preferences);
    }
    if (c->hints && call->purpose != NBC_FOR_CHECK) /* which compares what they lead to */
        wish_by_hints(c->hints, call->coll, preferences);
    if (nbc_offloaded >> call->coll & 1 && !preferences->alg && call->kind == NBC_KIND_NONBLOCKING)
        preferences->alg = offload(call->coll);
}

/* Whether the MPI can carry out a call for which its algorithm is chosen; the same on all ranks. A
 * check may hold an operation up, which the MPI cannot. In a blocking call the MPI must progress
 * the operations of nbcshim. Predefined operators have predefined datatypes: with those of
 * programs, and between groups, MPIs have faults. */
static bool mpi_can(const struct nbc_call *call, const struct nbc_context *c,
                    const struct nbc_bound *b)
{
    return call->purpose == NBC_FOR_PROGRAM && !nbc_launch_start_condition && !c->ends &&
           !(NBC_IDUP_REDUCES && c->nduplicates > 0) &&
           (call->kind != NBC_KIND_BLOCKING || nbc_hooked) && !b->shape.remote_size &&
           (!b->reducer || b->reducer->named) && nbc_by_mpi_can(call, b);
}

static __attribute__((cold)) int
launch_make_by_mpi(const struct nbc_call *call, struct nbc_context *c, const struct nbc_bound *b,
                   const struct nbc_alg *alg, struct nbc_request **out)
{
    bool devices = nbc_device_may_be() && nbc_device_look() &&
                   nbc_context_device_use(c, NBC_DEVICE_AUTO) != NBC_DEVICE_OFF;
    if (call->kind == NBC_KIND_BLOCKING && !devices) {
        const int64_t bytes = nbc_shape_bytes(&b->shape);
        nbc_launch_note(c, call, bytes);
        if (nbc_timing_on)
            nbc_stats_start(nbc_progress_stats((int)(alg - nbc_algs)), bytes);
        return NBC_LAUNCH_BY_MPI;
    }
    *out = nbc_request_new(c, call, alg, NULL, nbc_by_mpi_run(call, b, c->hidden, devices));
    return *out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* The slow path, without a cached plan. Caches a plan if that is possible: not for arguments with
 * which other calls, or this one, are the MPI's, since plans are found by the arguments alone. */
static __attribute__((cold, noinline)) int
launch_make_unplanned(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    const struct nbc_preferences preferences = nbc_launch_preferences(call, c);
    const struct nbc_preferences *key = nbc_launch_asks(call, c) ? &preferences : NULL;
    struct nbc_bound b;
    int error = nbc_context_complete(c);
    if (!error)
        error = nbc_bind(call, &c->members, &b);
    if (error)
        return error;
    b.shape.by_mpi = true;
    const struct nbc_alg *alg = nbc_launch_choose(&b.shape, &preferences);
    const bool by_mpi = alg->needs & NBC_BY_MPI;
    if (__builtin_expect(by_mpi, 0)) {
        if (mpi_can(call, c, &b)) {
            error = launch_make_by_mpi(call, c, &b, alg, out);
            nbc_unbind(&b);
            return error;
        }
        b.shape.by_mpi = false;
        alg = nbc_launch_choose(&b.shape, &preferences);
    }
    struct nbc_sched *sched = nbc_build(alg->build, &b.shape);
    *out = NULL;
    if (sched) {
        const struct nbc_handle_refs handles = {b.types, b.shape.ntypes, b.reducer, false};
        struct nbc_plan *plan = by_mpi ? NULL : nbc_plan_keep(&c->plans, call, &b, sched, alg, key);
        struct nbc_run *run = plan ? NULL : nbc_run_new(sched, &handles, nbc_bound_input(&b));
        if (run)
            run->bytes = nbc_shape_bytes(&b.shape);
        *out = nbc_request_new(c, call, alg, plan, run);
        nbc_sched_release(sched);
    }
    nbc_unbind(&b);
    return *out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static inline __attribute__((always_inline)) int
launch_make(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    struct nbc_plan *plan = nbc_launch_plan(call, c);
    int error = MPI_SUCCESS;
    if (!plan)
        error = launch_make_unplanned(call, c, out);
    else if (!(*out = nbc_request_new(c, call, plan->alg, plan, NULL)))
        error = MPI_ERR_NO_MEM; /* unreached: no memory */
    if (!error && call->purpose == NBC_FOR_PROGRAM)
        nbc_launch_note(c, call, nbc_request_bytes(*out));
    return error;
}

int nbc_launch_make(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    return launch_make(call, c, out);
}

/* While calls are checked, one queue has all of them, so that the numbers are those of the calls.
 * The other one has the checks, in the same order. */
static struct nbc_queue *queue_for(struct nbc_context *c, int kind)
{
    return kind == NBC_KIND_NONBLOCKING || nbc_launch_start_condition ? &c->queue : &c->blocking;
}

/* Takes a number, and with it a tag, even if the operation cannot be created for lack of memory:
 * the other ranks count this call too. */
int nbc_launch_checked(const struct nbc_call *call, struct nbc_context *c,
                       const struct nbc_call *checked, struct nbc_request **out)
{
    struct nbc_request *r;
    int error = launch_make(call, c, &r);
    struct nbc_queue *queue = queue_for(c, call->kind);
    if (error && error != MPI_ERR_NO_MEM) {
        queue->next_seq += error == NBC_LAUNCH_BY_MPI; /* staged calls of other ranks have one */
        return error;
    }
    int64_t seq = queue->next_seq++;
    if (!error && __builtin_expect(nbc_launch_start_condition != NULL, 0)) {
        error = nbc_launch_start_condition(c, checked, seq, &r->start_condition);
        if (error)
            nbc_request_free(r);
    }
    if (error) {
        nbc_context_mark_number_undeliverable(c, queue, seq);
        if (nbc_launch_start_condition && c->delivery != NBC_DELIVERY_SOUND)
            nbc_context_mark_lost(c); /* the others wait for its check before all later calls */
        return error;
    }
    nbc_request_number(r, queue, seq);
    nbc_progress_start(r);
    *out = r;
    return MPI_SUCCESS;
}

void nbc_launch_internal(struct nbc_context *c, struct nbc_request *r)
{
    struct nbc_queue *queue = queue_for(c, NBC_KIND_BLOCKING);
    nbc_request_number(r, queue, queue->next_seq++);
    nbc_progress_start(r);
}

int nbc_launch_finish(struct nbc_request *r)
{
    nbc_request_wait(r, 0);
    int error = r->error;
    if (__builtin_expect(nbc_timing_on, 0))
        nbc_progress_measure_end(r, true);
    nbc_request_free(r);
    return error;
}
