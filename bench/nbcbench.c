/* SPDX-License-Identifier: MIT */
/* nbcbench: measures the shim's collectives and those of the MPI, interleaved in one process.
 *
 * For every cell (collective, size), samples of all variants alternate, so that disturbances of the
 * machine affect all of them alike. A sample is the mean of as many calls as take about a
 * millisecond. The output is the median of the samples and the ratio of medians. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "config.h"
#include "meter.h"
#include "plot.h"

#include "rules.h"

/* The measures, with their default collectives and sizes. */
static const struct measure {
    const char *name;
    void (*run)(struct bench *b);
    const char *collectives, *sizes;
} measures[] = {
    {"time", measure_time, NULL, "8,64,512,4096,32768,262144,2097152,4194304"},
    {"calls", measure_calls, NULL, "8"},
    {"overlap", measure_overlap, "bcast,allreduce,alltoall", "65536,1048576"},
    {"device", measure_device, "bcast,allgather,alltoall,reduce,allreduce",
     "8,512,4096,32768,65536,524288,4194304,16777216,67108864"},
    {"halo", measure_halo, NULL, "8,64,1024"},
    {"outstanding", measure_outstanding, "allreduce", "8"},
    {"untouched", measure_untouched, "all", "8,1024,65536,1048576"},
};

enum { NMEASURES = sizeof measures / sizeof *measures };

static struct bench bench = {.samples = 31, .json = {.json = true}};
static bool wanted[NMEASURES] = {true};
static bool answered; /* --help or --version was given: nothing is measured */
static const char *collectives, *sizes, *json;

/* --- for the measures --------------------------------------------------------------------------*/

int64_t cell_bytes(const struct operands *o)
{
    return o->coll == NBC_BARRIER ? 0 : (int64_t)o->count * (int64_t)sizeof(double);
}

static void try_cell(struct bench *b, enum nbc_coll coll, int64_t bytes,
                     void (*measure)(struct bench *b, struct operands *o))
{
    struct operands o;
    bool all = on_all_ranks(b->comm, operands_make(&o, coll, b->comm, (int)(bytes / 8)));
    if (b->rank == 0)
        meter_step("%s, %lld bytes", nbc_coll_name(coll), (long long)bytes);
    if (all) {
        operands_ask(&o);
        measure(b, &o);
    }
    operands_free(&o);
}

static int sizes_of(const struct bench *b, int coll)
{
    return coll == NBC_BARRIER ? 1 : b->nsizes;
}

void for_each_cell(struct bench *b, void (*measure)(struct bench *b, struct operands *o))
{
    int cells = 0;
    for (int coll = 0; coll < NBC_NCOLLS; coll++)
        cells += b->coll[coll] ? sizes_of(b, coll) : 0;
    if (b->rank == 0)
        meter_begin(cells, true);
    for (int coll = 0; coll < NBC_NCOLLS; coll++)
        for (int i = 0; b->coll[coll] && i < sizes_of(b, coll); i++)
            try_cell(b, coll, b->sizes[i], measure);
    meter_end();
}

void measure_variants(struct bench *b, const struct operands *o, const struct variants *all)
{
    bool have[NVARIANTS];
    int calls = 0;
    for (int v = 0; v < all->n; v++) {
        have[v] = (all->which[v] != NATIVE_PERSISTENT || b->native_persistent) &&
                  runner_make(&all->runners[v], all->which[v], o);
        if (have[v] && !calls)
            calls = runner_calibrate(&all->runners[v], all->seconds);
    }
    for (int i = 0; i < b->samples; i++)
        for (int v = 0; v < all->n; v++)
            if (have[v])
                all->sample(b, v, calls, i);
    for (int v = 0; v < all->n; v++) {
        if (have[v] && b->rank == 0)
            all->report(b, o, v);
        runner_free(&all->runners[v]);
    }
}

bool json_begin(struct bench *b, const char *measure, const struct operands *o)
{
    struct emit *e = &b->json;
    if (!e->writer.out)
        return false;
    emit_row(e, NULL);
    emit_string(e, "measure", 0, measure);
    emit_string(e, "collective", 0, nbc_coll_name(o->coll));
    emit_number(e, "ranks", 0, b->size);
    emit_number(e, "bytes", 0, cell_bytes(o));
    return true;
}

void json_quartiles(struct bench *b, const char *name, struct quartiles q)
{
    emit_object(&b->json, name);
    emit_real(&b->json, "median", 4, q.median);
    emit_real(&b->json, "low", 4, q.low);
    emit_real(&b->json, "high", 4, q.high);
    emit_object_end(&b->json);
}

void json_end(struct bench *b)
{
    emit_row_end(&b->json);
}

void print_time(bool have, double seconds)
{
    if (have)
        printf(" %9.2f", seconds * 1e6);
    else
        printf(" %9s", "-");
}

void print_ratio(bool have, double seconds, double ratio)
{
    print_time(have, seconds);
    if (have)
        printf(" %6.2f", ratio);
    else
        printf(" %6s", "-");
}

/* --- the run -----------------------------------------------------------------------------------*/

const char *setting_in_force(const char *name)
{
    struct nbcshim_variable v;
    for (int i = 0; nbcshim_variable(i, &v); i++)
        if (strcmp(v.name, name) == 0)
            return v.value && v.accepted ? v.value : v.fallback;
    return "-";
}

static const char usage[] =
    "Usage: mpiexec -n RANKS nbcbench [OPTION]...\n"
    "Measure nonblocking and persistent collectives of nbcshim and of the MPI, interleaved in one\n"
    "process.\n"
    "\n"
    "  -m, --measure LIST       choose the measurements (default: time):\n"
    "                           time         start an operation and wait for it immediately\n"
    "                           calls        time each call separately: init, free, start, wait\n"
    "                           overlap      how much of an operation computation hides\n"
    "                           device       buffers on a GPU, beside copies by the program\n"
    "                           halo         exchanges on grids, beside messages by the program\n"
    "                           outstanding  time and memory per operation, up to 40000 at once\n"
    "                           untouched    what nbcshim costs all other calls\n"
    "  -c, --collectives LIST   choose the collectives (default: the 17 that are not neighborhood\n"
    "                           collectives; overlap: bcast,allreduce,alltoall; device:\n"
    "                           bcast,allgather,alltoall,reduce,allreduce; outstanding:\n"
    "                           allreduce; untouched: all)\n"
    "  -s, --sizes LIST         choose the sizes, multiples of 8 bytes, with K, M or G\n"
    "                           (default: 8 to 4M; calls and outstanding: 8; overlap: 64K,1M;\n"
    "                           halo: 8,64,1K; device: 8 to 64M; untouched: 8,1K,64K,1M)\n"
    "  -u, --untouched LIST     with untouched, choose the groups of calls: collectives,\n"
    "                           communicators, messages, requests, local, windows, files\n"
    "                           (default: all)\n"
    "  -n, --samples N          take N samples per variant and cell (default: 31)\n"
    "  -r, --repeat N           with time, take up to N samples of a cell, until the quartiles of\n"
    "                           the ratio to the MPI are on the same side of 1.10\n"
    "  -p, --native-persistent  measure the persistent collectives of the MPI too\n"
    "  -a, --all-algorithms     measure every algorithm that applies too\n"
    "  -d, --device             the same as --measure device\n"
    "  -i, --idle               with overlap, sleep instead of computing\n"
    "  -g, --plot DIRECTORY     draw the times, and the ratio to the MPI, with gnuplot; the\n"
    "                           directory is created if it does not exist\n"
    "  -j, --json FILE          write the results to FILE\n"
    "  -h, --help               show this help and exit\n"
    "      --version            show the version and exit\n"
    "\n"
    "Lists are separated by commas. nbcbench(1) explains the columns.\n";

/* Writes why the arguments are refused, on one rank. Returns false. */
static bool __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
    va_list list;
    if (bench.rank == 0) {
        fputs("nbcbench: ", stderr);
        va_start(list, format);
        vfprintf(stderr, format, list);
        va_end(list);
        fputs("; see nbcbench --help\n", stderr);
    }
    return false;
}

static bool read_measures(char *list)
{
    memset(wanted, 0, sizeof wanted);
    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        int i = 0;
        while (i < NMEASURES && strcmp(measures[i].name, name) != 0)
            i++;
        if (i == NMEASURES)
            return complain("unknown measurement %s", name);
        wanted[i] = true;
    }
    return true;
}

/* NULL: all but neighborhood collectives. */
static bool read_collectives(const char *list)
{
    char copy[512];
    bool all = list && strcmp(list, "all") == 0;
    for (int c = 0; c < NBC_NCOLLS; c++)
        bench.coll[c] = all || (!list && c <= NBC_EXSCAN);
    snprintf(copy, sizeof copy, "%s", list && !all ? list : "");
    for (char *name = strtok(copy, ","); name; name = strtok(NULL, ",")) {
        enum nbc_coll coll = nbc_coll_by_name(name);
        if (coll == NBC_NCOLLS)
            return complain("unknown collective %s", name);
        bench.coll[coll] = true;
    }
    return true;
}

static bool read_sizes(const char *list)
{
    char copy[512];
    bench.nsizes = 0;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *word = strtok(copy, ","); word && bench.nsizes < 64; word = strtok(NULL, ",")) {
        const char *end = word;
        int64_t bytes;
        if (!nbc_number(&end, &bytes) || *end || bytes % 8)
            return complain("invalid size %s: expected a multiple of 8, with K, M or G", word);
        bench.sizes[bench.nsizes++] = bytes;
    }
    return true;
}

static bool read_groups(const char *list)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *name = strtok(copy, ","); name; name = strtok(NULL, ","))
        if (!untouched_choose(name))
            return complain("unknown group of calls %s", name);
    return true;
}

static bool read_samples(const char *number, int *samples)
{
    *samples = atoi(number);
    if (*samples >= 1 && *samples <= MAX_SAMPLES)
        return true;
    return complain("invalid number of samples %s: expected 1 to %d", number, MAX_SAMPLES);
}

static bool answer(int option)
{
    if (bench.rank == 0 && option == 'h')
        fputs(usage, stdout);
    if (bench.rank == 0 && option == 'v')
        printf("nbcbench (nbcshim) %s\n", PACKAGE_VERSION);
    return answered = true;
}

static bool read_option(int option)
{
    switch (option) {
    case 'h':
    case 'v':
        return answer(option);
    case 'm':
        return read_measures(optarg);
    case 'c':
        return read_collectives(collectives = optarg);
    case 's':
        return read_sizes(sizes = optarg);
    case 'u':
        return read_groups(optarg);
    case 'n':
        return read_samples(optarg, &bench.samples);
    case 'r':
        return read_samples(optarg, &bench.most_samples);
    case 'p':
        return bench.native_persistent = true;
    case 'a':
        return bench.all_algorithms = true;
    case 'd':
        return read_measures((char[]){"device"});
    case 'i':
        return bench.idle = true;
    case 'g':
        return (bench.plot = optarg);
    case 'j':
        return (json = optarg);
    default: /* getopt_long has said why */
        if (bench.rank == 0)
            fputs("see nbcbench --help\n", stderr);
        return false;
    }
}

static bool read_options(int argc, char **argv)
{
    static const struct option longs[] = {{"measure", 1, 0, 'm'},
                                          {"collectives", 1, 0, 'c'},
                                          {"sizes", 1, 0, 's'},
                                          {"untouched", 1, 0, 'u'},
                                          {"samples", 1, 0, 'n'},
                                          {"repeat", 1, 0, 'r'},
                                          {"native-persistent", 0, 0, 'p'},
                                          {"all-algorithms", 0, 0, 'a'},
                                          {"device", 0, 0, 'd'},
                                          {"idle", 0, 0, 'i'},
                                          {"plot", 1, 0, 'g'},
                                          {"json", 1, 0, 'j'},
                                          {"help", 0, 0, 'h'},
                                          {"version", 0, 0, 'v'},
                                          {0}};
    bool ok = true;
    int option;
    opterr = bench.rank == 0;
    while (ok && !answered &&
           (option = getopt_long(argc, argv, "m:c:s:u:n:r:padig:j:h", longs, NULL)) != -1)
        ok = read_option(option);
    if (ok && !answered && optind < argc)
        return complain("%s is not an option", argv[optind]);
    return ok;
}

/* Whether the directory for plots can be written; it is created if it is not there. Found out
 * before measuring, which may take hours. */
static bool make_plot_directory(void)
{
    char name[4096];
    if (!bench.plot || bench.rank != 0)
        return true;
    int n = snprintf(name, sizeof name, "%s/.nbcbench.XXXXXX", bench.plot), file = -1;
    if (n >= (int)sizeof name)
        errno = ENAMETOOLONG;
    else if (mkdir(bench.plot, 0777) == 0 || errno == EEXIST)
        file = mkstemp(name);
    if (file < 0) {
        fprintf(stderr, "nbcbench: --plot %s: cannot write there: %s\n", bench.plot,
                strerror(errno));
        return false;
    }
    close(file);
    unlink(name);
    return true;
}

static bool open_json(void)
{
    if (!json || bench.rank != 0)
        return true;
    bench.json.writer.out = fopen(json, "w");
    if (bench.json.writer.out)
        emit_list(&bench.json, NULL, NULL);
    else
        fprintf(stderr, "nbcbench: --json %s: cannot write: %s\n", json, strerror(errno));
    return bench.json.writer.out;
}

static bool close_json(void)
{
    FILE *out = bench.json.writer.out;
    emit_list_end(&bench.json);
    fputc('\n', out);
    bool failed = ferror(out);
    if (!fclose(out) && !failed)
        return true;
    fprintf(stderr, "nbcbench: --json %s: cannot write: %s\n", json, strerror(errno));
    return false;
}

/* The version of the MPI, as far as the first comma or the end of its first line. */
static void describe_mpi(char text[40])
{
    snprintf(text, 40, "MPI");
#if MPI_VERSION >= 3
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    snprintf(text, 40, "%.39s", version);
#endif
}

/* For the titles of the plots: where and how it was measured. */
static void describe_run(char *text, size_t size)
{
    char mpi[40], machine[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length;
    describe_mpi(mpi);
    MPI_Get_processor_name(machine, &length);
    snprintf(text, size,
             "%d ranks, %s, on %.60s (%ld processors)\nmedian of %d samples; "
             "progress by %s",
             bench.size, mpi, machine, sysconf(_SC_NPROCESSORS_ONLN), bench.samples,
             bench.progress);
}

static bool run(const char *library)
{
    char title[256];
    bench.progress = setting_in_force("NBCSHIM_PROGRESS");
    if (bench.rank == 0)
        printf("# %d ranks, median of %d samples, microseconds; progress by %s; MPI: %s\n",
               bench.size, bench.samples, bench.progress, library);
    for (int i = 0; i < NMEASURES; i++) {
        if (!wanted[i])
            continue;
        read_collectives(collectives ? collectives : measures[i].collectives);
        read_sizes(sizes ? sizes : measures[i].sizes);
        measures[i].run(&bench);
    }
    describe_run(title, sizeof title);
    return !bench.failed && (bench.rank != 0 || !bench.plot || plot_draw(bench.plot, title));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.size);
    int ring = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &bench.size, &ring, 0, &bench.comm);
    const char *library = calls_load();
    if (!library && bench.rank == 0)
        fprintf(stderr, "nbcbench: cannot find the MPI library in this process\n");
    bool ok = on_all_ranks(bench.comm, library && read_options(argc, argv) &&
                                           (answered || (make_plot_directory() && open_json())));
    if (ok && !answered)
        ok = run(library);
    if (bench.json.writer.out)
        ok = close_json() && ok;
    MPI_Comm_free(&bench.comm);
    MPI_Finalize();
    return emit_status("nbcbench", ok ? 0 : 2);
}
