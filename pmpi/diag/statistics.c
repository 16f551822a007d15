/* SPDX-License-Identifier: MIT */
/* NBCSHIM_STATS, the reporting part: what nbcshim does in this job, at init, and the statistics of
 * base/stats.h at the end. Without the lock, at init and finalize. */
#include "diag/diag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/in_mpi.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/detect.h"
#include "below/device.h"
#include "below/next.h"
#include "engine/progress.h"
#include "op/nodemap.h"
#include "op/rings.h"
#include "op/stage.h"

#include "coll.h"
#include "json.h"

/* Of the JSON file. 1 was an array of the algorithms. */
enum { SCHEMA = 2 };

/* One figure, over those ranks that have it, and the ranks with the least and the most. */
struct spread {
    int64_t least, most, sum, ranks, least_rank, most_rank;
};

/* The figures of a row of nbc_algs. Times in ns: the mean of an operation, and in calls that wait.
 */
enum { STARTED, COMPLETED, EACH, WAITED, NFIGURES };

static bool leads, of_all;
static int64_t began, lasted; /* ns: of this rank, from MPI_Init to MPI_Finalize */
static int nranks = 1, nnodes;

/* Of all ranks, by row of nbc_algs; behind them the time in calls while operations were pending.
 * NULL until they are collected. */
static struct spread (*rows)[NFIGURES], *total_waited;

/* --- the time in calls ------------------------------------------------------------------------ */

/* Nanoseconds for which threads of the program were in calls while operations were pending. */
static int64_t waited;
static NBC_PER_THREAD struct {
    bool any; /* operations were pending when the call began */
    unsigned ncompleted;
} at_enter;

static void call_enter(void)
{
    nbc_in_mpi_enter();
    at_enter.any = nbc_any_active();
    at_enter.ncompleted = __atomic_load_n(&nbc_ncompleted, __ATOMIC_RELAXED);
}

static void call_leave(void)
{
    int64_t took = nbc_in_mpi_leave();
    if (at_enter.any || at_enter.ncompleted != __atomic_load_n(&nbc_ncompleted, __ATOMIC_RELAXED))
        __atomic_fetch_add(&waited, took, __ATOMIC_RELAXED);
}

/* --- over all ranks --------------------------------------------------------------------------- */

static struct spread spread_of(int64_t value, int rank, bool counts)
{
    return counts ? (struct spread){value, value, value, 1, rank, rank} : (struct spread){0};
}

static void spread_add(struct spread *to, const struct spread *from)
{
    if (from->ranks && (!to->ranks || from->least <= to->least)) {
        to->least = from->least;
        to->least_rank = from->least_rank;
    }
    if (from->ranks && (!to->ranks || from->most >= to->most)) {
        to->most = from->most;
        to->most_rank = from->most_rank;
    }
    to->sum += from->sum;
    to->ranks += from->ranks;
}

static void combine(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        spread_add((struct spread *)inout + i, (struct spread *)in + i);
}

static void own_figures(void)
{
    int rank;
    NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < nbc_nalgs; i++) {
        struct nbc_stats s = *nbc_progress_stats(i);
        rows[i][STARTED] = spread_of(s.started, rank, true);
        rows[i][COMPLETED] = spread_of(s.completed, rank, true);
        rows[i][EACH] = spread_of(s.completed ? s.took / s.completed : 0, rank, s.completed);
        rows[i][WAITED] = spread_of(s.waited, rank, s.completed);
    }
    total_waited = rows[nbc_nalgs];
    *total_waited = spread_of(__atomic_load_n(&waited, __ATOMIC_RELAXED), rank, true);
}

static int collect_figures(void)
{
    MPI_Datatype type;
    MPI_Op op;
    rows = calloc(nbc_nalgs + 1, sizeof *rows);
    int mine = rows != NULL, all = false;
    int error = NEXT(Allreduce)(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (error || !all)
        return MPI_ERR_NO_MEM; /* unreached: no memory */
    own_figures();
    NEXT(Type_contiguous)((int)sizeof **rows, MPI_BYTE, &type);
    NEXT(Type_commit)(&type);
    NEXT(Op_create)(combine, 0, &op);
    error = NEXT(Allreduce)(MPI_IN_PLACE, rows, nbc_nalgs * NFIGURES + 1, type, op, MPI_COMM_WORLD);
    NEXT(Op_free)(&op);
    NEXT(Type_free)(&type);
    return error;
}

void nbc_statistics_begin(bool all)
{
    began = nbc_now();
    of_all = all;
}

void nbc_statistics_collect(void)
{
    lasted = nbc_now() - began;
    nnodes = nbc_nodemap_count();
    NEXT(Comm_size)(MPI_COMM_WORLD, &nranks);
    if (of_all && collect_figures()) {
        /* unreached below: no memory */
        free(rows);
        rows = NULL;
    }
}

/* --- what they mean --------------------------------------------------------------------------- */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double mean(struct spread s)
{
    return ratio((double)s.sum, (double)s.ranks);
}

/* By how much the rank that waits most exceeds the mean. */
static double imbalance(struct spread s)
{
    return s.sum > 0 ? (double)s.most / mean(s) - 1 : 0;
}

/* The fraction of the time of operations that do not block in which the rank was not in MPI. */
static double overlap(const struct nbc_stats *s)
{
    return 1 - ratio((double)s->inside, (double)s->flight);
}

/* Of an MPI without MPI_Get_library_version only the header tells. */
#ifdef MPICH2_VERSION
#define VERSION_OF_HEADER "MPICH2 " MPICH2_VERSION
#else
#define VERSION_OF_HEADER "unknown"
#endif

static const char *library_version(char *text, size_t size)
{
    snprintf(text, size, VERSION_OF_HEADER);
#ifdef HAVE_MPI_GET_LIBRARY_VERSION
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (NEXT(Get_library_version)(version, &length) == MPI_SUCCESS)
        snprintf(text, size, "%.*s", (int)strcspn(version, "\n,"), version);
    for (char *c = text; *c; c++)
        if (*c == '\t')
            *c = ' ';
#endif
    return text;
}

static const char *why_active(void)
{
    if (nbc_settings.mode == NBC_MODE_ON)
        return "NBCSHIM=on";
    if (nbc_settings.mode == NBC_MODE_AUTO && nbc_program_wants_us())
        return "the program references a collective that nbcshim provides";
    if (nbc_settings.mode == NBC_MODE_AUTO && nbc_settings.for_blocking)
        return "NBCSHIM_CHECK, NBCSHIM_REDUCTION_ORDER or NBCSHIM_BLOCKING asks for it";
    return "another rank asks for it, or its program references a collective that nbcshim "
           "provides";
}

static const char *blocking_by(void)
{
    const uint32_t all = (UINT32_C(1) << NBC_NCOLLS) - 1, native = nbc_native_blocking & all;
    if (!native)
        return "nbcshim's";
    return native == all ? "the MPI's"
                         : "the MPI's, nbcshim's where the MPI has a fault, or lacks a form with "
                           "MPI_Count that the program references";
}

static const char *level_name(void)
{
    int level = MPI_THREAD_SINGLE;
    NEXT(Query_thread)(&level);
    return level == MPI_THREAD_MULTIPLE     ? "MPI_THREAD_MULTIPLE"
           : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
           : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
                                            : "MPI_THREAD_SINGLE";
}

/* --- lines on standard error ------------------------------------------------------------------ */

static bool is(const char *word)
{
    return nbc_settings.stats && strcmp(nbc_settings.stats, word) == 0;
}

static void introduce_versions(void)
{
    char mpi[256];
    int size;
    NEXT(Comm_size)(MPI_COMM_WORLD, &size);
    fprintf(stderr, "nbcshim: version %s, over %s, %d ranks\n", PACKAGE_VERSION,
            library_version(mpi, sizeof mpi), size);
}

static void print_offloaded(void)
{
    if (!nbc_offloaded)
        return;
    fprintf(stderr, "nbcshim: nonblocking collectives left to the MPI for %s:", nbc_offload_name);
    for (int coll = 0; coll < NBC_NCOLLS; coll++)
        if (nbc_offloaded >> coll & 1)
            fprintf(stderr, " %s", nbc_coll_name(coll));
    fprintf(stderr, " (NBCSHIM_BLOCKING=own: none)\n");
}

static void print_progress(bool hooked)
{
    fprintf(stderr, "nbcshim: blocking collectives: %s; progress in the MPI's own waits: %s%s%s\n",
            blocking_by(), hooked ? "by " : "no (", nbc_hook_state(), hooked ? "" : ")");
    print_offloaded();
}

static void introduce_active(void)
{
    bool thread = nbc_settings.progress == NBC_PROGRESS_THREAD;
    fprintf(stderr, "nbcshim: active: %s\n", why_active());
    fprintf(stderr, "nbcshim: nodes: %d; thread level of the MPI: %s; progress thread: %s\n",
            nbc_nodemap_count(), level_name(), thread ? "yes" : "no");
    if (nbc_shared_npeers > 0)
        fprintf(stderr,
                "nbcshim: messages within a node: in shared memory up to %" PRId64 " bytes\n",
                nbc_shared_most);
    else
        fprintf(stderr, "nbcshim: messages within a node: by the MPI\n");
    print_progress(nbc_hooked);
    if (nbc_device_mpi_takes(NULL))
        fprintf(stderr, "nbcshim: this MPI says that it takes buffers of GPUs\n");
    fprintf(stderr, "nbcshim: rules: %s%sbuilt-in\n", nbc_tuning_file ? nbc_tuning_file : "",
            nbc_tuning_file ? ", then " : "");
}

void nbc_statistics_introduce(void)
{
    bool verbose = is("verbose");
    bool missed =
        nbc_settings.mode == NBC_MODE_AUTO && /* output that an inactive one never writes */
        (nbc_settings.stats || nbc_settings.trace || nbc_settings.timeout);
    if (verbose)
        introduce_versions();
    if (verbose && nbc_enabled)
        introduce_active();
    if (!nbc_enabled && (verbose || missed))
        fprintf(stderr, "nbcshim: inactive: %s\n",
                nbc_settings.mode == NBC_MODE_OFF
                    ? "NBCSHIM=off"
                    : "no rank references a nonblocking or persistent collective; NBCSHIM=on "
                      "activates it");
}

static void print_row(const struct nbc_alg *alg, const struct nbc_stats *s)
{
    char bytes[32] = "-", each[32] = "-", share[32] = "-";
    if (!s->unknown) /* no rank knows all data of a vector collective */
        snprintf(bytes, sizeof bytes, "%" PRId64, s->bytes);
    if (s->completed)
        snprintf(each, sizeof each, "%.2f", (double)s->took / 1000 / (double)s->completed);
    if (s->flight)
        snprintf(share, sizeof share, "%.0f%%", 100 * overlap(s));
    fprintf(stderr, "nbcshim: %-22s %-22s %12" PRId64 " %16s %12s %8s\n", nbc_coll_name(alg->coll),
            alg->name, s->started, bytes, each, share);
}

static void print_table(void)
{
    print_progress(nbc_was_hooked);
    if (nbc_stage_starts[0] || nbc_stage_starts[1])
        fprintf(stderr,
                "nbcshim: GPU memory: %" PRId64 " starts staged, %" PRId64 " direct; %" PRId64
                " bytes copied from it, %" PRId64 " to it; copies under way for %.6f s\n",
                nbc_stage_starts[0], nbc_stage_starts[1], nbc_stage_bytes[0], nbc_stage_bytes[1],
                (double)nbc_stage_time / 1e9);
    fprintf(stderr, "nbcshim: %-22s %-22s %12s %16s %12s %8s\n", "collective", "algorithm", "calls",
            "bytes", "mean us", "overlap");
    for (int i = 0; i < nbc_nalgs; i++) {
        const struct nbc_stats *s = nbc_progress_stats(i);
        if (s->started)
            print_row(&nbc_algs[i], s);
    }
}

static void print_row_of_all(const struct nbc_alg *alg, const struct spread *r)
{
    fprintf(stderr,
            "nbcshim: %-20s %-20s %6" PRId64 " %9" PRId64 " %9" PRId64
            " %10.2f %10.2f %10.2f %7.2f%% %9.0f%%\n",
            nbc_coll_name(alg->coll), alg->name, r[EACH].ranks, r[STARTED].sum, r[COMPLETED].sum,
            (double)r[EACH].least / 1e3, mean(r[EACH]) / 1e3, (double)r[EACH].most / 1e3,
            100 * ratio(mean(r[WAITED]), (double)lasted), 100 * imbalance(r[WAITED]));
}

static void print_all(void)
{
    struct spread w = *total_waited;
    fprintf(stderr, "nbcshim: %d ranks, %.3f s from MPI_Init to MPI_Finalize\n", nranks,
            (double)lasted / 1e9);
    fprintf(stderr,
            "nbcshim: waiting while collectives were pending: minimum %.6f s (rank %d), mean %.6f "
            "s, maximum %.6f s (rank %d); mean: %.2f%% of the time; imbalance %.0f%%\n",
            (double)w.least / 1e9, (int)w.least_rank, mean(w) / 1e9, (double)w.most / 1e9,
            (int)w.most_rank, 100 * ratio(mean(w), (double)lasted), 100 * imbalance(w));
    fprintf(stderr, "nbcshim: %-20s %-20s %6s %9s %9s %10s %10s %10s %8s %10s\n", "collective",
            "algorithm", "ranks", "started", "completed", "us minimum", "mean", "maximum",
            "waiting", "imbalance");
    for (int i = 0; i < nbc_nalgs; i++)
        if (rows[i][STARTED].sum)
            print_row_of_all(&nbc_algs[i], rows[i]);
}

/* --- the file --------------------------------------------------------------------------------- */

/* The name of a class is its lower bound. */
static void write_histogram(struct nbc_json *j, const struct nbc_stats *s)
{
    nbc_json_open(j, "histogram_ns", "{");
    for (int i = 0; i < NBC_STATS_CLASSES; i++) {
        char bound[24];
        snprintf(bound, sizeof bound, "%" PRId64, INT64_C(1) << i);
        if (s->histogram[i])
            nbc_json_int(j, bound, s->histogram[i]);
    }
    nbc_json_close(j, "}");
}

static void write_fraction(struct nbc_json *j, const char *name, double value)
{
    nbc_json_fixed(j, name, (int64_t)(value * 10000 + 0.5), 4);
}

static void write_spread(struct nbc_json *j, const char *name, struct spread s)
{
    nbc_json_open(j, name, "{");
    nbc_json_fixed(j, "minimum", s.least, 9);
    nbc_json_fixed(j, "mean", (int64_t)(mean(s) + 0.5), 9);
    nbc_json_fixed(j, "maximum", s.most, 9);
    nbc_json_close(j, "}");
}

static void write_row_of_all(struct nbc_json *j, const struct spread *r)
{
    nbc_json_open(j, "all_ranks", "{");
    nbc_json_int(j, "ranks", r[EACH].ranks);
    nbc_json_int(j, "started", r[STARTED].sum);
    nbc_json_int(j, "completed", r[COMPLETED].sum);
    write_spread(j, "seconds_each", r[EACH]);
    write_spread(j, "waited_seconds", r[WAITED]);
    write_fraction(j, "share_of_wall", ratio(mean(r[WAITED]), (double)lasted));
    write_fraction(j, "imbalance", imbalance(r[WAITED]));
    nbc_json_close(j, "}");
}

static void write_row(struct nbc_json *j, int alg)
{
    const struct nbc_stats *s = nbc_progress_stats(alg);
    nbc_json_line(j, NULL, "{");
    nbc_json_string(j, "collective", nbc_coll_name(nbc_algs[alg].coll));
    nbc_json_string(j, "algorithm", nbc_algs[alg].name);
    nbc_json_int(j, "calls", s->started);
    if (s->unknown)
        nbc_json_string(j, "bytes", NULL);
    else
        nbc_json_int(j, "bytes", s->bytes);
    nbc_json_int(j, "completed", s->completed);
    nbc_json_fixed(j, "seconds", s->took, 9);
    if (s->flight)
        write_fraction(j, "overlap", overlap(s));
    else
        nbc_json_string(j, "overlap", NULL);
    write_histogram(j, s);
    if (rows)
        write_row_of_all(j, rows[alg]);
    nbc_json_close(j, "}");
}

static void write_job(struct nbc_json *j)
{
    char mpi[256];
    nbc_json_int(j, "schema", SCHEMA);
    nbc_json_string(j, "nbcshim", PACKAGE_VERSION);
    nbc_json_string(j, "mpi", library_version(mpi, sizeof mpi));
    nbc_json_string(j, "hook", nbc_was_hooked ? nbc_hook_state() : NULL);
    nbc_json_string(j, "blocking", blocking_by());
    nbc_json_bool(j, "progress_thread", nbc_settings.progress == NBC_PROGRESS_THREAD);
    nbc_json_string(j, "rules", nbc_tuning_file ? nbc_tuning_file : "built-in");
    if (!lasted) /* there was no MPI_COMM_WORLD */
        return;  /* unreached: no memory */
    nbc_json_int(j, "ranks", nranks);
    nbc_json_int(j, "nodes", nnodes);
    nbc_json_fixed(j, "wall_seconds", lasted, 9);
    if (rows)
        write_spread(j, "waited_seconds", *total_waited);
}

static void write_file(FILE *out)
{
    struct nbc_json j = {.out = out};
    nbc_json_open(&j, NULL, "{");
    write_job(&j);
    nbc_json_open(&j, "algorithms", "[");
    for (int i = 0; i < nbc_nalgs; i++)
        if (nbc_progress_stats(i)->started || (rows && rows[i][STARTED].sum))
            write_row(&j, i);
    nbc_json_close(&j, "\n]}\n");
}

void nbc_statistics_setup(bool lead)
{
    leads = lead;
    if (leads && nbc_settings.stats && !is("1") && !is("verbose") &&
        !nbc_settings_try_file("NBCSHIM_STATS", nbc_settings.stats))
        nbc_settings.stats = NULL;
    if (nbc_settings.stats)
        nbc_next_observe(call_enter, call_leave, nbc_in_mpi);
}

static void write_named_file(void)
{
    FILE *out = nbc_settings_open_file("NBCSHIM_STATS", nbc_settings.stats);
    if (!out)
        return; /* unreached: no memory */
    write_file(out);
    nbc_settings_close_file(out, "NBCSHIM_STATS", nbc_settings.stats);
}

void nbc_statistics_print(void)
{
    if (leads && is("verbose") && rows)
        print_all();
    else if (leads && (is("1") || is("verbose")))
        print_table();
    else if (leads && nbc_settings.stats)
        write_named_file();
    free(rows);
    rows = NULL;
}
