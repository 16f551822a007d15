/* SPDX-License-Identifier: MIT */
#include "count.h"

#include <stdlib.h>

/* When an operation starts and is done, in messages one after the other. A message takes from when
 * both its ends have started, and the one before it on its way has arrived, to one later. */
struct when {
    int start, done;
    const struct when *mate;   /* the other end */
    const struct when *before; /* the message before */
};

static struct world *world;
static struct when **clocks; /* per rank and operation */

static int peer_id(int id, int peer)
{
    return world->c.remote && id < world->c.size ? world->c.size + peer : peer;
}

/* The k-th send from x to y meets the k-th receive at y from x. */
static void marry(int id)
{
    const struct nbc_sched *s = world->party[id].sched;
    int *next = calloc((size_t)world->n, sizeof *next); /* where to look on at the peer */
    const struct when **before = calloc((size_t)world->n, sizeof *before);
    for (nbc_id op = 0; op < s->nops; op++) {
        if (s->ops[op].kind != NBC_OP_SEND)
            continue;
        int to = peer_id(id, s->ops[op].peer), at = next[to];
        const struct nbc_sched *r = world->party[to].sched;
        while (r->ops[at].kind != NBC_OP_RECV || peer_id(to, r->ops[at].peer) != id)
            at++;
        next[to] = at + 1;
        clocks[id][op].mate = &clocks[to][at];
        clocks[to][at].mate = &clocks[id][op];
        clocks[id][op].before = clocks[to][at].before = before[to];
        before[to] = &clocks[id][op];
    }
    free(before);
    free(next);
}

static bool later(int *time, int than)
{
    if (*time >= than)
        return false;
    *time = than;
    return true;
}

/* Moves the clocks of a rank on; false when nothing has changed. */
static bool advance(int id)
{
    const struct nbc_sched *s = world->party[id].sched;
    bool changed = false;
    for (nbc_id op = 0; op < s->nops; op++) {
        struct when *w = &clocks[id][op];
        changed |= later(&w->done, w->start);
        if (w->mate) {
            changed |= later(&w->done, 1 + w->start);
            changed |= later(&w->done, 1 + w->mate->start);
            changed |= w->before && later(&w->done, 1 + w->before->done);
        }
        const struct nbc_op *o = &s->ops[op];
        for (int32_t i = 0; i < o->nsucc_issue + o->nsucc_done; i++)
            changed |= later(&clocks[id][s->succ[o->succ + i]].start,
                             i < o->nsucc_issue ? w->start : w->done);
    }
    return changed;
}

static int count_rounds(void)
{
    bool changed = true;
    int rounds = 0;
    for (int id = 0; id < world->n; id++)
        marry(id);
    while (changed) {
        changed = false;
        for (int id = 0; id < world->n; id++)
            changed |= advance(id);
    }
    for (int id = 0; id < world->n; id++)
        for (nbc_id op = 0; op < world->party[id].sched->nops; op++)
            later(&rounds, clocks[id][op].done);
    return rounds;
}

struct cost count(struct world *w)
{
    struct cost c = {0};
    world = w;
    clocks = calloc((size_t)w->n, sizeof *clocks);
    for (int id = 0; id < w->n; id++) {
        const struct party *p = &w->party[id];
        int64_t bytes[2] = {0};
        clocks[id] = calloc((size_t)p->sched->nops + 1, sizeof **clocks);
        for (nbc_id op = 0; op < p->sched->nops; op++) {
            const struct nbc_op *o = &p->sched->ops[op];
            bool sends = o->kind == NBC_OP_SEND;
            c.messages += sends;
            if (sends || o->kind == NBC_OP_RECV)
                bytes[sends] += nbc_ref_bytes(&p->shape, nbc_op_a(o));
        }
        c.bytes += bytes[1];
        for (int i = 0; i < 2; i++)
            c.most = bytes[i] > c.most ? bytes[i] : c.most;
    }
    c.rounds = count_rounds();
    for (int id = 0; id < w->n; id++)
        free(clocks[id]);
    free(clocks);
    return c;
}

int64_t count_between(const struct world *w, int group, int cut)
{
    int64_t bytes = 0;
    for (int id = 0; id < w->n; id++) {
        const struct party *p = &w->party[id];
        for (nbc_id op = 0; op < p->sched->nops; op++) {
            const struct nbc_op *o = &p->sched->ops[op];
            if (o->kind == NBC_OP_SEND && (id + cut) / group != (o->peer + cut) / group)
                bytes += nbc_ref_bytes(&p->shape, nbc_op_a(o));
        }
    }
    return bytes;
}
