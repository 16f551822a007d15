/* SPDX-License-Identifier: MIT */
/* nbcbench: the shim's collectives beside the MPI's own, in one process, interleaved.
 *
 * Every cell (collective, size) is measured in turns: one sample of each variant, again and again,
 * so that whatever else the machine does hits all of them alike. A sample is the mean of enough
 * calls to last about a millisecond; printed is the median of the samples, and with it the ratio of
 * medians. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "plot.h"
#include "sweep.h"

enum variant { SHIM, NATIVE, ROUNDS, SHIM_PERSISTENT, NATIVE_PERSISTENT, NVARIANTS };

static const char *const variant_names[NVARIANTS] = {"shim", "native", "rounds", "shim_persistent",
                                                     "native_persistent"};

enum { MAX_SAMPLES = 1001 };

static struct options {
    bool coll[NBC_NCOLLS];
    int64_t sizes[64];
    int nsizes;
    int samples;
    bool native_persistent, all_algorithms;
    const char *plot;
    FILE *json;
} options = {.samples = 31};

static MPI_Comm world; /* a duplicate with a ring topology */
static int rank, size;

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* --- one variant of one cell
 * --------------------------------------------------------------------*/

struct runner {
    enum variant variant;
    const struct operands *o;
    MPI_Request request; /* persistent */
    struct rounds *rounds;
    double sample[MAX_SAMPLES];
};

static const struct calls *side(enum variant v)
{
    return v == SHIM || v == SHIM_PERSISTENT ? &shim : &native;
}

static bool is_persistent(enum variant v)
{
    return v == SHIM_PERSISTENT || v == NATIVE_PERSISTENT;
}

/* False where this variant cannot be measured. */
static bool runner_make(struct runner *r, enum variant v, const struct operands *o)
{
    *r = (struct runner){.variant = v, .o = o, .request = MPI_REQUEST_NULL};
    if (v == NATIVE_PERSISTENT && !options.native_persistent)
        return false;
    if (v == ROUNDS)
        return (r->rounds = rounds_new(o, world)) != NULL;
    if (is_persistent(v))
        return case_init(side(v), o, &r->request);
    MPI_Request request;
    if (!case_start(side(v), o, &request))
        return false;
    return !side(v)->Wait(&request, MPI_STATUS_IGNORE);
}

static void runner_free(struct runner *r)
{
    rounds_free(r->rounds);
    if (r->request != MPI_REQUEST_NULL)
        side(r->variant)->Request_free(&r->request);
}

static void run_once(struct runner *r)
{
    const struct calls *c = side(r->variant);
    if (r->variant == ROUNDS) {
        rounds_run(r->rounds, r->o);
        return;
    }
    MPI_Request request = r->request;
    if (is_persistent(r->variant))
        c->Start(&r->request);
    else
        case_start(c, r->o, &request);
    c->Wait(is_persistent(r->variant) ? &r->request : &request, MPI_STATUS_IGNORE);
}

/* Seconds per call, of the slowest rank. */
static double sample(struct runner *r, int calls)
{
    native.Barrier(world);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        run_once(r);
    double mine = (MPI_Wtime() - start) / calls, slowest;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, world);
    return slowest;
}

/* --- one cell
 * -----------------------------------------------------------------------------------*/

struct cell {
    enum nbc_coll coll;
    int64_t bytes;
    bool have[NVARIANTS];
    double median[NVARIANTS], low[NVARIANTS], high[NVARIANTS]; /* quartiles */
    double floor;
    const char *algorithm;
    struct contender contender[SWEEP_MOST]; /* with --all-algorithms */
    int ncontenders;
};

/* As many calls as last a millisecond, the same on all ranks. */
static int calibrate(struct runner *r)
{
    sample(r, 1);
    double once = sample(r, 3);
    int calls = once > 0 ? (int)(1e-3 / once) : 1000;
    return calls < 1 ? 1 : calls > 2000 ? 2000 : calls;
}

static void summarize(struct cell *cell, struct runner *r)
{
    int n = options.samples;
    qsort(r->sample, n, sizeof *r->sample, compare);
    cell->median[r->variant] = r->sample[n / 2];
    cell->low[r->variant] = r->sample[n / 4];
    cell->high[r->variant] = r->sample[n - 1 - n / 4];
}

static void measure(struct cell *cell, const struct operands *o)
{
    static struct runner runners[NVARIANTS];
    int calls = 0;
    for (int v = 0; v < NVARIANTS; v++) {
        int mine = runner_make(&runners[v], v, o), all;
        PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, world);
        cell->have[v] = all;
        if (all && !calls)
            calls = calibrate(&runners[v]);
    }
    for (int i = 0; i < options.samples; i++)
        for (int v = 0; v < NVARIANTS; v++)
            if (cell->have[v])
                runners[v].sample[i] = sample(&runners[v], calls);
    for (int v = 0; v < NVARIANTS; v++) {
        if (cell->have[v])
            summarize(cell, &runners[v]);
        runner_free(&runners[v]);
    }
}

static const char *algorithm_of(const struct operands *o)
{
    struct modelled m;
    int64_t segment;
    model_shape(o, o->rank, &m);
    return nbc_select(&m.shape, NULL, &nbc_default_rules, &segment)->name;
}

/* --- the wire
 * -----------------------------------------------------------------------------------*/

static double half_round_trip(int64_t bytes, char *data, int turns)
{
    MPI_Request r;
    int other = rank ^ 1;
    native.Barrier(world);
    double start = MPI_Wtime();
    for (int i = 0; i < turns && rank < 2; i++)
        for (int half = 0; half < 2; half++) {
            if (half == rank)
                native.Isend(data, (int)bytes, MPI_BYTE, other, 1, world, &r);
            else
                native.Irecv(data, (int)bytes, MPI_BYTE, other, 1, world, &r);
            native.Wait(&r, MPI_STATUS_IGNORE);
        }
    return (MPI_Wtime() - start) / turns / 2;
}

/* Between ranks 0 and 1, medians. */
static void measure_wire(struct wire *w)
{
    char *data = calloc(1, 8 << 20);
    w->n = 0;
    for (int64_t bytes = 8; size > 1 && data && bytes <= 8 << 20; bytes *= 8) {
        double samples[15], *s = samples;
        int turns = bytes < 65536 ? 200 : 10;
        for (int i = 0; i < 15; i++)
            s[i] = half_round_trip(bytes, data, turns);
        qsort(s, 15, sizeof *s, compare);
        double seconds = s[7];
        PMPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, world);
        w->point[w->n].bytes = bytes;
        w->point[w->n++].seconds = seconds;
    }
    free(data);
}

/* --- output
 * -------------------------------------------------------------------------------------*/

static void print_head(const char *library)
{
    printf("# %d ranks, median of %d samples, microseconds; MPI: %s\n", size, options.samples,
           library);
    printf("%-22s %9s %9s %7s %9s %6s %9s %6s %9s %6s %9s  %s\n", "collective", "bytes", "shim",
           "+-%", "native", "ratio", "rounds", "ratio", "persist", "ratio", "floor", "algorithm");
}

static void print_other(const struct cell *c, enum variant v)
{
    if (c->have[v])
        printf(" %9.2f %6.2f", c->median[v] * 1e6, c->median[SHIM] / c->median[v]);
    else
        printf(" %9s %6s", "-", "-");
}

static void print_cell(const struct cell *c)
{
    double spread = 50 * (c->high[SHIM] - c->low[SHIM]) / c->median[SHIM];
    printf("%-22s %9lld %9.2f %7.1f", nbc_coll_name(c->coll), (long long)c->bytes,
           c->median[SHIM] * 1e6, spread);
    print_other(c, NATIVE);
    print_other(c, ROUNDS);
    printf(" %9.2f %6.2f", c->median[SHIM_PERSISTENT] * 1e6,
           c->median[SHIM_PERSISTENT] / c->median[SHIM]);
    printf(" %9.2f  %s\n", c->floor * 1e6, c->algorithm);
    for (int i = 0; i < c->ncontenders; i++)
        printf("    %-22s %9.2f\n", c->contender[i].alg->name, c->contender[i].median * 1e6);
    fflush(stdout);
}

static void plot_cell(const struct cell *c)
{
    for (int v = 0; v < NVARIANTS; v++)
        if (c->have[v])
            plot_add(c->coll, variant_names[v], c->bytes, c->median[v]);
    for (int i = 0; i < c->ncontenders; i++)
        plot_add(c->coll, c->contender[i].alg->name, c->bytes, c->contender[i].median);
    plot_add(c->coll, "floor", c->bytes, c->floor);
}

static void json_contenders(const struct cell *c)
{
    if (!c->ncontenders)
        return;
    fprintf(options.json, ", \"algorithms\": {");
    for (int i = 0; i < c->ncontenders; i++)
        fprintf(options.json, "%s\"%s\": %.4g", i ? ", " : "", c->contender[i].alg->name,
                c->contender[i].median);
    fprintf(options.json, "}");
}

static void json_cell(const struct cell *c, bool first)
{
    fprintf(options.json, "%s\n  {\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %lld, ",
            first ? "" : ",", nbc_coll_name(c->coll), size, (long long)c->bytes);
    fprintf(options.json, "\"algorithm\": \"%s\", \"floor\": %.4g", c->algorithm, c->floor);
    for (int v = 0; v < NVARIANTS; v++)
        if (c->have[v])
            fprintf(options.json, ", \"%s\": {\"median\": %.4g, \"low\": %.4g, \"high\": %.4g}",
                    variant_names[v], c->median[v], c->low[v], c->high[v]);
    json_contenders(c);
    fprintf(options.json, "}");
}

/* Geometric mean over cells without a logarithm to link: products of ratios, kept in range. */
struct mean {
    double product;
    int n;
};

static void mean_add(struct mean *m, double ratio)
{
    if (m->n == 0)
        m->product = 1;
    m->product *= ratio;
    m->n++;
}

static double mean_root(const struct mean *m)
{
    double low = 0, high = m->product > 1 ? m->product : 1;
    for (int i = 0; i < 200; i++) {
        double x = (low + high) / 2, power = 1;
        for (int k = 0; k < m->n; k++)
            power *= x;
        *(power < m->product ? &low : &high) = x;
    }
    return low;
}

/* --- the run
 * ------------------------------------------------------------------------------------*/

static bool measure_cell(enum nbc_coll coll, int64_t bytes, const struct wire *wire,
                         struct cell *cell)
{
    struct operands o;
    *cell = (struct cell){.coll = coll, .bytes = bytes};
    int ok = operands_make(&o, coll, world, (int)(bytes / 8)), all;
    PMPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, world);
    if (all) {
        cell->algorithm = algorithm_of(&o);
        cell->floor = critical_path(&o, wire);
        measure(cell, &o);
        if (options.all_algorithms)
            cell->ncontenders = sweep(&o, options.samples, cell->contender);
    }
    operands_free(&o);
    return all;
}

static void tell(const struct cell *cell, bool first)
{
    print_cell(cell);
    if (options.json)
        json_cell(cell, first);
    if (options.plot)
        plot_cell(cell);
}

static void run(const char *library)
{
    struct wire wire;
    struct mean mean = {0};
    bool first = true;
    measure_wire(&wire);
    if (rank == 0)
        print_head(library);
    for (int coll = 0; coll < NBC_NCOLLS; coll++) {
        int nsizes = coll == NBC_BARRIER ? 1 : options.nsizes;
        for (int i = 0; options.coll[coll] && i < nsizes; i++) {
            struct cell cell;
            int64_t bytes = coll == NBC_BARRIER ? 0 : options.sizes[i];
            if (!measure_cell(coll, bytes, &wire, &cell) || rank != 0)
                continue;
            tell(&cell, first);
            first = false;
            if (cell.have[NATIVE])
                mean_add(&mean, cell.median[SHIM] / cell.median[NATIVE]);
        }
    }
    if (rank == 0 && mean.n)
        printf("# geometric mean of shim / native over %d cells: %.3f\n", mean.n, mean_root(&mean));
}

/* False where there should be pictures and are none. */
static bool draw(void)
{
    char title[64];
    snprintf(title, sizeof title, "%d ranks", size);
    return rank != 0 || !options.plot || plot_draw(options.plot, title);
}

static const char usage[] =
    "Usage: mpiexec -n RANKS nbcbench [options]\n"
    "Measures nonblocking and persistent collectives of nbcshim and of the MPI below, start and\n"
    "wait at once, interleaved in one process.\n"
    "  -c, --collectives LIST   names with commas (default: the 17 without neighborhoods)\n"
    "  -s, --sizes LIST         bytes with commas, multiples of 8 (default: 8 … 4194304)\n"
    "  -n, --samples N          samples per variant and cell (default 31)\n"
    "  -p, --native-persistent  measure the MPI's own persistent collectives too\n"
    "  -a, --all-algorithms     measure every algorithm that applies, as persistent operations\n"
    "  -g, --plot DIRECTORY     draw time against size, and the ratio to native, by gnuplot\n"
    "  -j, --json FILE          write the figures there\n"
    "  -h, --help\n"
    "Columns: ratio is shim over the column before it, for persist persist over shim; floor is\n"
    "the critical path of point-to-point messages measured in this run.\n";

static bool read_collectives(char *list)
{
    memset(options.coll, 0, sizeof options.coll);
    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        enum nbc_coll coll = nbc_coll_by_name(name);
        if (coll == NBC_NCOLLS) {
            fprintf(stderr, "nbcbench: there is no collective %s\n", name);
            return false;
        }
        options.coll[coll] = true;
    }
    return true;
}

static bool read_sizes(char *list)
{
    options.nsizes = 0;
    for (char *word = strtok(list, ","); word && options.nsizes < 64; word = strtok(NULL, ",")) {
        char *end;
        long long bytes = strtoll(word, &end, 10);
        if (*end || bytes < 0 || bytes % 8) {
            fprintf(stderr, "nbcbench: %s is not a size: a multiple of 8 is\n", word);
            return false;
        }
        options.sizes[options.nsizes++] = bytes;
    }
    return true;
}

static bool read_options(int argc, char **argv)
{
    static const struct option longs[] = {{"collectives", 1, 0, 'c'},
                                          {"sizes", 1, 0, 's'},
                                          {"samples", 1, 0, 'n'},
                                          {"native-persistent", 0, 0, 'p'},
                                          {"all-algorithms", 0, 0, 'a'},
                                          {"plot", 1, 0, 'g'},
                                          {"json", 1, 0, 'j'},
                                          {"help", 0, 0, 'h'},
                                          {0}};
    bool ok = true;
    int option;
    for (int c = 0; c <= NBC_EXSCAN; c++)
        options.coll[c] = true;
    for (int64_t bytes = 8; bytes <= 4 << 20; bytes *= 8)
        options.sizes[options.nsizes++] = bytes;
    options.sizes[options.nsizes++] = 4 << 20;
    while (ok && (option = getopt_long(argc, argv, "c:s:n:pag:j:h", longs, NULL)) != -1) {
        if (option == 'c')
            ok = read_collectives(optarg);
        else if (option == 's')
            ok = read_sizes(optarg);
        else if (option == 'n')
            ok = (options.samples = atoi(optarg)) >= 1 && options.samples <= MAX_SAMPLES;
        else if (option == 'p')
            options.native_persistent = true;
        else if (option == 'a')
            options.all_algorithms = true;
        else if (option == 'g')
            options.plot = optarg;
        else if (option == 'j')
            ok = rank != 0 || (options.json = fopen(optarg, "w"));
        else
            ok = false;
    }
    if (!ok && rank == 0)
        fputs(usage, stderr);
    return ok;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int ring = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &world);
    const char *library = calls_load();
    bool ok = read_options(argc, argv);
    if (!library && rank == 0)
        fprintf(stderr, "nbcbench: the MPI's own library was not found in this process\n");
    ok = ok && library;
    if (ok && options.json)
        fprintf(options.json, "[");
    if (ok) {
        run(library);
        ok = draw();
    }
    if (options.json) {
        fprintf(options.json, "\n]\n");
        fclose(options.json);
    }
    MPI_Comm_free(&world);
    MPI_Finalize();
    return ok ? 0 : 2;
}
