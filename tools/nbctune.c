/* SPDX-License-Identifier: MIT */
/* nbctune --loggp: measures the LogGP parameters of this MPI and machine, for nbcsim. Rank 0
 * measures with a rank on its node, and with one on another node if there is one.
 *
 * The method is that of Hoefler, Lichei, Rehm, "Low-overhead LogGP parameter assessment for modern
 * interconnection networks", 2007, which does not flood the network. PRTT(n, s) is the time from
 * the first of n messages of s bytes to the answer to the last:
 *
 *   PRTT(1, s) = 2 (L + 2o + (s − 1) G)
 *   PRTT(n, s) = PRTT(1, s) + (n − 1) G_all,   G_all = g + (s − 1) G
 *
 * From some size on PRTT(1, s) is longer than that by 2 h, the handshake before a long message. The
 * overhead o follows there from n messages with pauses; here each is timed (overhead).
 */
#include <mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fast_network.h"
#include "coll.h"
#include "config.h"
#include "emit.h"
#include "meter.h"
#include "runner.h"
#include "tune.h"

enum { TRAIN = 16, REPEATS = 40, LEAST_REPEATS = 10, WARM_UP = 3, TAG = 1 };

static const int sizes[] = {1, 64, 512, 4096, 16384, 65536, 262144, 1048576};
enum { NSIZES = sizeof sizes / sizeof *sizes };

static char *data;

static void pause_for(double seconds)
{
    double until = MPI_Wtime() + seconds;
    while (seconds > 0 && MPI_Wtime() < until)
        ;
}

/* Measures one PRTT(n, s), at rank 0; the peer answers the last message. */
static double train_once(int peer, bool first, int n, int bytes)
{
    double from = MPI_Wtime();
    for (int i = 0; i < n; i++) {
        if (first)
            MPI_Send(data, bytes, MPI_CHAR, peer, TAG, MPI_COMM_WORLD);
        else
            MPI_Recv(data, bytes, MPI_CHAR, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (first)
        MPI_Recv(data, bytes, MPI_CHAR, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(data, bytes, MPI_CHAR, peer, TAG, MPI_COMM_WORLD);
    return MPI_Wtime() - from;
}

/* Returns the minimum of several: disturbances make it longer. */
static double train(int peer, bool first, int n, int bytes)
{
    double least = 0;
    int repeats = bytes > 65536 ? LEAST_REPEATS : REPEATS;
    for (int i = -WARM_UP; i < repeats; i++) {
        double time = train_once(peer, first, n, bytes);
        if (i == 0 || (i > 0 && time < least))
            least = time;
    }
    return least;
}

/* Returns o: how long a send takes after a pause d, the median of many. A whole train with such
 * pauses takes so long that other programs delay it. */
static double overhead(int peer, bool first, double d)
{
    double took[3 * TRAIN];
    enum { N = sizeof took / sizeof *took };
    for (int i = 0; i < N; i++) {
        took[i] = 0;
        if (!first) {
            MPI_Recv(data, 1, MPI_CHAR, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        pause_for(d);
        double clock = MPI_Wtime(), from = MPI_Wtime();
        MPI_Send(data, 1, MPI_CHAR, peer, TAG, MPI_COMM_WORLD);
        took[i] = MPI_Wtime() - from - (from - clock);
    }
    return quartiles_of(took, N).median;
}

struct loggp {
    double L, o, g, G; /* seconds */
    double handshake;
    int eager; /* bytes of the longest message without a handshake; 0: unknown */
};

/* Fits slope and intercept of G_all over s − 1. Points are weighted by 1/y, so that small ones
 * count, but not those that are within the error of y. */
static void fit(const double *x, const double *y, int n, double error, double *slope,
                double *intercept)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (int i = 0; i < n; i++) {
        double weight = 1 / ((y[i] + error) * (y[i] + error));
        w += weight;
        wx += weight * x[i];
        wy += weight * y[i];
        wxx += weight * x[i] * x[i];
        wxy += weight * x[i] * y[i];
    }
    *slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
    *intercept = (wy - *slope * wx) / w;
}

static double at_least(double value, double least)
{
    return value > least ? value : least;
}

/* The sizes from which on messages may begin with a handshake. */
static const int probes[] = {1024,  2048,  3072,  4096,  6144,   8192,   12288,  16384, 24576,
                             32768, 49152, 65536, 98304, 131072, 196608, 262144, 524288};
enum { NPROBES = sizeof probes / sizeof *probes };

/* Finds where the handshakes begin, and their mean time. They take a latency at least. Of a message
 * whose bytes take much longer than that, they could not be told from what else delays it. */
static void find_handshake(const double *ping, double least, struct loggp *p)
{
    int found = 0;
    p->eager = 0;
    for (int i = 0; i < NPROBES && (probes[i] - 1) * p->G < 4 * least; i++) {
        double more = (ping[i] - least) / 2 - (probes[i] - 1) * p->G;
        if (more < least / 2)
            continue;
        if (found++ == 0)
            p->eager = i > 0 ? probes[i - 1] : 1;
        p->handshake += (more - p->handshake) / found;
    }
}

static void measure_handshake(int peer, bool first, double least, struct loggp *p)
{
    double ping[NPROBES];
    for (int i = 0; i < NPROBES; i++)
        ping[i] = train(peer, first, 1, probes[i]);
    find_handshake(ping, least, p);
}

/* Measures all parameters between the caller and its peer. The second of the two assists, and
 * receives the results of the first. */
static struct loggp measure(int peer, bool first)
{
    struct loggp p = {0};
    double x[NSIZES], y[NSIZES], ping = 0;
    for (int i = 0; i < NSIZES; i++) {
        if (first)
            meter_step("messages of %d bytes to rank %d", sizes[i], peer);
        double one = train(peer, first, 1, sizes[i]);
        double many = train(peer, first, TRAIN, sizes[i]);
        x[i] = sizes[i] - 1;
        y[i] = at_least((many - one) / (TRAIN - 1), 1e-9);
        if (i == 0)
            ping = one;
    }
    fit(x, y, NSIZES, ping / 100, &p.G, &p.g);
    p.G = at_least(p.G, 0);
    p.g = at_least(p.g, 0);
    double pause = 2 * ping; /* longer than any gap */
    p.o = at_least(overhead(peer, first, pause), 1e-9);
    p.L = at_least(ping / 2 - 2 * p.o, 0);
    measure_handshake(peer, first, ping, &p);
    return p;
}

/* --- the processor ---------------------------------------------------------------------------- */

enum { WORK = 262144 };

static double per_byte(bool reduces)
{
    static double from[WORK / sizeof(double)], to[WORK / sizeof(double)];
    double least = 0;
    int n = WORK / sizeof(double);
    for (int i = 0; i < n; i++)
        from[i] = to[i] = 1;
    for (int i = 0; i < LEAST_REPEATS; i++) {
        double begin = MPI_Wtime();
        if (reduces)
            MPI_Reduce_local(from, to, n, MPI_DOUBLE, MPI_SUM);
        else
            memcpy(to, from, sizeof to);
        double time = MPI_Wtime() - begin;
        if (i == 0 || time < least)
            least = time;
        from[i] = to[n - 1 - i]; /* uses the result, so that the copy is not removed */
    }
    return least / WORK;
}

/* --- who is where ----------------------------------------------------------------------------- */

static bool same_name(int other)
{
    char names[2][MPI_MAX_PROCESSOR_NAME + 1] = {"", ""};
    int length;
    MPI_Get_processor_name(names[0], &length);
    memcpy(names[1], names[0], sizeof names[0]);
    MPI_Bcast(names[1], sizeof names[1], MPI_CHAR, other, MPI_COMM_WORLD);
    int same = strcmp(names[0], names[1]) == 0;
    MPI_Bcast(&same, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return same;
}

static void print_loggp(const char *prefix, const struct loggp *p)
{
    printf("%sL = %.6g\n%so = %.6g\n%sg = %.6g\n%sG = %.6g\n", prefix, p->L * 1e9, prefix,
           p->o * 1e9, prefix, p->g * 1e9, prefix, p->G * 1e9);
}

/* Measures between ranks 0 and `other`; the other ranks wait. */
static struct loggp measure_pair(int rank, int other)
{
    struct loggp p = {0};
    if (rank == 0)
        p = measure(other, true);
    else if (rank == other)
        p = measure(0, false);
    MPI_Barrier(MPI_COMM_WORLD);
    return p;
}

/* Returns, at rank 0, which ranks have the same processor name. */
static int ranks_on_node(int size)
{
    int count = 0;
    for (int other = 0; other < size; other++)
        count += same_name(other);
    return count;
}

/* Returns, at rank 0, whether no rank's node has a network faster than sockets. */
static bool only_sockets(void)
{
    int mine = nbc_fast_adapters(NULL, 0) > 0, any = 0;
    MPI_Reduce(&mine, &any, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    return !any;
}

static int loggp(int rank, int size, char **names)
{
    (void)names;
    bool sockets = only_sockets();
    int ppn = ranks_on_node(size), away = -1, near = -1;
    for (int other = size - 1; other > 0; other--) {
        if (same_name(other))
            near = other;
        else
            away = other;
    }
    struct loggp within = {0}, between = {0};
    if (rank == 0)
        meter_begin(NSIZES * ((near > 0) + (away > 0)), true);
    if (near > 0)
        within = measure_pair(rank, near);
    if (away > 0)
        between = measure_pair(rank, away);
    meter_end();
    if (rank > 0)
        return 0;
    if (near < 0)
        within = between;
    if (away < 0) {
        printf("# All ranks share one node: the values within a node stand for both.\n");
        between = within;
    }
    print_loggp("", &between);
    if (away > 0 && between.eager)
        printf("eager = %d\nhandshake = %.6g\n", between.eager, between.handshake * 1e9);
    if (away > 0 && sockets)
        printf("sockets = 1\n");
    print_loggp("within.", &within);
    printf("reduce = %.6g\ncopy = %.6g\n", per_byte(true) * 1e9, per_byte(false) * 1e9);
    printf("ppn = %d\n", away < 0 ? 1 : ppn);
    return 0;
}

/* The arguments after the option are names of collectives, or there may be none. */
static const struct mode {
    const char *option;
    int (*run)(int rank, int size, char **names);
    int least_ranks;
    const char *meaning;
    bool names;
} modes[] = {
    {"--loggp", loggp, 2, "measure the parameters of the LogGP model, for nbcsim --network", false},
    {"--rules", tune_rules, 2, "measure every algorithm and write tuning rules for NBCSHIM_TUNING",
     true},
};

enum { NMODES = sizeof modes / sizeof *modes };

static void explain(void)
{
    printf("Usage: mpiexec -n RANKS nbctune MODE [COLLECTIVE...]\n");
    for (int i = 0; i < NMODES; i++)
        printf("  %-10s %s (at least %d ranks)\n", modes[i].option, modes[i].meaning,
               modes[i].least_ranks);
    printf("  --help     show this help and exit\n  --version  show the version and exit\n"
           "With the names of collectives, --rules measures only these.\n");
}

/* Prints what --help or --version asks for. Returns whether it was one of them. */
static bool answer(const char *option, int rank)
{
    bool help = strcmp(option, "--help") == 0, version = strcmp(option, "--version") == 0;
    if (help && rank == 0)
        explain();
    if (version && rank == 0)
        printf("nbctune (nbcshim) %s\n", PACKAGE_VERSION);
    return help || version;
}

static int complain(int rank, const char *what, const char *why)
{
    if (rank == 0)
        fprintf(stderr, "nbctune: %s%s; see nbctune --help\n", what, why);
    return 2;
}

static int run(int argc, char **argv, int rank, int size)
{
    if (argc == 2 && answer(argv[1], rank))
        return 0;
    if (argc < 2)
        return complain(rank, "expected one mode", "");
    const struct mode *mode = modes;
    while (mode < modes + NMODES && strcmp(argv[1], mode->option) != 0)
        mode++;
    if (mode == modes + NMODES)
        return complain(rank, "no such mode: ", argv[1]);
    if (argc > 2 && !mode->names)
        return complain(rank, "expected one mode", "");
    for (int i = 2; i < argc; i++)
        if (nbc_coll_by_name(argv[i]) == NBC_NCOLLS)
            return complain(rank, "unknown collective ", argv[i]);
    if (size >= mode->least_ranks)
        return mode->run(rank, size, argv + 2);
    if (rank == 0)
        fprintf(stderr, "nbctune: %s needs at least %d ranks\n", argv[1], mode->least_ranks);
    return 2;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    data = calloc(1, (size_t)sizes[NSIZES - 1]);
    int status = 1;
    if (data)
        status = run(argc, argv, rank, size);
    else
        fprintf(stderr, "nbctune: out of memory\n");
    free(data);
    MPI_Finalize();
    return emit_status("nbctune", status);
}
