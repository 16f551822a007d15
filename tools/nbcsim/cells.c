/* SPDX-License-Identifier: MIT */
#include "cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 2 };

bool runner_begin(struct runner *r)
{
    r->past = calloc((size_t)nbc_nalgs * CLASSES, sizeof *r->past);
    r->growth = calloc((size_t)nbc_nalgs, sizeof *r->growth);
    return r->past && r->growth;
}

void runner_forget(struct runner *r)
{
    memset(r->past, 0, (size_t)nbc_nalgs * CLASSES * sizeof *r->past);
    memset(r->growth, 0, (size_t)nbc_nalgs * sizeof *r->growth);
}

void runner_end(struct runner *r)
{
    free(r->past);
    free(r->growth);
    r->past = NULL;
    r->growth = NULL;
}

static struct past *past_of(const struct runner *r, const struct nbc_alg *alg, int size)
{
    bool power = (size & (size - 1)) == 0;
    return &r->past[(alg - nbc_algs) * CLASSES + power];
}

static void remember(struct past *p, int size, double time)
{
    if (p->n == 3) {
        memmove(p->ranks, p->ranks + 1, 2 * sizeof *p->ranks);
        memmove(p->time, p->time + 1, 2 * sizeof *p->time);
        p->n = 2;
    }
    p->ranks[p->n] = log2(size);
    p->time[p->n++] = time;
}

static const char *simulate(const struct runner *r, const struct arguments *a, struct entry *e)
{
    const char *wrong;
    struct program *p = call_program(a, e->alg, &r->limits, &wrong);
    if (p)
        wrong = program_run(p, r->net, r->path, &e->result);
    program_free(p);
    return wrong;
}

/* Whether every rank sends data to, or receives data from, every other. */
static bool data_for_all(enum nbc_coll coll)
{
    return coll != NBC_BARRIER && coll != NBC_BCAST &&
           (!nbc_coll_reduces(coll) || coll == NBC_REDUCE_SCATTER ||
            coll == NBC_REDUCE_SCATTER_BLOCK);
}

/* Ranks. */
enum { FEW = 256, MANY = 512 };

static double time_of_small(const struct runner *r, struct call call, const struct nbc_alg *alg,
                            int size)
{
    const struct runner all = {.net = r->net, .rules = r->rules};
    struct entry e = {.alg = alg};
    struct arguments a;
    call.size = size;
    call.root = 0;
    call.bytes = call.bytes < 8 * MANY ? call.bytes : 8 * MANY;
    if (!arguments_make(&a, &call))
        return 0;
    simulate(&all, &a, &e);
    arguments_free(&a);
    return e.result.time;
}

/* Determines the least growth of an algorithm's time with the ranks, from calls with few bytes. */
static const struct growth *growth_of(struct runner *r, const struct call *call,
                                      const struct nbc_alg *alg)
{
    struct growth *g = &r->growth[alg - nbc_algs];
    if (g->known)
        return g;
    double few = time_of_small(r, *call, alg, FEW), many = time_of_small(r, *call, alg, MANY);
    bool linear = many > 1.4 * few;
    *g = (struct growth){true, linear ? (many - few) / (MANY - FEW) : 0, linear ? 0 : many - few};
    return g;
}

/* Extrapolates the last three times by a + b P + c log P, or by a + c log P. */
static double extrapolate(const struct past *p, int size, bool grows)
{
    double time[2], ranks[2], log[2], b = 0;
    for (int i = 0; i < 2; i++) {
        time[i] = p->time[i + 1] - p->time[i];
        log[i] = p->ranks[i + 1] - p->ranks[i];
        ranks[i] = exp2(p->ranks[i + 1]) - exp2(p->ranks[i]);
    }
    double c = (time[0] + time[1]) / (log[0] + log[1]);
    if (grows) {
        b = (time[1] * log[0] - time[0] * log[1]) / (ranks[1] * log[0] - ranks[0] * log[1]);
        c = (time[1] - b * ranks[1]) / log[1];
    }
    double more = b * (size - exp2(p->ranks[2])) + c * (log2(size) - p->ranks[2]);
    return p->time[2] + fmax(more, 0);
}

/* Returns 0 if it is unknown. */
static double estimate(struct runner *r, const struct call *call, const struct nbc_alg *alg)
{
    const struct past *past = past_of(r, alg, call->size);
    if (past->n < 3)
        return 0;
    if (data_for_all(call->coll))
        return extrapolate(past, call->size, true);
    const struct growth *g = growth_of(r, call, alg);
    double doublings = log2(call->size) - past->ranks[2];
    double least = fmax(g->per_rank * call->size, past->time[2] + g->per_doubling * doublings);
    return fmax(extrapolate(past, call->size, g->per_rank > 0), least);
}

/* Returns the longest message of the root, or of rank 0. */
static int64_t longest_message(const struct arguments *a, const struct nbc_alg *alg)
{
    struct own own;
    arguments_shape(a, a->call.root, &own);
    struct nbc_sched *s = nbc_build(alg->build, &own.shape);
    int64_t most = 0;
    for (int i = 0; s && i < s->nops; i++) {
        int64_t bytes = nbc_ref_bytes(&own.shape, nbc_op_a(&s->ops[i]));
        if (s->ops[i].kind != NBC_OP_JOIN && bytes > most)
            most = bytes;
    }
    nbc_sched_free(s);
    return most;
}

/* Numbers of segments of the two short runs from which a long one is estimated. */
static const int64_t segments[2] = {48, 96};

/* Once a pipeline is filled, each further segment takes the same time: the time with many segments
 * is extrapolated from two runs with few segments of the same length. */
static const char *simulate_pipeline(const struct runner *r, const struct arguments *a,
                                     struct entry *e)
{
    int64_t segment = longest_message(a, e->alg);
    double time[2];
    if (segment == 0 || a->call.bytes / segment <= segments[1])
        return call_too_large;
    for (int i = 0; i < 2; i++) {
        struct arguments few;
        struct call call = a->call;
        call.segment = segment;
        call.bytes = segments[i] * segment;
        if (!arguments_make(&few, &call))
            return "out of memory";
        const char *wrong = simulate(r, &few, e);
        arguments_free(&few);
        if (wrong)
            return wrong;
        time[i] = e->result.time;
    }
    double each = (time[1] - time[0]) / (double)((segments[1] - segments[0]) * segment);
    e->result =
        (struct result){.time = time[1] + each * (double)(a->call.bytes - segments[1] * segment)};
    return NULL;
}

static const char *run_entry(struct runner *r, const struct arguments *a, struct entry *e)
{
    struct past *past = past_of(r, e->alg, a->call.size);
    const char *wrong = simulate(r, a, e);
    e->simulated = !wrong;
    if (wrong && r->estimate)
        wrong = simulate_pipeline(r, a, e);
    if (wrong && wrong != call_too_large)
        return wrong;
    if (!wrong)
        remember(past, a->call.size, e->result.time);
    else if (r->estimate)
        e->result.time = estimate(r, &a->call, e->alg);
    e->least = past->n ? past->time[past->n - 1] : 0;
    return NULL;
}

const char *runner_cell(struct runner *r, const struct call *call, const struct nbc_alg *only,
                        struct cell *cell)
{
    struct arguments a;
    struct own own;
    int64_t segment;
    const char *wrong = NULL;
    if (!arguments_make(&a, call))
        return "out of memory";
    arguments_shape(&a, 0, &own);
    const struct nbc_alg *chosen = call_choice(&a, r->rules, &segment);
    *cell = (struct cell){.call = *call, .bounds = call_bounds(call, r->net)};
    for (int i = 0; i < nbc_nalgs && cell->n < MOST_ALGS && !wrong; i++) {
        const struct nbc_alg *alg = &nbc_algs[i];
        if (alg->coll != call->coll || (only && alg != only) || !nbc_alg_applies(alg, &own.shape))
            continue;
        struct entry *e = &cell->entry[cell->n++];
        *e = (struct entry){.alg = alg, .chosen = alg == chosen};
        a.call.segment = alg == chosen && !call->segment ? segment : call->segment;
        if (r->begins)
            r->begins(call, alg);
        wrong = run_entry(r, &a, e);
    }
    arguments_free(&a);
    return wrong;
}
