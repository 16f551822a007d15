/* SPDX-License-Identifier: MIT */
#include "engine/launch.h"

#include "base/hints.h"
#include "base/settings.h"
#include "base/tuning.h"
#include "below/next.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/bind.h"
#include "op/run.h"

#include "coll.h"
#include "sched.h"
#include "select.h"

nbc_prerequisite_maker *nbc_launch_prerequisite;

const struct nbc_alg *nbc_launch_choose(struct nbc_shape *s, const struct nbc_wishes *wishes)
{
    s->order = wishes->order;
    if (s->order != NBC_ORDER_ANY)
        s->commutative = false;
    const struct nbc_alg *alg = nbc_select(s, wishes->alg, nbc_tuning, &s->segment);
    if (wishes->segment)
        s->segment = wishes->segment;
    s->eager = nbc_tuning->eager;
    return alg;
}

static void wish_by_hints(const struct nbc_hints *hints, enum nbc_coll coll,
                          struct nbc_wishes *wishes)
{
    if (!wishes->alg)
        wishes->alg = hints->algorithm[coll];
    if (!wishes->segment)
        wishes->segment = hints->segment_size;
    if (!wishes->order)
        wishes->order = hints->order;
}

struct nbc_wishes nbc_launch_wishes(const struct nbc_call *call, const struct nbc_context *c)
{
    struct nbc_wishes wishes = {nbc_settings.algorithm[call->coll], nbc_settings.segment_size,
                                nbc_settings.order};
    if (call->has_info) {
        struct nbc_hints hints = {0};
        nbc_hints_read(call->info, &hints);
        wish_by_hints(&hints, call->coll, &wishes);
    }
    if (c->hints)
        wish_by_hints(c->hints, call->coll, &wishes);
    return wishes;
}

static struct nbc_operation operation_of(const struct nbc_call *call, const struct nbc_alg *alg)
{
    return (struct nbc_operation){
        .coll = call->coll, .alg = alg, .send = call->send.buf, .recv = call->recv.buf};
}

/* The slow path, without a cached plan. Caches a plan if that is possible. */
static int launch_make_unplanned(const struct nbc_call *call, struct nbc_context *c,
                                 const struct nbc_wishes *wishes, struct nbc_request **out)
{
    struct nbc_bound b;
    int error = nbc_context_complete(c);
    if (!error)
        error = nbc_bind(call, &c->members, &b);
    if (error)
        return error;
    const struct nbc_alg *alg = nbc_launch_choose(&b.shape, wishes);
    struct nbc_sched *sched = alg->build(&b.shape);
    error = MPI_ERR_NO_MEM;
    if (sched) {
        struct nbc_operation op = operation_of(call, alg);
        const struct nbc_handle_refs handles = {b.types, b.shape.ntypes, b.reducer};
        op.plan = nbc_plan_keep(&c->plans, call, &b, sched, alg, wishes);
        op.run = op.plan ? NULL : nbc_run_new(sched, &handles, nbc_bound_input(&b));
        if (op.run)
            op.run->bytes = nbc_shape_bytes(&b.shape);
        if (op.plan || op.run)
            error = nbc_request_new(c, &op, out);
        nbc_sched_release(sched);
    }
    nbc_unbind(&b);
    return error;
}

int nbc_launch_make(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    struct nbc_wishes wishes = nbc_launch_wishes(call, c);
    struct nbc_plan *plan = nbc_plan_find(c->plans, call, &wishes);
    if (!plan)
        return launch_make_unplanned(call, c, &wishes, out);
    struct nbc_operation op = operation_of(call, plan->alg);
    op.plan = plan;
    return nbc_request_new(c, &op, out);
}

/* While calls are checked, one queue has all of them, so that the numbers are those of the calls,
 * and the checks follow their order. */
static struct nbc_queue *queue_for(struct nbc_context *c, enum nbc_kind kind)
{
    return kind == NBC_KIND_NONBLOCKING || nbc_launch_prerequisite ? &c->queue : &c->blocking;
}

/* Takes a number, and with it a tag, even if the operation cannot be created for lack of memory:
 * the other ranks count this call too. */
int nbc_launch_checked(const struct nbc_call *call, struct nbc_context *c,
                       const struct nbc_call *checked, enum nbc_kind kind, struct nbc_request **out)
{
    struct nbc_request *r;
    int error = nbc_launch_make(call, c, &r);
    if (error && error != MPI_ERR_NO_MEM)
        return error;
    struct nbc_queue *queue = queue_for(c, kind);
    int64_t seq = queue->next_seq++;
    if (!error && __builtin_expect(nbc_launch_prerequisite && checked, 0)) {
        error = nbc_launch_prerequisite(c, checked, kind, seq, &r->prerequisite);
        if (error)
            nbc_request_free(r);
    }
    if (error) {
        nbc_context_mark_number_undeliverable(c, queue, seq);
        if (nbc_launch_prerequisite && checked && c->delivery != NBC_DELIVERY_SOUND)
            nbc_context_mark_lost(c); /* the others wait for its check before all later calls */
        return error;
    }
    nbc_request_number(r, queue, seq);
    nbc_progress_start(r);
    *out = r;
    return MPI_SUCCESS;
}

int nbc_launch(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    return nbc_launch_checked(call, c, NULL, NBC_KIND_NONBLOCKING, out);
}
