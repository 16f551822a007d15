/* SPDX-License-Identifier: MIT */
/* The steps of the executor over a given transport: where that is a constant whose functions are
 * known, the compiler makes one function of both. For exec.c, and for files that define a
 * transport. */
#ifndef NBC_EXEC_OVER_H
#define NBC_EXEC_OVER_H

#include <stddef.h>

#include "exec.h"

/* --- exec.c: steps that are rare, or too long to be made twice --- */

/* Satisfies one edge of each of n operations. An operation that may be issued has all its edges
 * again, for the next start. If the run is `starting`, the start finds it by its edges. */
void nbc_exec_release(struct nbc_exec *e, int32_t succ, int n, bool starting);

/* The first error is the result of the run. */
__attribute__((cold)) void nbc_exec_fail(struct nbc_exec *e, int error);

/* Posts an empty message in place of one that cannot be posted: the peer waits for a message, or
 * sends one, all the same. Not where the message was received with the error. */
__attribute__((cold)) int nbc_exec_post_failed(struct nbc_exec *e, const struct nbc_op *op,
                                               int error);

/* Starts an operation of a device. Returns as nbc_transport.stage does. */
__attribute__((cold)) int nbc_exec_stage(struct nbc_exec *e, const struct nbc_op *op);

/* A poll has failed. If no message is over by it, no later poll can do better. */
__attribute__((cold)) void nbc_exec_poll_failed(struct nbc_exec *e, int error, int ndone);

/* --- the steps --- */

#define NBC_STEP static inline __attribute__((always_inline))

NBC_STEP void nbc_step_finish(struct nbc_exec *e, const struct nbc_op *op, bool starting)
{
    if (op->nsucc_done > 0)
        nbc_exec_release(e, op->succ + op->nsucc_issue, op->nsucc_done, starting);
}

static inline uintptr_t nbc_exec_address(const struct nbc_exec *e, int buf, int64_t off)
{
    return e->base[buf] + (uintptr_t)off;
}

/* Posts a message, which may be complete at once. After an error there may be nothing right to
 * send: an empty message tells the receiver. */
NBC_STEP int nbc_step_post(struct nbc_exec *e, const struct nbc_op *op,
                           const struct nbc_transport *t, bool starting)
{
    const uintptr_t address = nbc_exec_address(e, op->buf, op->off);
    nbc_handle *h = &e->handles[e->ninflight];
    int error = op->kind == NBC_OP_RECV
                    ? t->recv(e->self, address, op->count, op->type, op->peer, h)
                    : t->send(e->self, address, __builtin_expect(e->error, 0) ? 0 : op->count,
                              op->type, op->peer, h);
    if (__builtin_expect(error && error != NBC_SENT, 0))
        error = nbc_exec_post_failed(e, op, error);
    if (op->nsucc_issue > 0)
        nbc_exec_release(e, op->succ, op->nsucc_issue, starting);
    return error;
}

/* A copy or a reduction. After an error nothing is reduced: the data may not have arrived, and the
 * operator may be the program's. */
NBC_STEP int nbc_step_compute(struct nbc_exec *e, const struct nbc_op *op,
                              const struct nbc_transport *t)
{
    const uintptr_t a = nbc_exec_address(e, op->buf, op->off),
                    b = nbc_exec_address(e, op->b_buf, op->b_off);
    if (op->kind == NBC_OP_COPY)
        return t->copy(e->self, a, op->count, op->type, b, op->b_count, op->b_type);
    const uintptr_t c = nbc_exec_address(e, op->c_buf, op->c_off);
    return __builtin_expect(e->error, 0) ? 0 : t->reduce(e->self, a, b, c, op->count, op->type);
}

NBC_STEP void nbc_step_issue(struct nbc_exec *e, int32_t id, const struct nbc_transport *t,
                             bool starting)
{
    const struct nbc_op *op = &e->sched->ops[id];
    int error = NBC_SENT;
    if (op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV) {
        error = nbc_step_post(e, op, t, starting);
    } else if (op->kind < NBC_OP_JOIN) {
        int failure = nbc_step_compute(e, op, t);
        if (__builtin_expect(failure, 0))
            nbc_exec_fail(e, failure);
    } else if (__builtin_expect(op->kind > NBC_OP_JOIN, 0))
        error = nbc_exec_stage(e, op);
    if (error)
        nbc_step_finish(e, op, starting);
    else
        e->inflight[e->ninflight++] = id;
}

/* Whether the start leaves an operation to polls. */
static inline bool nbc_exec_defers(const struct nbc_exec *e, const struct nbc_op *op)
{
    bool computes = op->kind == NBC_OP_COPY || op->kind == NBC_OP_REDUCE;
    return e->defer_kinds & 1U << op->kind || (computes && e->defer > 0 && op->count >= e->defer);
}

/* As nbc_exec_start. An operation waits only for those that were emitted before it, so one that a
 * start issues may allow later ones only. */
NBC_STEP bool nbc_step_start(struct nbc_exec *e, const struct nbc_transport *t)
{
    const struct nbc_sched *s = e->sched;
    const bool defers = e->defer > 0 || e->defer_kinds; /* mutants: >= for >: for speed */
    e->error = e->ninflight = e->nready = 0;
    e->lost = false;
    for (int32_t id = 0; id < s->nops; id++) {
        if (e->waits[id] > 0)
            continue;
        e->waits[id] = s->ops[id].npre;
        if (__builtin_expect(defers, 0) && nbc_exec_defers(e, &s->ops[id]))
            e->ready[e->nready++] = id;
        else
            nbc_step_issue(e, id, t, true);
    }
    return e->ninflight == 0 && e->nready == 0;
}

/* Removes completed handles, whose places ascend, and finishes their operations. */
NBC_STEP void nbc_step_end_messages(struct nbc_exec *e, const int *done, int ndone)
{
    for (int i = ndone - 1; i >= 0; i--) {
        int at = done[i], last = --e->ninflight;
        nbc_step_finish(e, &e->sched->ops[e->inflight[at]], false);
        e->inflight[at] = e->inflight[last];
        e->handles[at] = e->handles[last];
    }
}

/* As nbc_exec_poll, by one of the two functions of the transport that report completed messages. */
NBC_STEP bool nbc_step_poll(struct nbc_exec *e, const struct nbc_transport *t,
                            nbc_transport_look *look)
{
    int ndone = 0;
    if (e->ninflight > 0) {
        int error = look(e->self, e->ninflight, e->handles, e->done, &ndone);
        if (__builtin_expect(error, 0))
            nbc_exec_poll_failed(e, error, ndone);
    }
    nbc_step_end_messages(e, e->done, ndone);
    for (int i = 0; i < e->nready; i++)
        nbc_step_issue(e, e->ready[i], t, false);
    e->nready = 0;
    return e->ninflight == 0;
}

#endif
