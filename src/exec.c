/* SPDX-License-Identifier: MIT */
#include "exec.h"

/* Layout of the working memory: the widest elements first. */
size_t nbc_exec_memory(const struct nbc_sched *sched)
{
    size_t n = sched->nops, m = sched->nmsgs;
    return m * (sizeof(nbc_handle) + sizeof(int32_t) + sizeof(int)) + (2 * n + 1) * sizeof(int32_t);
}

/* Gives each operation the edges that it waits for. */
static void set_edges(struct nbc_exec *e)
{
    for (int32_t id = 0; id < e->sched->nops; id++)
        e->waits[id] = e->sched->ops[id].npre;
}

void nbc_exec_init(struct nbc_exec *e, const struct nbc_sched *sched,
                   const struct nbc_transport *transport, void *self, void *memory)
{
    *e = (struct nbc_exec){.sched = sched, .transport = transport, .self = self};
    e->handles = memory;
    e->inflight = (int32_t *)(e->handles + sched->nmsgs);
    e->done = e->inflight + sched->nmsgs;
    e->waits = e->done + sched->nmsgs;
    e->ready = e->waits + sched->nops + 1;
    e->ready[-1] = NBC_NONE; /* see make_ready */
    set_edges(e);
}

/* Adds an operation to those that may be issued. They are kept in the order of emission, and not in
 * that in which they became ready: a message posted early is not held up by a longer one that its
 * builder wants to follow. Almost always the place is the last. What was issued stays where it is:
 * before the list is NBC_NONE, and in it the operation whose edges are satisfied, which was emitted
 * before those that wait for it. */
static inline void make_ready(struct nbc_exec *e, int32_t id)
{
    int32_t *at = &e->ready[e->nready++];
    for (; at[-1] > id; at--) /* mutants: >= for >: none is in the list twice */
        *at = at[-1];
    *at = id;
}

/* Satisfies one edge of each of n operations. An operation that may be issued has all its edges
 * again, for the next start. */
static __attribute__((noinline)) void release(struct nbc_exec *e, int32_t succ, int n)
{
    for (int i = 0; i < n; i++) {
        int32_t id = e->sched->succ[succ + i];
        if (--e->waits[id] > 0)
            continue;
        e->waits[id] = e->sched->ops[id].npre;
        make_ready(e, id);
    }
}

static inline void finish(struct nbc_exec *e, const struct nbc_op *op)
{
    e->left--;
    if (op->nsucc_done > 0)
        release(e, op->succ + op->nsucc_issue, op->nsucc_done);
}

static uintptr_t address(const struct nbc_exec *e, int buf, int64_t off)
{
    return e->base[buf] + (uintptr_t)off;
}

/* The first error is the result of the run. */
static __attribute__((cold)) void fail(struct nbc_exec *e, int error)
{
    if (!e->error)
        e->error = error;
}

typedef int post(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h);

/* Posts an empty message in place of one that cannot be posted: the peer waits for a message, or
 * sends one, all the same. Not where the message was received with the error. */
static __attribute__((cold)) int post_failed(struct nbc_exec *e, const struct nbc_op *op, int error)
{
    post *call = op->kind == NBC_OP_SEND ? e->transport->send : e->transport->recv;
    bool over = error < NBC_SENT; /* mutants: <= for <: the caller knows of NBC_SENT */
    fail(e, over ? NBC_SENT - error : error);
    if (over)
        return NBC_SENT;
    error = call(e->self, address(e, op->buf, op->off), 0, op->type, op->peer,
                 &e->handles[e->ninflight]);
    e->lost = e->lost || error > 0;
    return error ? NBC_SENT : 0;
}

/* Posts a message, which may be complete at once. After an error there may be nothing right to
 * send: an empty message tells the receiver. */
static inline void exec_post(struct nbc_exec *e, const struct nbc_op *op, int32_t id)
{
    bool sends = op->kind == NBC_OP_SEND;
    post *call = sends ? e->transport->send : e->transport->recv;
    int64_t count = __builtin_expect(e->error, 0) && sends ? 0 : op->count;
    int error = call(e->self, address(e, op->buf, op->off), count, op->type, op->peer,
                     &e->handles[e->ninflight]);
    if (__builtin_expect(error && error != NBC_SENT, 0))
        error = post_failed(e, op, error);
    if (op->nsucc_issue > 0)
        release(e, op->succ, op->nsucc_issue);
    if (error == NBC_SENT)
        finish(e, op);
    else
        e->inflight[e->ninflight++] = id;
}

/* A copy or a reduction. */
static inline int compute(struct nbc_exec *e, const struct nbc_op *op)
{
    uintptr_t a = address(e, op->buf, op->off), b = address(e, op->b_buf, op->b_off);
    if (op->kind == NBC_OP_COPY)
        return e->transport->copy(e->self, a, op->count, op->type, b, op->b_count, op->b_type);
    if (__builtin_expect(e->error, 0))
        return 0; /* its data may not have arrived, and the operator may be the program's */
    uintptr_t c = address(e, op->c_buf, op->c_off);
    return e->transport->reduce(e->self, a, b, c, op->count, op->type);
}

/* After an error nothing is copied: there may be nothing right to copy. */
static __attribute__((cold)) void exec_stage(struct nbc_exec *e, const struct nbc_op *op,
                                             int32_t id)
{
    int error = NBC_SENT;
    if (op->kind == NBC_OP_RELEASE)
        e->transport->release(e->self);
    else if (!e->error)
        error = e->transport->stage(e->self, op, &e->handles[e->ninflight]);
    if (error > 0) /* mutants: >= for >: 0 is no error to fail() either */
        fail(e, error);
    if (error)
        finish(e, op);
    else
        e->inflight[e->ninflight++] = id;
}

static inline void issue(struct nbc_exec *e, int32_t id)
{
    const struct nbc_op *op = &e->sched->ops[id];
    if (op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV) {
        exec_post(e, op, id);
        return;
    }
    if (op->kind < NBC_OP_JOIN) {
        int error = compute(e, op);
        if (error)
            fail(e, error);
    } else if (__builtin_expect(op->kind > NBC_OP_JOIN, 0)) {
        exec_stage(e, op, id);
        return;
    }
    finish(e, op);
}

static bool is_deferred(const struct nbc_exec *e, int32_t id)
{
    const struct nbc_op *op = &e->sched->ops[id];
    if (e->defer_kinds & 1U << op->kind)
        return true;
    bool computes = op->kind == NBC_OP_COPY || op->kind == NBC_OP_REDUCE;
    return computes && e->defer > 0 && op->count >= e->defer;
}

/* Issues the ready operations, except deferred ones. */
static bool exec_run(struct nbc_exec *e, bool put_off)
{
    int kept = 0;
    for (int i = 0; i < e->nready; i++)
        if (put_off && is_deferred(e, e->ready[i]))
            e->ready[kept++] = e->ready[i];
        else
            issue(e, e->ready[i]);
    e->nready = kept;
    return e->left == 0;
}

bool nbc_exec_start(struct nbc_exec *e)
{
    const struct nbc_sched *s = e->sched;
    e->left = s->nops;
    e->error = e->ninflight = 0;
    e->lost = false;
    int nready = 0;
    for (int32_t id = 0; id < s->nops; id++)
        if (e->waits[id] == 0)
            e->ready[nready++] = id;
    e->nready = nready;
    /* mutants: >= for >: for speed */
    return exec_run(e, e->defer > 0 || e->defer_kinds);
}

/* Removes completed handles, whose places ascend, and finishes their operations. */
static inline void end_messages(struct nbc_exec *e, const int *done, int ndone)
{
    for (int i = ndone - 1; i >= 0; i--) {
        int at = done[i], last = --e->ninflight;
        finish(e, &e->sched->ops[e->inflight[at]]);
        e->inflight[at] = e->inflight[last];
        e->handles[at] = e->handles[last];
    }
}

void nbc_exec_give_up(struct nbc_exec *e, int error, bool abandoned)
{
    fail(e, error);
    e->lost = true;
    e->abandoned = e->abandoned || abandoned;
    e->left = e->nready = e->ninflight = 0;
    set_edges(e);
}

/* A poll has failed. If no message is over by it, no later poll can do better. */
static __attribute__((cold)) void poll_failed(struct nbc_exec *e, int error, int ndone)
{
    if (ndone > 0)
        fail(e, error);
    else
        nbc_exec_give_up(e, error, true);
}

/* `look` is one of the two functions of the transport that report completed messages. */
static inline bool advance(struct nbc_exec *e, nbc_transport_look *look)
{
    int ndone = 0;
    if (e->ninflight > 0) {
        int error = look(e->self, e->ninflight, e->handles, e->done, &ndone);
        if (error)
            poll_failed(e, error, ndone);
    }
    if (ndone == 0 && e->nready == 0)
        return e->left == 0;
    end_messages(e, e->done, ndone);
    if (e->nready == 0)
        return e->left == 0;
    return exec_run(e, false);
}

bool nbc_exec_poll(struct nbc_exec *e)
{
    return advance(e, e->transport->poll);
}

bool nbc_exec_wait(struct nbc_exec *e)
{
    const struct nbc_transport *t = e->transport;
    return advance(e, t->wait && e->nready == 0 ? t->wait : t->poll);
}
