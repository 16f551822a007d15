/* SPDX-License-Identifier: MIT */
/* Measures start and wait: of all variants, the lower bound and, on request, all algorithms. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "meter.h"
#include "model.h"
#include "plot.h"
#include "sweep.h"

struct cell {
    const struct operands *o;
    bool have[NVARIANTS];
    struct quartiles took[NVARIANTS];
    struct quartiles ratio; /* of the samples of nbcshim to those of the MPI, which alternate */
    int samples;
    double floor;
    const char *algorithm;
    struct contender contender[SWEEP_MOST]; /* with --all-algorithms */
    int ncontenders;
};

static struct wire wire;

/* Of the logarithms of the ratios to the MPI. */
static struct {
    double sum;
    int n;
} ratios;

/* --- measuring ---------------------------------------------------------------------------------*/

static struct quartiles ratio_of(const struct runner *a, const struct runner *b, int samples)
{
    double ratio[MAX_SAMPLES];
    for (int i = 0; i < samples; i++)
        ratio[i] = a->sample[i] / b->sample[i];
    return quartiles_of(ratio, samples);
}

/* A ratio above this is a loss. */
static const double limit = 1.10;

/* Takes samples number `from` to `to` of all variants in turn. */
static void take_samples(struct cell *cell, struct runner *runners, int calls, int from, int to)
{
    for (int i = from; i < to; i++)
        for (int v = 0; v < NVARIANTS; v++)
            if (cell->have[v])
                runners[v].sample[i] = runner_sample(&runners[v], calls);
    cell->samples = to;
    if (cell->have[SHIM] && cell->have[NATIVE])
        cell->ratio = ratio_of(&runners[SHIM], &runners[NATIVE], to);
}

/* Whether noise decides on which side of the limit the ratio is. */
static bool is_doubtful(const struct cell *cell)
{
    return cell->have[SHIM] && cell->have[NATIVE] && cell->ratio.low < limit &&
           cell->ratio.high > limit;
}

/* Repeats a doubtful cell with twice the samples each time. All ranks have the same samples. */
static void sample_until_clear(const struct bench *b, struct cell *cell, struct runner *runners,
                               int calls)
{
    take_samples(cell, runners, calls, 0, b->samples);
    while (is_doubtful(cell) && cell->samples < b->most_samples) {
        int n = 2 * cell->samples < b->most_samples ? 2 * cell->samples : b->most_samples;
        take_samples(cell, runners, calls, cell->samples, n);
    }
}

static void sample_all(const struct bench *b, struct cell *cell)
{
    static struct runner runners[NVARIANTS];
    int calls = 0;
    for (int v = 0; v < NVARIANTS; v++) {
        if (v == NATIVE_PERSISTENT && !b->native_persistent)
            continue;
        cell->have[v] = runner_make(&runners[v], v, cell->o);
        if (cell->have[v] && !calls)
            calls = runner_calibrate(&runners[v], 1e-3);
    }
    sample_until_clear(b, cell, runners, calls);
    for (int v = 0; v < NVARIANTS; v++) {
        if (cell->have[v])
            cell->took[v] = quartiles_of(runners[v].sample, cell->samples);
        runner_free(&runners[v]);
    }
}

static double half_round_trip(const struct bench *b, int64_t bytes, char *data, int turns)
{
    MPI_Request r;
    int other = b->rank ^ 1;
    native.Barrier(b->comm);
    double start = MPI_Wtime();
    for (int i = 0; i < turns && b->rank < 2; i++)
        for (int half = 0; half < 2; half++) {
            if (half == b->rank)
                native.Isend(data, (int)bytes, MPI_BYTE, other, 1, b->comm, &r);
            else
                native.Irecv(data, (int)bytes, MPI_BYTE, other, 1, b->comm, &r);
            native.Wait(&r, MPI_STATUS_IGNORE);
        }
    return (MPI_Wtime() - start) / turns / 2;
}

/* Measures round trips between ranks 0 and 1: medians. */
static void measure_wire(const struct bench *b)
{
    enum { MOST = 15 };
    char *data = calloc(1, 8 << 20);
    int n = b->samples < MOST ? b->samples : MOST;
    wire.n = 0;
    for (int64_t bytes = 8; b->size > 1 && data && bytes <= 8 << 20; bytes *= 8) {
        double samples[MOST];
        int turns = bytes < 65536 ? 200 : 10;
        for (int i = 0; i < n; i++)
            samples[i] = half_round_trip(b, bytes, data, turns);
        double seconds = quartiles_of(samples, n).median;
        PMPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, b->comm);
        wire.point[wire.n].bytes = bytes;
        wire.point[wire.n++].seconds = seconds;
    }
    free(data);
}

/* --- telling -----------------------------------------------------------------------------------*/

static void print_cell(const struct cell *c)
{
    struct quartiles shim_took = c->took[SHIM];
    meter_clear();
    printf("%-22s %9lld", nbc_coll_name(c->o->coll), (long long)cell_bytes(c->o));
    print_time(true, shim_took.median);
    printf(" %7.1f", 50 * (shim_took.high - shim_took.low) / shim_took.median);
    for (int v = NATIVE; v <= ROUNDS; v++)
        print_ratio(c->have[v], c->took[v].median, shim_took.median / c->took[v].median);
    print_ratio(true, c->took[SHIM_PERSISTENT].median,
                c->took[SHIM_PERSISTENT].median / shim_took.median);
    print_time(true, c->floor);
    printf("  %s\n", c->algorithm);
    for (int i = 0; i < c->ncontenders; i++)
        printf("    %-22s %9.2f\n", c->contender[i].alg->name, c->contender[i].median * 1e6);
    fflush(stdout);
}

static void plot_value(const char *picture, const char *series, double x, double y)
{
    plot_add(picture, series, x, y, y, y);
}

static void plot_cell(const struct cell *c)
{
    const char *name = nbc_coll_name(c->o->coll);
    double bytes = (double)cell_bytes(c->o);
    if (c->o->coll == NBC_BARRIER)
        return;
    for (int v = 0; v < NVARIANTS; v++)
        if (c->have[v])
            plot_add(name, variant_names[v], bytes, c->took[v].median * 1e6, c->took[v].low * 1e6,
                     c->took[v].high * 1e6);
    for (int i = 0; i < c->ncontenders; i++)
        plot_value(name, c->contender[i].alg->name, bytes, c->contender[i].median * 1e6);
    plot_value(name, "floor", bytes, c->floor * 1e6);
    if (!c->have[NATIVE])
        return;
    double ratio = c->took[SHIM].median / c->took[NATIVE].median;
    plot_add("ratio", name, bytes, ratio, fmin(ratio, c->ratio.low), fmax(ratio, c->ratio.high));
}

static void json_cell(struct bench *b, const struct cell *c)
{
    if (!json_begin(b, "time", c->o))
        return;
    emit_string(&b->json, "algorithm", 0, c->algorithm);
    emit_real(&b->json, "floor", 4, c->floor);
    emit_number(&b->json, "samples", 0, c->samples);
    if (c->have[SHIM] && c->have[NATIVE])
        json_quartiles(b, "ratio", c->ratio);
    for (int v = 0; v < NVARIANTS; v++)
        if (c->have[v])
            json_quartiles(b, variant_names[v], c->took[v]);
    if (c->ncontenders)
        emit_object(&b->json, "algorithms");
    for (int i = 0; i < c->ncontenders; i++)
        emit_real(&b->json, c->contender[i].alg->name, 4, c->contender[i].median);
    if (c->ncontenders)
        emit_object_end(&b->json);
    json_end(b);
}

static void measure_cell(struct bench *b, struct operands *o)
{
    struct cell cell = {
        .o = o, .algorithm = o->alg ? o->alg->name : "-", .floor = critical_path(o, &wire)};
    sample_all(b, &cell);
    if (b->all_algorithms)
        cell.ncontenders = sweep(o, b->samples, SHIM_PERSISTENT, false, cell.contender);
    if (b->rank != 0)
        return;
    print_cell(&cell);
    json_cell(b, &cell);
    plot_cell(&cell);
    if (!cell.have[NATIVE])
        return;
    ratios.sum += log(cell.took[SHIM].median / cell.took[NATIVE].median);
    ratios.n++;
}

void measure_time(struct bench *b)
{
    runner_warm_up(b->comm, b->samples);
    measure_wire(b);
    if (b->rank == 0)
        printf("%-22s %9s %9s %7s %9s %6s %9s %6s %9s %6s %9s  %s\n", "collective", "bytes", "shim",
               "+-%", "native", "ratio", "rounds", "ratio", "persist", "ratio", "floor",
               "algorithm");
    for_each_cell(b, measure_cell);
    if (b->rank == 0 && ratios.n)
        printf("# geometric mean of shim / native over %d cells: %.3f\n", ratios.n,
               exp(ratios.sum / ratios.n));
}
