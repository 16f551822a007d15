/* SPDX-License-Identifier: MIT */
#include "buildcost.h"

#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "exec.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- a transport on which nothing ever arrives ------------------------------------------------ */

static int count_post(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    (void)self, (void)addr, (void)count, (void)type, (void)peer;
    *h = 1;
    return 0;
}

static int poll_none(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    (void)self, (void)n, (void)h, (void)done;
    *ndone = 0;
    return 0;
}

static int copy(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src, int64_t scount,
                int stype)
{
    (void)self, (void)dst, (void)dcount, (void)dtype, (void)src, (void)scount, (void)stype;
    return 0;
}

static int reduce(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                  int type)
{
    (void)self, (void)dst, (void)left, (void)right, (void)count, (void)type;
    return 0;
}

static const struct nbc_transport idle = {
    .send = count_post,
    .recv = count_post,
    .poll = poll_none,
    .copy = copy,
    .reduce = reduce,
};

/* --- measuring -------------------------------------------------------------------------------- */

static int compare(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

static double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, compare);
    return times[n / 2];
}

static size_t memory_of(const struct nbc_sched *s)
{
    return malloc_usable_size((void *)s) + malloc_usable_size(s->ops);
}

struct cost {
    double build, start; /* seconds */
    size_t memory;
    int nops, nsucc;
};

/* Returns 0 if memory ran out. */
static double time_start(const struct nbc_sched *s)
{
    void *memory = malloc(nbc_exec_memory(s));
    struct nbc_exec exec;
    if (!memory)
        return 0;
    nbc_exec_init(&exec, s, &idle, NULL, memory);
    nbc_exec_start(&exec); /* once, to touch the memory */
    double from = now();
    nbc_exec_init(&exec, s, &idle, NULL, memory);
    nbc_exec_start(&exec);
    double spent = now() - from;
    free(memory);
    return spent;
}

enum { RANKS = 64, REPEATS = 3 };

/* Medians over some ranks; the rank with the largest schedule for its size. */
static struct cost measure(const struct arguments *a, const struct nbc_alg *alg, int nranks)
{
    struct cost cost = {0};
    double build[RANKS], start[RANKS];
    int n = 0;
    for (int i = 0; i < nranks; i++) {
        struct own own;
        int rank = i == 0 ? 0 : (int)((uint64_t)i * 2654435761u % (uint64_t)a->call.size);
        arguments_shape(a, rank, &own);
        struct nbc_sched *s = NULL;
        double best = 1e9;
        for (int k = 0; k < REPEATS; k++) {
            nbc_sched_free(s);
            double from = now();
            s = nbc_build(alg->build, &own.shape);
            double spent = now() - from;
            best = spent < best ? spent : best;
        }
        if (!s)
            continue;
        build[n] = best;
        start[n++] = time_start(s);
        size_t memory = memory_of(s);
        cost.memory = memory > cost.memory ? memory : cost.memory;
        cost.nops = s->nops > cost.nops ? s->nops : cost.nops;
        cost.nsucc = s->nsucc > cost.nsucc ? s->nsucc : cost.nsucc;
        nbc_sched_free(s);
    }
    if (n > 0) {
        cost.build = median(build, n);
        cost.start = median(start, n);
    }
    return cost;
}

enum { MANY = 100000 }; /* operations: from here on one rank suffices */

void buildcost_head(FILE *out)
{
    fprintf(out, "%-22s %-23s %9s %9s %12s %12s %10s\n", "collective", "algorithm", "ops", "edges",
            "build us", "bytes", "start us");
}

void buildcost_line(const struct call *call, const struct nbc_alg *alg, FILE *out)
{
    struct arguments a, few;
    struct call fewer = *call;
    fewer.size = call->size > 64 ? call->size / 64 : 1;
    if (!arguments_make(&few, &fewer))
        return;
    if (!arguments_make(&a, call)) {
        arguments_free(&few);
        return;
    }
    struct cost small = measure(&few, alg, RANKS);
    bool grows = small.nops > fewer.size / 4 && small.nops > 256;
    struct cost cost = measure(&a, alg, grows && small.nops > MANY / 64 ? 1 : RANKS);
    grows = cost.nops > 16L * small.nops;
    fprintf(out, "%-22s %-23s %9d %9d %12.2f %12zu %10.2f%s\n", nbc_coll_name(call->coll),
            alg->name, cost.nops, cost.nsucc, cost.build * 1e6, cost.memory, cost.start * 1e6,
            grows ? "  linear in the ranks" : "");
    arguments_free(&few);
    arguments_free(&a);
}
