/* SPDX-License-Identifier: MIT */
#include "exec.h"

#include "exec_over.h"

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

void nbc_exec_release(struct nbc_exec *e, int32_t succ, int n, bool starting)
{
    for (int i = 0; i < n; i++) {
        int32_t id = e->sched->succ[succ + i];
        if (--e->waits[id] > 0 || starting)
            continue;
        e->waits[id] = e->sched->ops[id].npre;
        make_ready(e, id);
    }
}

void nbc_exec_fail(struct nbc_exec *e, int error)
{
    if (!e->error)
        e->error = error;
}

int nbc_exec_post_failed(struct nbc_exec *e, const struct nbc_op *op, int error)
{
    const struct nbc_transport *t = e->transport;
    bool over = error < NBC_SENT; /* mutants: <= for <: the caller knows of NBC_SENT */
    nbc_exec_fail(e, over ? NBC_SENT - error : error);
    if (over)
        return NBC_SENT;
    error = (op->kind == NBC_OP_SEND ? t->send
                                     : t->recv)(e->self, nbc_exec_address(e, op->buf, op->off), 0,
                                                op->type, op->peer, &e->handles[e->ninflight]);
    e->lost = e->lost || error > 0;
    return error ? NBC_SENT : 0;
}

/* After an error nothing is copied: there may be nothing right to copy. */
int nbc_exec_stage(struct nbc_exec *e, const struct nbc_op *op)
{
    int error = NBC_SENT;
    if (op->kind == NBC_OP_RELEASE)
        e->transport->release(e->self);
    else if (!e->error)
        error = e->transport->stage(e->self, op, &e->handles[e->ninflight]);
    if (error > 0) /* mutants: >= for >: 0 is no error to nbc_exec_fail() either */
        nbc_exec_fail(e, error);
    return error;
}

static void end_lost(struct nbc_exec *e, int error, bool abandoned)
{
    nbc_exec_fail(e, error);
    e->lost = true;
    e->abandoned = e->abandoned || abandoned;
    e->nready = e->ninflight = 0;
    set_edges(e);
}

void nbc_exec_give_up(struct nbc_exec *e, int error)
{
    bool over = true;
    for (int i = 0; i < e->ninflight; i++)
        over &= e->transport->drop(e->self, i, e->handles[i]);
    end_lost(e, error, !over);
}

void nbc_exec_poll_failed(struct nbc_exec *e, int error, int ndone)
{
    if (ndone > 0)
        nbc_exec_fail(e, error);
    else
        end_lost(e, error, true);
}

bool nbc_exec_start(struct nbc_exec *e)
{
    return nbc_step_start(e, e->transport);
}

bool nbc_exec_poll(struct nbc_exec *e)
{
    return nbc_step_poll(e, e->transport, e->transport->poll);
}

bool nbc_exec_wait(struct nbc_exec *e)
{
    const struct nbc_transport *t = e->transport;
    return nbc_step_poll(e, t, t->wait && e->nready == 0 ? t->wait : t->poll);
}
