/* SPDX-License-Identifier: MIT */
#include "exec.h"

/* Layout of the working memory: the widest elements first. */
size_t nbc_exec_memory(const struct nbc_sched *sched)
{
    size_t n = sched->nops, m = sched->nmsgs;
    return m * (sizeof(nbc_handle) + sizeof(int32_t) + sizeof(int)) + 2 * n * sizeof(int32_t);
}

void nbc_exec_init(struct nbc_exec *e, const struct nbc_sched *sched,
                   const struct nbc_transport *transport, void *self, void *memory)
{
    *e = (struct nbc_exec){.sched = sched, .transport = transport, .self = self};
    e->handles = memory;
    e->inflight = (int32_t *)(e->handles + sched->nmsgs);
    e->done = e->inflight + sched->nmsgs;
    e->waits = e->done + sched->nmsgs;
    e->ready = e->waits + sched->nops;
}

/* Satisfies one edge of each of n operations. */
static inline void release(struct nbc_exec *e, const int32_t *succ, int n)
{
    for (int i = 0; i < n; i++)
        if (--e->waits[succ[i]] == 0)
            e->ready[e->nready++] = succ[i];
}

enum { DONE = -1 }; /* in waits[] */

static void finish(struct nbc_exec *e, int32_t id)
{
    const struct nbc_op *op = &e->sched->ops[id];
    e->left--;
    e->waits[id] = DONE;
    release(e, &e->sched->succ[op->succ + op->nsucc_issue], op->nsucc_done);
}

static uintptr_t address(const struct nbc_exec *e, int buf, int64_t off)
{
    return e->base[buf] + (uintptr_t)off;
}

/* Posts a message, which may be complete at once. */
static int exec_post(struct nbc_exec *e, int32_t id)
{
    const struct nbc_op *op = &e->sched->ops[id];
    nbc_handle *h = &e->handles[e->ninflight];
    int (*call)(void *, uintptr_t, int64_t, int, int, nbc_handle *) =
        op->kind == NBC_OP_SEND ? e->transport->send : e->transport->recv;
    int error = call(e->self, address(e, op->buf, op->off), op->count, op->type, op->peer, h);
    if (error > 0)
        return error;
    release(e, &e->sched->succ[op->succ], op->nsucc_issue);
    if (error == NBC_SENT)
        finish(e, id);
    else
        e->inflight[e->ninflight++] = id;
    return 0;
}

/* A copy or a reduction. */
static int compute(struct nbc_exec *e, const struct nbc_op *op)
{
    uintptr_t a = address(e, op->buf, op->off), b = address(e, op->b_buf, op->b_off);
    if (op->kind == NBC_OP_COPY)
        return e->transport->copy(e->self, a, op->count, op->type, b, op->b_count, op->b_type);
    uintptr_t c = address(e, op->c_buf, op->c_off);
    return e->transport->reduce(e->self, a, b, c, op->count, op->type);
}

static int issue(struct nbc_exec *e, int32_t id)
{
    const struct nbc_op *op = &e->sched->ops[id];
    if (op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV)
        return exec_post(e, id);
    int error = op->kind == NBC_OP_JOIN ? 0 : compute(e, op);
    if (!error)
        finish(e, id);
    return error;
}

/* Ends the run after an error. Other ranks may wait for messages that this rank will never send, so
 * waiting for theirs could last forever. */
static void give_up(struct nbc_exec *e)
{
    for (int i = 0; i < e->ninflight; i++) {
        int32_t id = e->inflight[i];
        bool is_send = e->sched->ops[id].kind == NBC_OP_SEND;
        if (e->transport->drop(e->self, e->handles[i], is_send))
            e->waits[id] = DONE;
    }
    e->ninflight = e->left = 0;
}

bool nbc_exec_owes(const struct nbc_exec *e, int32_t id)
{
    return e->sched->ops[id].kind == NBC_OP_RECV && e->waits[id] != DONE;
}

static bool is_long(const struct nbc_exec *e, int32_t id)
{
    const struct nbc_op *op = &e->sched->ops[id];
    return (op->kind == NBC_OP_COPY || op->kind == NBC_OP_REDUCE) && op->count >= e->defer;
}

/* Issues the ready operations in the order in which they became ready, except deferred ones. */
static bool exec_run(struct nbc_exec *e, bool put_off)
{
    int kept = 0;
    for (int i = 0; i < e->nready && !e->error; i++)
        if (put_off && is_long(e, e->ready[i]))
            e->ready[kept++] = e->ready[i];
        else
            e->error = issue(e, e->ready[i]);
    e->nready = kept;
    if (e->error)
        give_up(e);
    return e->left == 0;
}

bool nbc_exec_start(struct nbc_exec *e)
{
    const struct nbc_sched *s = e->sched;
    e->left = s->nops;
    e->error = e->nready = e->ninflight = 0;
    for (int32_t id = 0; id < s->nops; id++) {
        e->waits[id] = s->ops[id].npre;
        if (e->waits[id] == 0)
            e->ready[e->nready++] = id;
    }
    return exec_run(e, e->defer > 0);
}

/* Removes the completed handles; done[] then holds their operations. */
static void remove_done(struct nbc_exec *e, int ndone)
{
    for (int i = ndone - 1; i >= 0; i--) {
        int at = e->done[i], last = --e->ninflight;
        e->done[i] = e->inflight[at];
        e->inflight[at] = e->inflight[last];
        e->handles[at] = e->handles[last];
    }
}

bool nbc_exec_poll(struct nbc_exec *e)
{
    int ndone = 0;
    if (e->ninflight > 0)
        e->error = e->transport->poll(e->self, e->ninflight, e->handles, e->done, &ndone);
    if (ndone == 0 && e->nready == 0 && !e->error)
        return false;
    remove_done(e, ndone);
    for (int i = 0; i < ndone; i++)
        finish(e, e->done[i]);
    if (e->nready == 0 && !e->error)
        return e->left == 0;
    return exec_run(e, false);
}
