/* SPDX-License-Identifier: MIT */
/* Blocking operations without a request. While nothing else is pending, a blocking call goes
 * straight from its plan to a run: nothing has to find the operation, or to progress beside it. If
 * the operation is not complete after a short wait, it gets a request and goes on like any other:
 * then reports of hangs show it, and the lock is released while it waits. */
#include "engine/launch.h"

#include "base/in_mpi.h"
#include "engine/progress.h"
#include "op/message.h"
#include "op/plan.h"
#include "op/run.h"
#include "request/request.h"

/* An operation without a request. */
struct direct {
    const struct nbc_call *call;
    struct nbc_context *c;
    struct nbc_plan *plan;
    struct nbc_run *run;
    int64_t seq;
    int polls;
};

/* The operation is complete. */
static int direct_end(struct direct *d)
{
    nbc_poll_now_and_then();
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
    while (!nbc_progress_alone(&d->run->exec, &d->polls)) {
        d->polls = 0;
        nbc_progress_yield(&d->polls);
    }
    int error = direct_end(d);
    nbc_context_release(d->c);
    return error;
}

static int direct_finish(struct direct *d)
{
    struct nbc_request *r = nbc_request_new(d->c, d->call, d->plan->alg, d->plan, NULL);
    if (!r)
        return direct_finish_alone(d);
    r->run = d->run;
    nbc_request_number(r, &d->c->blocking, d->seq);
    nbc_progress_adopt(r);
    nbc_request_wait(r, d->polls);
    int error = r->error;
    nbc_request_free(r);
    return error;
}

static inline int direct_run(struct direct *d)
{
    const struct nbc_call *call = d->call;
    struct nbc_queue *queue = &d->c->blocking;
    d->seq = queue->next_seq++;
    if (nbc_progress_run(d->run, d->c, nbc_queue_tag(queue, d->seq), call->send.buf, call->recv.buf,
                         false, NBC_DEVICE_AUTO))
        return direct_end(d);
    return nbc_progress_alone(&d->run->exec, &d->polls) ? direct_end(d) : direct_finish(d);
}

bool nbc_run_blocking(const struct nbc_call *call, struct nbc_context *c, int *error)
{
    if (nbc_any_active() || nbc_timing_on || nbc_launch_start_condition ||
        c->life >= NBC_CONTEXT_DISCONNECTED)
        return false;
    struct direct d = {.call = call, .c = c, .plan = nbc_launch_plan(call, c)};
    if (!d.plan)
        return false;
    d.run = nbc_plan_take(d.plan);
    if (!d.run)
        return false; /* unreached: no memory */
    if (call->purpose == NBC_FOR_PROGRAM)
        nbc_launch_note(c, call, d.plan->bytes);
    d.plan->refs++; /* an operator of the program might free this, and what it holds */
    nbc_handles_hold(&d.plan->handles);
    *error = direct_run(&d);
    nbc_handles_release(&d.plan->handles);
    nbc_plan_release(d.plan);
    return true;
}
