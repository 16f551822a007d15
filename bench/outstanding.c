/* SPDX-License-Identifier: MIT */
/* Measures time and memory per operation with many outstanding operations. */
#include <stdlib.h>
#include <string.h>

#include "config.h"

#include "bench.h"
#include "meter.h"
#include "plot.h"

#ifdef HAVE_MALLINFO2
#include <malloc.h>
#endif

static const int numbers[] = {100, 1000, 10000, 40000};

static const enum variant measured[] = {SHIM, NATIVE};

enum {
    NNUMBERS = sizeof numbers / sizeof *numbers,
    NMEASURED = sizeof measured / sizeof *measured
};

/* The variants of the MPI are not measured with so many operations that a run takes longer. */
static const double longest = 2;

/* Limit of the buffers of all operations of a sample. */
static const double most_memory = 1 << 30;

static struct variety {
    struct runner runner;
    bool have[NNUMBERS];
    double seconds[NNUMBERS]; /* of the first run */
    double memory[NNUMBERS];  /* bytes per operation; 0: unknown */
    int most;                 /* operations so far */
    double kept;              /* bytes that it has allocated and not freed so far */
    double sample[NNUMBERS][MAX_SAMPLES];
} varieties[NMEASURED];

/* --- operations --------------------------------------------------------------------------------*/

/* The outstanding operations, each with its own receive buffer. */
struct crowd {
    struct operands one;
    int room;      /* largest number of operations */
    size_t stride; /* doubles */
    double *buffers;
    MPI_Request *requests;
};

static bool crowd_make(struct crowd *c, const struct operands *o)
{
    *c = (struct crowd){.one = *o, .stride = operands_doubles(o)};
    for (int i = 0; i < NNUMBERS; i++)
        if ((double)numbers[i] * (double)(c->stride * sizeof *c->buffers) <= most_memory)
            c->room = numbers[i];
    size_t bytes = c->room * c->stride * sizeof *c->buffers;
    c->buffers = malloc(bytes + 1);
    c->requests = malloc((c->room + 1) * sizeof *c->requests);
    if (!c->buffers || !c->requests)
        return false;
    memset(c->buffers, 0, bytes);
    return true;
}

static void crowd_free(struct crowd *c)
{
    free(c->buffers);
    free(c->requests);
}

/* Returns the bytes allocated by malloc. */
static double heap(void)
{
#ifdef HAVE_MALLINFO2
    struct mallinfo2 all = mallinfo2();
    return (double)all.uordblks + (double)all.hblkhd;
#else
    return 0;
#endif
}

/* Returns the seconds per operation of n; sets *peak to the heap in use when all are started. */
static double crowd_run(struct crowd *c, const struct calls *calls, int n, double *peak)
{
    native.Barrier(c->one.comm);
    double start = MPI_Wtime();
    for (int i = 0; i < n; i++) {
        c->one.recv = c->buffers + i * c->stride;
        operands_start(calls, &c->one, &c->requests[i]);
    }
    if (peak)
        *peak = heap();
    calls->Waitall(n, c->requests, no_statuses);
    return (MPI_Wtime() - start) / n;
}

/* The first run with this number of operations. Memory: what was allocated since the first
 * operation of this variant, including that kept from earlier collectives, on the rank that needs
 * most. Memory kept from runs with more operations says nothing about fewer. */
static void variety_try(struct variety *v, int at, struct crowd *c)
{
    double before = heap(), peak;
    double seconds = numbers[at] * crowd_run(c, v->runner.calls, numbers[at], &peak);
    double figures[] = {seconds, (peak - before + v->kept) / numbers[at]};
    v->kept += heap() - before;
    of_slowest(c->one.comm, figures, 2);
    v->seconds[at] = figures[0];
    v->memory[at] = numbers[at] >= v->most ? figures[1] : 0;
    v->most = numbers[at] > v->most ? numbers[at] : v->most;
}

/* Whether a run with this number is short enough; the time may grow with its square. */
static bool is_short(const struct variety *v, int at)
{
    if (at == 0)
        return true;
    double factor = (double)numbers[at] / numbers[at - 1];
    return v->seconds[at - 1] * factor * factor < longest;
}

/* Takes a sample of as many runs as make 10,000 operations. */
static double variety_sample(struct variety *v, int at, struct crowd *c)
{
    int runs = numbers[at] < 10000 ? 10000 / numbers[at] : 1;
    double each = 0;
    for (int i = 0; i < runs; i++)
        each += crowd_run(c, v->runner.calls, numbers[at], NULL) / runs;
    of_slowest(c->one.comm, &each, 1);
    return each;
}

/* --- telling -----------------------------------------------------------------------------------*/

static void report_variant(struct bench *b, const struct operands *o, int v, int at)
{
    const char *name = variant_names[measured[v]];
    struct quartiles q = quartiles_of(varieties[v].sample[at], b->samples);
    char series[64];
    print_time(true, q.median);
    if (varieties[v].memory[at] > 0)
        printf(" %9.0f", varieties[v].memory[at]);
    else
        printf(" %9s", "-");
    snprintf(series, sizeof series, "%s, %lld bytes, %s", nbc_coll_name(o->coll),
             (long long)cell_bytes(o), name);
    plot_add("outstanding", series, numbers[at], q.median * 1e6, q.low * 1e6, q.high * 1e6);
    if (!json_begin(b, "outstanding", o))
        return;
    emit_string(&b->json, "variant", 0, name);
    emit_number(&b->json, "outstanding", 0, numbers[at]);
    json_quartiles(b, "each", q);
    if (varieties[v].memory[at] > 0)
        emit_real(&b->json, "memory", 9, varieties[v].memory[at]);
    json_end(b);
}

static void report_row(struct bench *b, const struct operands *o, int at)
{
    meter_clear();
    printf("%-22s %9lld %11d", nbc_coll_name(o->coll), (long long)cell_bytes(o), numbers[at]);
    for (int v = 0; v < NMEASURED; v++) {
        if (varieties[v].have[at])
            report_variant(b, o, v, at);
        else
            printf(" %9s %9s", "-", "-");
    }
    printf("\n");
    fflush(stdout);
}

/* --- a cell ------------------------------------------------------------------------------------*/

static void try_all(struct crowd *c)
{
    for (int v = 0; v < NMEASURED; v++)
        for (int at = 0; at < NNUMBERS; at++) {
            bool is_made = at == 0 ? runner_make(&varieties[v].runner, measured[v], &c->one)
                                   : varieties[v].have[at - 1];
            bool is_wanted = measured[v] == SHIM || is_short(&varieties[v], at);
            varieties[v].have[at] = is_made && is_wanted && numbers[at] <= c->room;
            if (varieties[v].have[at])
                variety_try(&varieties[v], at, c);
        }
}

static void sample_all(const struct bench *b, struct crowd *c)
{
    for (int i = 0; i < b->samples; i++)
        for (int at = 0; at < NNUMBERS; at++)
            for (int v = 0; v < NMEASURED; v++)
                if (varieties[v].have[at])
                    varieties[v].sample[at][i] = variety_sample(&varieties[v], at, c);
}

static void measure_cell(struct bench *b, struct operands *o)
{
    struct crowd c;
    bool all = on_all_ranks(b->comm, crowd_make(&c, o));
    if (all) {
        try_all(&c);
        sample_all(b, &c);
    }
    for (int at = 0; all && b->rank == 0 && at < NNUMBERS; at++)
        if (numbers[at] <= c.room)
            report_row(b, o, at);
    crowd_free(&c);
}

void measure_outstanding(struct bench *b)
{
    if (b->rank == 0)
        printf("%-22s %9s %11s %9s %9s %9s %9s\n", "collective", "bytes", "outstanding", "shim",
               "memory", "native", "memory");
    for_each_cell(b, measure_cell);
}
