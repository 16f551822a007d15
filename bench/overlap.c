/* SPDX-License-Identifier: MIT */
/* Measures the overlap of an operation with computation (Lawry, Wilson, Maccabe, Brightwell,
 * "COMB", Cluster 2002, and the OSU benchmarks). With a computation that alone takes about as long
 * as the operation alone, the overlap is
 *
 *     1 − (time of both together − time of the computation) / time of the operation
 *
 * It is 1 if the operation takes no extra time, 0 if both run one after the other, and negative if
 * they slow each other down. Each sample has an overlap of its own, in which the computation takes
 * as long as the operation has just taken alone: operations between computations are slower than
 * those that follow each other, and how much slower changes in the course of a run. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench.h"
#include "meter.h"
#include "plot.h"

/* The number of calls of MPI_Test in a computation, in the phase with tests. */
enum { TESTS = 32 };

enum phase { ALONE, COMPUTE, PLAIN, TESTED, NPHASES };

static const char *const phase_names[NPHASES] = {"alone", "compute", "total", "total_tests"};

static const enum variant measured[] = {SHIM, NATIVE};

enum { NMEASURED = sizeof measured / sizeof *measured };

static struct runner runners[NMEASURED];
static double samples[NMEASURED][NPHASES][MAX_SAMPLES];

/* --- the computation ---------------------------------------------------------------------------*/

static double turns_per_second;
static volatile double sink;

/* A fixed amount of work, not of time, which takes longer if the processor is shared. */
static void work(double turns)
{
    double x = sink;
    for (long i = 0; i < (long)turns; i++)
        x = x * 0.999999 + 1e-6;
    sink = x;
}

static void measure_work(const struct bench *b)
{
    const double turns = 1e6;
    double best = 0;
    for (int i = 0; i < 9; i++) {
        double start = MPI_Wtime();
        work(turns);
        double took = MPI_Wtime() - start;
        best = i == 0 || took < best ? took : best;
    }
    of_slowest(b->comm, &best, 1);
    turns_per_second = turns / best;
}

/* Sleeps: as if an accelerator computed and the processor were free. */
static void rest(double seconds)
{
    time_t whole = (time_t)seconds;
    clock_nanosleep(CLOCK_MONOTONIC, 0,
                    &(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

/* Computes, and tests r meanwhile unless it is NULL. */
static void compute(double seconds, struct runner *r)
{
    for (int i = 0; i < TESTS; i++) {
        work(seconds * turns_per_second / TESTS);
        if (r)
            runner_test(r);
    }
}

/* --- samples -----------------------------------------------------------------------------------*/

/* An operation and a rest, if there is one. Returns the seconds in the start and in the wait. */
static double idle_call(struct runner *r, double seconds)
{
    double start = MPI_Wtime();
    runner_start(r);
    double started = MPI_Wtime();
    if (seconds > 0)
        rest(seconds);
    double rested = MPI_Wtime();
    runner_wait(r);
    return started - start + (MPI_Wtime() - rested);
}

/* A rest ends late, by a time that is as long as a short operation and that differs between ranks,
 * and a collective lets all ranks wait for the last one. So what counts is the time in the calls,
 * of which the median is taken, and the rest as it was intended. */
double idle_sample(const struct bench *b, struct runner *r, int calls, double seconds)
{
    enum { LEAST = 9, MOST = 512 }; /* calls */
    double inside[MOST];
    int n = calls < LEAST ? LEAST : calls > MOST ? MOST : calls;
    native.Barrier(b->comm);
    for (int i = 0; i < n; i++)
        inside[i] = idle_call(r, seconds);
    double each = quartiles_of(inside, n).median;
    of_slowest(b->comm, &each, 1);
    return seconds + each;
}

/* seconds: the intended length of a computation */
static double overlap_sample(const struct bench *b, struct runner *r, enum phase phase, int calls,
                             double seconds)
{
    native.Barrier(b->comm);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        if (phase != COMPUTE)
            runner_start(r);
        if (phase != ALONE)
            compute(seconds, phase == TESTED ? r : NULL);
        if (phase != COMPUTE)
            runner_wait(r);
    }
    double each = (MPI_Wtime() - start) / calls;
    of_slowest(b->comm, &each, 1);
    return each;
}

/* The overlap in the phase `total` of each sample. */
static struct quartiles hidden(const struct bench *b, double (*sample)[MAX_SAMPLES],
                               enum phase total)
{
    static double share[MAX_SAMPLES];
    for (int i = 0; i < b->samples; i++)
        share[i] = 1 - (sample[total][i] - sample[COMPUTE][i]) / sample[ALONE][i];
    return quartiles_of(share, b->samples);
}

/* The idle computation has no phase with tests, which would wake up the processor. */
static int last_phase(const struct bench *b)
{
    return b->idle ? PLAIN : TESTED;
}

static void plot(const struct operands *o, const char *name, const char *how,
                 struct quartiles share)
{
    char series[64];
    const char *who = strcmp(name, variant_names[SHIM]) == 0 ? "nbcshim" : "the MPI";
    snprintf(series, sizeof series, "%s, %s%s", nbc_coll_name(o->coll), who, how);
    if (o->coll != NBC_BARRIER)
        plot_add("overlap", series, (double)cell_bytes(o), 100 * share.median, 100 * share.low,
                 100 * share.high);
}

static void json_cell(struct bench *b, const struct operands *o, const char *name,
                      const struct quartiles *q, const struct quartiles *share)
{
    if (!json_begin(b, "overlap", o))
        return;
    emit_string(&b->json, "variant", 0, name);
    emit_string(&b->json, "progress", 0, b->progress);
    emit_bool(&b->json, "idle", 0, b->idle);
    for (int p = 0; p <= last_phase(b); p++) {
        json_quartiles(b, phase_names[p], q[p]);
        if (p < PLAIN)
            continue;
        emit_real(&b->json, p == TESTED ? "overlap_tests" : "overlap", 4, share[p].median);
        json_quartiles(b, p == TESTED ? "quartiles_tests" : "quartiles", share[p]);
    }
    json_end(b);
}

static void report_variant(struct bench *b, const struct operands *o, int v)
{
    const char *name = variant_names[measured[v]];
    struct quartiles q[NPHASES], share[NPHASES];
    for (int p = PLAIN; p <= last_phase(b); p++) /* before the samples are sorted */
        share[p] = hidden(b, samples[v], p);
    meter_clear();
    printf("%-22s %9lld %-9s", nbc_coll_name(o->coll), (long long)cell_bytes(o), name);
    for (int p = 0; p <= last_phase(b); p++) {
        q[p] = quartiles_of(samples[v][p], b->samples);
        print_time(true, q[p].median);
        if (p < PLAIN)
            continue;
        printf(" %7.0f%%", 100 * share[p].median);
        plot(o, name, p == TESTED ? ", tests" : "", share[p]);
    }
    printf("\n");
    fflush(stdout);
    json_cell(b, o, name, q, share);
}

static void take_sample(const struct bench *b, int v, int calls, int i)
{
    double seconds = 0;
    if (b->idle) {
        seconds = idle_sample(b, &runners[v], calls, 0);
        samples[v][ALONE][i] = seconds;
        samples[v][COMPUTE][i] = seconds;
        samples[v][PLAIN][i] = idle_sample(b, &runners[v], calls, seconds);
        return;
    }
    for (int p = ALONE; p <= last_phase(b); p++) {
        double took = overlap_sample(b, &runners[v], p, calls, seconds);
        samples[v][p][i] = took;
        seconds = p == ALONE ? took : seconds;
    }
}

static void measure_cell(struct bench *b, struct operands *o)
{
    measure_variants(
        b, o, &(struct variants){measured, runners, NMEASURED, 2e-3, take_sample, report_variant});
}

void measure_overlap(struct bench *b)
{
    prctl(PR_SET_TIMERSLACK, 1UL); /* makes sleeps exact */
    measure_work(b);
    if (b->rank == 0)
        printf("%-22s %9s %-9s %9s %9s %9s %8s %9s %8s\n", "collective", "bytes", "variant",
               "alone", "compute", "together", "overlap", "tests", "overlap");
    for_each_cell(b, measure_cell);
}
