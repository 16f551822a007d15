/* SPDX-License-Identifier: MIT */
/* Times of nbcinfo --selftest, measured as nbcbench and nbctune do. */
#include "selftest.h"

#include <string.h>

#include "meter.h"
#include "runner.h"
#include "sweep.h"

enum { SAMPLES = 5, SWEEP_SAMPLES = 3, NSIZES = 5 };

static const enum nbc_coll measured[] = {NBC_BARRIER,  NBC_BCAST,  NBC_GATHER,   NBC_ALLGATHER,
                                         NBC_ALLTOALL, NBC_REDUCE, NBC_ALLREDUCE};
enum { NMEASURED = sizeof measured / sizeof *measured };
static const int64_t sizes[NSIZES] = {8, 1024, 16384, 131072, 1048576};

/* An algorithm is badly wrong if another one takes half the time, and saves more than this. */
static const double factor = 2, least_gain = 3e-6;

struct cell {
    struct operands o;
    int64_t bytes;
    double shim, native;           /* seconds; native is 0 if the MPI lacks the function */
    const struct nbc_alg *instead; /* what takes half the time at most, or NULL */
    double now, then;              /* the two algorithms, persistent */
};

static void measure_sides(struct cell *c)
{
    static struct runner shims, natives; /* with room for many samples */
    int calls = 1;
    bool theirs = runner_make(&natives, NATIVE, &c->o), ours = runner_make(&shims, SHIM, &c->o);
    if (ours)
        calls = runner_calibrate(&shims, 1e-3);
    for (int i = 0; ours && i < SAMPLES; i++) {
        shims.sample[i] = runner_sample(&shims, calls);
        if (theirs)
            natives.sample[i] = runner_sample(&natives, calls);
    }
    c->shim = ours ? quartiles_of(shims.sample, SAMPLES).median : 0;
    c->native = ours && theirs ? quartiles_of(natives.sample, SAMPLES).median : 0;
    runner_free(&shims);
    runner_free(&natives);
}

static double time_of(const struct contender *at, int n, const struct nbc_alg *alg)
{
    for (int i = 0; i < n; i++)
        if (at[i].alg == alg)
            return at[i].median;
    return 0;
}

/* Finds an algorithm that takes half the time of what nbcshim selects, in three measurements one
 * after the other: other programs disturb one. */
static void find_better(struct cell *c, double seconds)
{
    struct contender at[SWEEP_MOST];
    const struct nbc_alg *best = NULL;
    for (int pass = 0; pass < 3; pass++) {
        if (!selftest_has_time(c->o.comm, seconds))
            return;
        int n = sweep(&c->o, SWEEP_SAMPLES + 2 * pass, SHIM_PERSISTENT, true, at);
        double now = time_of(at, n, NULL);
        for (int i = 1; pass == 0 && i < n; i++)
            if (!best || at[i].median < time_of(at, n, best))
                best = at[i].alg;
        double then = best ? time_of(at, n, best) : 0;
        if (!best || now < factor * then || now - then < least_gain)
            return;
        c->now = now;
        c->then = then;
    }
    c->instead = best;
}

static void emit_time(struct emit *e, const char *name, double seconds)
{
    char text[32] = "-";
    if (e->json) {
        if (seconds > 0)
            emit_real(e, name, 4, seconds * 1e6);
        return;
    }
    if (seconds > 0)
        snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
    emit_string(e, name, 14, text);
}

static void emit_cell(struct emit *e, const struct cell *c)
{
    emit_row(e, NULL);
    emit_string(e, "collective", 12, nbc_coll_name(c->o.coll));
    emit_number(e, "bytes", 9, c->bytes);
    emit_time(e, "nbcshim_us", c->shim);
    emit_time(e, "mpi_us", c->native);
    emit_string(e, "algorithm", 22, c->o.alg ? c->o.alg->name : "-");
    if (c->instead && e->json) {
        emit_string(e, "instead", 0, c->instead->name);
        emit_real(e, "algorithm_us", 4, c->now * 1e6);
        emit_real(e, "instead_us", 4, c->then * 1e6);
    } else if (c->instead) {
        fprintf(e->writer.out, " slow: %.1f us, %s %.1f us", c->now * 1e6, c->instead->name,
                c->then * 1e6);
    }
    emit_row_end(e);
}

/* Whether the blocks of all ranks fit into memory and into the time. */
static bool fits(enum nbc_coll coll, int64_t bytes, int size)
{
    enum { MOST = 64 << 20 };
    bool blocks = coll == NBC_GATHER || coll == NBC_ALLGATHER || coll == NBC_ALLTOALL;
    return !blocks || bytes * size <= MOST;
}

/* Returns whether all ranks had the memory. */
static bool measure(struct cell *c, enum nbc_coll coll, MPI_Comm comm, int64_t bytes,
                    double seconds)
{
    c->bytes = coll == NBC_BARRIER ? 0 : bytes;
    int ok = operands_make(&c->o, coll, comm, (int)(bytes / (int64_t)sizeof(double))), all;
    PMPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, comm);
    if (all) {
        operands_ask(&c->o);
        measure_sides(c);
        find_better(c, seconds);
    }
    operands_free(&c->o);
    return all;
}

static struct cell cells[NMEASURED][NSIZES];

/* Small sizes of all collectives first: the large ones are left out if time runs out. */
static int measure_all(MPI_Comm comm, int rank, int size, double seconds)
{
    int left = 0;
    for (int s = 0; s < NSIZES; s++)
        for (int i = 0; i < NMEASURED; i++) {
            enum nbc_coll coll = measured[i];
            if ((coll == NBC_BARRIER && s > 0) || !fits(coll, sizes[s], size))
                continue;
            if (rank == 0)
                meter_step("times: %s, %lld bytes", nbc_coll_name(coll), (long long)sizes[s]);
            bool done = selftest_has_time(comm, seconds) &&
                        measure(&cells[i][s], coll, comm, sizes[s], seconds);
            left += !done;
        }
    return left;
}

int times_run(struct emit *e, double seconds, int slow[NBC_NCOLLS])
{
    int rank, size, ring = 1;
    MPI_Comm comm;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!calls_load())
        return NMEASURED * NSIZES;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
    runner_warm_up(comm, ENOUGH);
    int left = measure_all(comm, rank, size, seconds);
    MPI_Comm_free(&comm);
    if (rank > 0)
        return left;
    meter_clear();
    for (int i = 0; i < NMEASURED; i++)
        for (int s = 0; s < NSIZES; s++) {
            if (cells[i][s].shim > 0)
                emit_cell(e, &cells[i][s]);
            slow[measured[i]] |= cells[i][s].instead != NULL;
        }
    return left;
}
