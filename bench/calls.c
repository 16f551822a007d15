/* SPDX-License-Identifier: MIT */
/* Measures the time of each call in the life of an operation. */
#include "bench.h"
#include "meter.h"

/* INIT and AGAIN initialize a persistent operation: one without and one with a cached plan. FIRST
 * is a nonblocking call without a cached plan, START one with a cached plan, or MPI_Start. WAIT
 * follows START at once, so that most of it is the operation; DONE waits for a complete operation.
 */
enum part { INIT, AGAIN, FREE, FIRST, START, WAIT, DONE, NPARTS };

static const char *const part_names[NPARTS] = {"init",  "again", "free", "first",
                                               "start", "wait",  "done"};

static const enum variant measured[] = {SHIM, NATIVE, SHIM_PERSISTENT, NATIVE_PERSISTENT};

enum { NMEASURED = sizeof measured / sizeof *measured, BATCH = 16 };

static struct runner runners[NMEASURED];
static double samples[NMEASURED][NPARTS][MAX_SAMPLES];

static double clock_cost; /* seconds per call of MPI_Wtime */

static double since(double start)
{
    return MPI_Wtime() - start - clock_cost;
}

static void measure_clock(void)
{
    enum { TURNS = 10, READINGS = 10000 };
    for (int turn = 0; turn < TURNS; turn++) {
        double start = MPI_Wtime();
        for (int i = 1; i < READINGS; i++)
            MPI_Wtime();
        double each = (MPI_Wtime() - start) / READINGS;
        clock_cost = turn == 0 || each < clock_cost ? each : clock_cost;
    }
}

static bool has_part(enum variant v, enum part p)
{
    return p >= START || (p < FIRST) == variant_is_persistent(v);
}

/* Makes so many other calls that the shim evicts its cached plan. */
static void make_forget(const struct operands *o)
{
    enum { OTHERS = 256 };
    MPI_Request request;
    for (int i = 0; i < OTHERS; i++) {
        shim.Bcast_init(o->recv, 1000 + i, MPI_BYTE, 0, o->comm, MPI_INFO_NULL, &request);
        shim.Request_free(&request);
    }
}

static double time_init(const struct runner *r, MPI_Request *made, bool anew)
{
    double total = 0;
    for (int i = 0; i < BATCH; i++) {
        if (anew)
            make_forget(r->o);
        double start = MPI_Wtime();
        operands_init(r->calls, r->o, &made[i]);
        total += since(start);
    }
    return total / BATCH;
}

static double time_free(const struct runner *r, MPI_Request *made)
{
    double start = MPI_Wtime();
    for (int i = 0; i < BATCH; i++)
        r->calls->Request_free(&made[i]);
    return since(start) / BATCH;
}

static void time_making(const struct runner *r, double *part)
{
    MPI_Request made[BATCH];
    part[INIT] = time_init(r, made, true);
    part[FREE] = time_free(r, made);
    part[AGAIN] = time_init(r, made, false);
    time_free(r, made);
}

static void time_first(struct runner *r, double *part)
{
    for (int i = 0; i < BATCH; i++) {
        make_forget(r->o);
        double start = MPI_Wtime();
        runner_start(r);
        part[FIRST] += since(start) / BATCH;
        runner_wait(r);
    }
}

static void time_running(struct runner *r, int calls, double *part)
{
    for (int i = 0; i < calls; i++) {
        double start = MPI_Wtime();
        runner_start(r);
        part[START] += since(start) / calls;
        start = MPI_Wtime();
        runner_wait(r);
        part[WAIT] += since(start) / calls;
    }
    for (int i = 0; i < calls; i++) {
        int flag = 0;
        runner_start(r);
        while (!flag)
            r->calls->Request_get_status(r->request, &flag, MPI_STATUS_IGNORE);
        double start = MPI_Wtime();
        runner_wait(r);
        part[DONE] += since(start) / calls;
    }
}

static void take_sample(const struct bench *b, int v, int calls, int i)
{
    struct runner *r = &runners[v];
    double part[NPARTS] = {0};
    native.Barrier(b->comm);
    if (variant_is_persistent(r->variant))
        time_making(r, part);
    else
        time_first(r, part);
    time_running(r, calls, part);
    of_slowest(b->comm, part, NPARTS);
    for (int p = 0; p < NPARTS; p++)
        samples[v][p][i] = part[p];
}

static void report_variant(struct bench *b, const struct operands *o, int v)
{
    const char *name = variant_names[measured[v]];
    struct quartiles q[NPARTS];
    meter_clear();
    printf("%-22s %9lld %-17s", nbc_coll_name(o->coll), (long long)cell_bytes(o), name);
    for (int p = 0; p < NPARTS; p++) {
        q[p] = quartiles_of(samples[v][p], b->samples);
        print_time(has_part(measured[v], p), q[p].median);
    }
    printf("\n");
    fflush(stdout);
    if (!json_begin(b, "calls", o))
        return;
    emit_string(&b->json, "variant", 0, name);
    for (int p = 0; p < NPARTS; p++)
        if (has_part(measured[v], p))
            json_quartiles(b, part_names[p], q[p]);
    json_end(b);
}

static void measure_cell(struct bench *b, struct operands *o)
{
    measure_variants(
        b, o, &(struct variants){measured, runners, NMEASURED, 5e-4, take_sample, report_variant});
}

void measure_calls(struct bench *b)
{
    measure_clock();
    if (b->rank == 0) {
        printf("%-22s %9s %-17s", "collective", "bytes", "variant");
        for (int p = 0; p < NPARTS; p++)
            printf(" %9s", part_names[p]);
        printf("\n");
    }
    for_each_cell(b, measure_cell);
}
