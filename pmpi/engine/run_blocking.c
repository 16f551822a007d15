/* SPDX-License-Identifier: MIT */
#include "engine/run_blocking.h"

#include "base/clock.h"
#include "base/lock.h"
#include "below/quirks.h"
#include "engine/launch.h"
#include "engine/progress.h"
#include "op/plan.h"
#include "op/run.h"
#include "request/request.h"

#include "exec.h"

/* An operation without a request. */
struct direct {
    const struct nbc_call *call;
    struct nbc_context *c;
    struct nbc_plan *plan;
    struct nbc_run *run;
    int64_t seq;
    int polls;
};

/* Nothing else is pending. */
static bool direct_advance(struct nbc_exec *exec)
{
    return NBC_BLOCKS_TO_WAIT ? nbc_exec_wait(exec) : nbc_exec_poll(exec);
}

/* Polls for as long as the loops that wait do not yield the processor. If other threads may want
 * the lock, polls once. Returns whether the operation is complete. */
static bool direct_poll(struct direct *d)
{
    while (nbc_progress_spins(&d->polls) && !nbc_report_asked) {
        if (direct_advance(&d->run->exec))
            return true;
        if (nbc_threaded)
            break;
    }
    return false;
}

/* The operation is complete. */
static int direct_end(struct direct *d)
{
    int error = d->run->exec.error;
    if (__builtin_expect(d->run->exec.lost, 0))
        nbc_context_mark_lost(d->c);
    nbc_plan_give(d->plan, d->run);
    return error;
}

/* Without memory for a request. A report does not show the operation. */
static int direct_finish_alone(struct direct *d)
{
    nbc_context_hold(d->c);
    d->plan->refs++;
    while (d->run->exec.left > 0 && !direct_advance(&d->run->exec))
        nbc_progress_yield(&d->polls);
    int error = direct_end(d);
    nbc_plan_release(d->plan);
    nbc_context_release(d->c);
    return error;
}

static int direct_finish(struct direct *d)
{
    struct nbc_request *r;
    const struct nbc_operation op = {.coll = d->call->coll,
                                     .alg = d->plan->alg,
                                     .send = d->call->send.buf,
                                     .recv = d->call->recv.buf,
                                     .plan = d->plan};
    if (nbc_request_new(d->c, &op, &r))
        return direct_finish_alone(d);
    r->run = d->run;
    r->internal = d->call->purpose != NBC_FOR_PROGRAM;
    nbc_request_number(r, &d->c->blocking, d->seq);
    nbc_progress_adopt(r);
    nbc_request_wait(r, d->polls);
    int error = r->error;
    nbc_request_free(r);
    return error;
}

static __attribute__((cold, noinline)) bool start_with_devices(const struct direct *d, int tag)
{
    return nbc_run_start_with_devices(d->run, d->c->hidden, nbc_context_ranks(d->c), tag,
                                      d->call->send.buf, d->call->recv.buf, false,
                                      nbc_context_device_use(d->c, NBC_DEVICE_AUTO));
}

static int direct_run(struct direct *d)
{
    const struct nbc_call *call = d->call;
    struct nbc_queue *queue = &d->c->blocking;
    struct nbc_run *run = d->run;
    d->seq = queue->next_seq++;
    MPI_Comm comm = d->c->hidden;
    const int *ranks = nbc_context_ranks(d->c);
    int tag = nbc_queue_tag(queue, d->seq);
    const void *send = call->send.buf, *recv = call->recv.buf;
    if (nbc_device_may_be() ? start_with_devices(d, tag)
                            : nbc_run_start(run, comm, ranks, tag, send, recv)) {
        nbc_progress_ran_ahead(d->c, call->coll);
        return direct_end(d);
    }
    return direct_poll(d) ? direct_end(d) : direct_finish(d);
}

/* direct_run, with references to what an operator of the program might free. */
static int direct_run_held(struct direct *d)
{
    struct nbc_plan *plan = d->plan;
    plan->refs++;
    nbc_handles_hold(&plan->handles);
    int error = direct_run(d);
    nbc_handles_release(&plan->handles);
    nbc_plan_release(plan);
    return error;
}

bool nbc_run_blocking(const struct nbc_call *call, struct nbc_context *c, int *error)
{
    if (nbc_any_active() || nbc_timing_on || nbc_launch_start_condition ||
        c->life >= NBC_CONTEXT_DISCONNECTED)
        return false;
    struct nbc_preferences preferences = nbc_launch_preferences(call, c);
    struct direct d = {.call = call, .c = c, .plan = nbc_plan_find(c->plans, call, &preferences)};
    if (!d.plan)
        return false;
    d.run = nbc_plan_take(d.plan);
    if (!d.run)
        return false; /* unreached: no memory */
    if (call->purpose == NBC_FOR_PROGRAM)
        nbc_launch_note(c, call, d.plan->bytes);
    *error = d.plan->predefined ? direct_run(&d) : direct_run_held(&d);
    return true;
}
