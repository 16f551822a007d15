/* SPDX-License-Identifier: MIT */
#include "selftest.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "nbcshim.h"

#include "fast_network.h"
#include "meter.h"
#include "runner.h"

/* Seconds that it takes by default, of which results take a part. */
enum { DEFAULT_SECONDS = 50 };
static const double part_of_results = 0.4;

static const char *suffix = ""; /* of this program's name where MPIs share a prefix: .openmpi */
static double begun;
static unsigned patience; /* seconds for a step, after which a rank that still waits has hung */
static int rank, size;

#define HANGS "WRONG: a call hangs"

/* Rank 0, --json: what completes the output if the next call hangs, also when a list is open. */
static const char *complete;
#define OF_OBJECT ", \"right\": false, \"verdict\": \"" HANGS "\"}\n"
static const char of_object[] = OF_OBJECT, of_list[] = "]" OF_OBJECT;

/* Rank 0 is the first to give up, and says so before the launcher ends it. */
static void keep_watch(void)
{
    alarm(rank == 0 ? patience : patience + 3);
}

bool selftest_has_time(MPI_Comm comm, double seconds)
{
    int more = MPI_Wtime() - begun < seconds;
    fflush(stdout); /* before a call that may hang */
    keep_watch();
    PMPI_Bcast(&more, 1, MPI_INT, 0, comm);
    return more;
}

/* A sample has up to 2000 runs: on a busy node they take longer than the patience. */
static void on_alarm(int signal)
{
    static sig_atomic_t runs;
    static const char text[] =
        "nbcinfo: selftest: " HANGS "; above is what it waits for (NBCSHIM_TIMEOUT)\n";
    (void)signal;
    if (runs != runner_runs) {
        runs = runner_runs;
        keep_watch();
        return;
    }
    if (complete && write(STDOUT_FILENO, complete, strlen(complete)) < 0)
        _exit(1);
    if (rank == 0 && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    _exit(1);
}

/* Before a rank gives up, the library tells what it waits for. */
static void watch(int seconds)
{
    char text[16];
    patience = (unsigned)(12 + seconds / 2);
    snprintf(text, sizeof text, "%d", 5 + seconds / 4);
    setenv("NBCSHIM_TIMEOUT", text, 0);
    signal(SIGALRM, on_alarm);
    alarm(patience + 60); /* first, all processes of the job start */
}

/* --- where the ranks are --- */

struct place {
    char node[MPI_MAX_PROCESSOR_NAME + 1];
    char adapters[256];
    int processors;
    bool nvidia, amd;
    int ranks; /* of the node, in its first entry; else 0 */
};

static struct place place_of_rank(void)
{
    struct place p = {.processors = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    int length;
    MPI_Get_processor_name(p.node, &length);
    nbc_fast_adapters(p.adapters, sizeof p.adapters);
    p.nvidia = access("/dev/nvidiactl", F_OK) == 0;
    p.amd = access("/dev/kfd", F_OK) == 0;
    return p;
}

static int by_node(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->node, ((const struct place *)b)->node);
}

/* Returns the number of nodes, whose places come first. */
static int count_nodes(struct place *places)
{
    int n = 0;
    qsort(places, (size_t)size, sizeof *places, by_node);
    for (int i = 0; i < size; i++) {
        if (n == 0 || strcmp(places[n - 1].node, places[i].node) != 0) {
            places[n] = places[i];
            places[n++].ranks = 0;
        }
        places[n - 1].ranks++;
    }
    return n;
}

static void emit_node(struct emit *e, const struct place *p)
{
    const char *devices = p->nvidia && p->amd ? "nvidia amd"
                          : p->nvidia         ? "nvidia"
                          : p->amd            ? "amd"
                                              : "";
    emit_row(e, NULL);
    emit_string(e, "node", 20, p->node);
    emit_number(e, "ranks", 6, p->ranks);
    emit_number(e, "processors", 6, p->processors);
    emit_string(e, "adapters", 24, *p->adapters || e->json ? p->adapters : "no fast network");
    emit_string(e, "devices", 0, *devices || e->json ? devices : "no GPU");
    emit_row_end(e);
}

/* Returns the number of nodes at rank 0. */
static int show_nodes(struct emit *e)
{
    enum { MOST_ROWS = 16 };
    struct place mine = place_of_rank();
    struct place *all = calloc(rank == 0 ? (size_t)size : 1, sizeof *all);
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, 1);
    PMPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
    int n = rank == 0 ? count_nodes(all) : 0;
    if (rank == 0)
        emit_list(e, "nodes", "Nodes: ranks, processors, network adapters, devices");
    for (int i = 0; i < n && (e->json || i < MOST_ROWS); i++)
        emit_node(e, &all[i]);
    if (n > MOST_ROWS && !e->json)
        fprintf(e->writer.out, "  ... and %d more\n", n - MOST_ROWS);
    if (rank == 0)
        emit_list_end(e);
    free(all);
    return n;
}

/* --- the report --- */

static int sum(const int *of, int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += of[i];
    return s;
}

/* Returns the names of the collectives of which the array has a nonzero number. */
static const char *names(const int *of, char *text, size_t room)
{
    size_t n = 0;
    *text = '\0';
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++)
        if (of[coll] && n < room)
            n += (size_t)snprintf(text + n, room - n, "%s%s", n ? " " : "", nbc_coll_name(coll));
    return text;
}

static void show_right(struct emit *e, const struct right *r)
{
    emit_list(e, "results", "Results: kind of call, operations of each rank");
    for (int i = 0; i < KINDS_OF_CALL; i++) {
        emit_row(e, NULL);
        emit_string(e, "kind", 20, right_kinds[i]);
        emit_number(e, "operations", 8, r->calls[i]);
        emit_row_end(e);
    }
    emit_list_end(e);
    if (!e->json && !sum(r->failures, NBC_NCOLLS))
        return;
    emit_list(e, "wrong", "Wrong: failures of all ranks");
    for (enum nbc_coll coll = 0; coll < NBC_NCOLLS; coll++) {
        if (!r->failures[coll])
            continue;
        emit_row(e, NULL);
        emit_string(e, "collective", 20, nbc_coll_name(coll));
        emit_number(e, "failures", 8, r->failures[coll]);
        emit_row_end(e);
    }
    emit_list_end(e);
}

/* Prints the command that finds better rules for this job's ranks. */
static void show_remedy(struct emit *e, const int *slow)
{
    char list[512], command[700];
    if (!sum(slow, NBC_NCOLLS))
        return;
    snprintf(command, sizeof command, "nbctune%s --rules %s >rules", suffix,
             names(slow, list, sizeof list));
    if (e->json)
        emit_string(e, "remedy", 0, command);
    else
        fprintf(e->writer.out,
                "\nAnother algorithm takes half the time. On the same ranks, measure rules and "
                "then use them:\n"
                "  LAUNCHER %s\n  NBCSHIM_TUNING=$PWD/rules\n",
                command);
}

/* Whether nbcshim carries out the calls, and not the MPI: only its operations have an algorithm. */
static bool is_active(void)
{
    MPI_Request r;
    long long segment;
    if (MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r) != MPI_SUCCESS)
        return false;
    bool active = nbcshim_algorithm(r, &segment) != NULL;
    MPI_Request_free(&r);
    return active;
}

static int conclude(struct emit *e, const struct right *r, int nodes, int nslow, bool active)
{
    char text[1024], list[512];
    int failures = sum(r->failures, NBC_NCOLLS), calls = sum(r->calls, KINDS_OF_CALL);
    bool right = active && !failures && r->rounds > 0;
    if (!active)
        snprintf(text, sizeof text,
                 "NOT TESTED: nbcshim does nothing here (NBCSHIM_STATS=1 tells why)");
    else if (failures)
        snprintf(text, sizeof text, "WRONG: %d failures of %s on %d ranks", failures,
                 names(r->failures, list, sizeof list), size);
    else if (!right)
        snprintf(text, sizeof text, "NOT TESTED: the time was too short for one call of each kind");
    else
        snprintf(
            text, sizeof text,
            "right: %d operations per rank, %d with large counts; ranks: %d, nodes: %d, rules to "
            "tune: %d; %.0f s",
            calls, r->large, size, nodes, nslow, MPI_Wtime() - begun);
    if (e->json) {
        emit_bool(e, "right", 0, right);
        emit_string(e, "verdict", 0, text);
    } else {
        fprintf(e->writer.out, "\nnbcinfo: selftest: %s\n", text);
    }
    return !right;
}

/* --- the run --- */

static void show_times(struct emit *e, double seconds, int *slow)
{
    if (rank == 0)
        emit_list(e, "times",
                  "Times: bytes, start to completion by nbcshim and by the MPI, algorithm");
    complete = complete ? of_list : NULL;
    int left = times_run(e, seconds, slow);
    complete = NULL;
    if (rank == 0)
        emit_list_end(e);
    if (rank == 0 && left && !e->json)
        fprintf(e->writer.out, "  %d more were left out: no time\n", left);
}

static int run(struct emit *e, void (*about)(struct emit *e), const struct selftest_options *o)
{
    int slow[NBC_NCOLLS] = {0}, status = 0, seconds = o->seconds ? o->seconds : DEFAULT_SECONDS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    bool active = is_active();
    struct right r = {0};
    if (rank == 0) {
        emit_begin(e);
        about(e);
        meter_begin(0, true);
    }
    int nodes = show_nodes(e);
    complete = rank == 0 && e->json ? of_object : NULL;
    if (active)
        r = right_run(o->threads, seconds * part_of_results, seconds);
    if (rank == 0)
        meter_clear();
    if (rank == 0)
        show_right(e, &r);
    if (active && size > 1)
        show_times(e, seconds, slow);
    if (rank == 0) {
        meter_end();
        show_remedy(e, slow);
        status = conclude(e, &r, nodes, sum(slow, NBC_NCOLLS), active);
        emit_end(e);
    }
    PMPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return status;
}

int selftest(int argc, char **argv, struct emit *e, void (*about)(struct emit *e),
             const struct selftest_options *options)
{
    int status = 2;
    const char *name = strrchr(argv[0], '/');
    name = strchr(name ? name : argv[0], '.');
    suffix = name ? name : "";
    watch(options->seconds ? options->seconds : DEFAULT_SECONDS);
    bool enough = right_init(&argc, &argv, options->threads);
    begun = MPI_Wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (enough)
        status = run(e, about, options);
    else if (rank == 0)
        fprintf(stderr, "nbcinfo: --threads: this MPI has no MPI_THREAD_MULTIPLE\n");
    fflush(stdout);
    keep_watch();
    MPI_Finalize();
    return status;
}
