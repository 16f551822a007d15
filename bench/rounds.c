/* SPDX-License-Identifier: MIT */
/* rounds: how long collectives take on hosts that are far from each other (bench/hosts): those of
 * nbcshim, started and waited for, and those of the MPI, nonblocking and blocking.
 *
 *     mpiexec -n RANKS rounds SAMPLES SIZES [COLLECTIVE[:ALGORITHM[/SEGMENT]]...]...
 *
 * SIZES are separated by commas. Prints a line for each cell: collective, bytes, algorithm of
 * nbcshim, and three times in microseconds: the least of the samples, since what else the machine
 * does only makes them longer. Algorithms that are named with a collective are measured beside
 * these: their times come behind. All ranks start at the same time, by the clock of the machine
 * that they share; a sample ends with the last of them. Samples from which a hypervisor has taken
 * processors are taken again. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runner.h"
#include "select.h"

#ifdef HAVE_MPI_COMM_DUP_WITH_INFO

/* NONBLOCKING and BLOCKING are of the MPI. From FORCED on the user names the algorithms. */
enum { OURS, NONBLOCKING, BLOCKING, FORCED, MOST_WAYS = FORCED + 16 };

static MPI_Comm comm, forced[MOST_WAYS];
static int rank, samples, ways;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the time at which all ranks are back. */
static double start_together(void)
{
    native.Barrier(comm);
    double from = now() + 0.02;
    native.Bcast(&from, 1, MPI_DOUBLE, 0, comm);
    struct timespec until = {(time_t)from, (long)((from - (double)(time_t)from) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
        ;
    return from;
}

static void run_once(const struct operands *o, int way)
{
    bool native_way = way == NONBLOCKING || way == BLOCKING;
    const struct calls *c = native_way ? &native : &shim;
    struct operands mine = *o;
    MPI_Request r;
    mine.comm = way >= FORCED ? forced[way] : o->comm;
    if (way == BLOCKING)
        operands_call(c, &mine);
    else if (operands_start(c, &mine, &r))
        c->Wait(&r, MPI_STATUS_IGNORE);
}

/* The time that the machine below a virtual one has given to others so far, in the units of
 * /proc/stat, which are mostly 10 ms. Only rank 0 looks: all hosts share the processors. */
static long stolen(void)
{
    long ticks = 0;
    FILE *f = rank == 0 ? fopen("/proc/stat", "r") : NULL;
    if (f && fscanf(f, "cpu %*s %*s %*s %*s %*s %*s %*s %ld", &ticks) != 1)
        ticks = 0;
    if (f)
        fclose(f);
    return ticks;
}

/* All ways, each time beginning with another one. */
static void take_sample(const struct operands *o, double least[], int number)
{
    for (int i = 0; i < ways; i++) {
        int way = (number + i) % ways;
        double from = start_together();
        run_once(o, way);
        double time = now() - from;
        of_slowest(comm, &time, 1);
        if (number <= 1 || time < least[way])
            least[way] = time;
    }
}

/* The first sample does not count. One from which the machine below takes more than a moment is
 * taken again, but not for ever. */
static void measure(const struct operands *o, double least[])
{
    enum { MOMENT = 1, TURNS = 4 };
    for (int number = 0, good = 0; number <= TURNS * samples && good < samples; number++) {
        long before = stolen();
        take_sample(o, least, number);
        int undisturbed = number > 0 && stolen() - before <= MOMENT;
        native.Bcast(&undisturbed, 1, MPI_INT, 0, comm);
        good += undisturbed;
    }
}

static void run_cell(enum nbc_coll coll, long bytes)
{
    struct operands o;
    double t[MOST_WAYS];
    if (!operands_make(&o, coll, comm, (int)(bytes / 8))) {
        fprintf(stderr, "rounds: out of memory\n");
        MPI_Abort(comm, 1);
    }
    operands_ask(&o);
    measure(&o, t);
    if (rank == 0)
        printf("%s %ld %s", nbc_coll_name(coll), bytes, o.alg ? o.alg->name : "-");
    for (int way = 0; way < ways && rank == 0; way++)
        printf("%s%.1f", way == FORCED ? "   " : " ", t[way] * 1e6);
    if (rank == 0)
        printf("\n");
    fflush(stdout);
    operands_free(&o);
}

static void run_collective(enum nbc_coll coll, const char *sizes)
{
    for (const char *at = sizes; *at; at += *at == ',') {
        char *end;
        long bytes = strtol(at, &end, 10);
        if (end == at)
            return;
        run_cell(coll, coll == NBC_BARRIER ? 0 : bytes);
        if (coll == NBC_BARRIER)
            return;
        at = end;
    }
}

/* Makes a communicator on which nbcshim runs an algorithm with a segment size. */
static void force(char *algorithm)
{
    MPI_Info info;
    char *segment = strchr(algorithm, '/');
    if (ways == MOST_WAYS)
        return;
    if (segment)
        *segment++ = '\0';
    MPI_Info_create(&info);
    MPI_Info_set(info, "nbcshim_algorithm", algorithm);
    if (segment)
        MPI_Info_set(info, "nbcshim_segment_size", segment);
    MPI_Comm_dup_with_info(comm, info, &forced[ways++]);
    MPI_Info_free(&info);
}

/* Measures the collective that an argument names, with its algorithms. */
static void run_named(char *argument, const char *sizes)
{
    char *rest = argument;
    const char *name = strtok_r(rest, ":", &rest);
    ways = FORCED;
    for (char *algorithm; (algorithm = strtok_r(rest, ":", &rest));)
        force(algorithm);
    enum nbc_coll coll = nbc_coll_by_name(name);
    if (coll <= NBC_EXSCAN)
        run_collective(coll, sizes);
    while (ways > FORCED)
        MPI_Comm_free(&forced[--ways]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    samples = argc > 2 ? atoi(argv[1]) : 0;
    if (samples < 1 || !calls_load()) {
        fprintf(stderr, "usage: rounds SAMPLES SIZES [COLLECTIVE[:ALGORITHM[/SEGMENT]]...]...\n");
        MPI_Abort(comm, 2);
    }
    ways = FORCED;
    for (int coll = 0; coll <= NBC_EXSCAN && argc == 3; coll++)
        run_collective(coll, argv[2]);
    for (int i = 3; i < argc; i++)
        run_named(argv[i], argv[2]);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}

#else

/* An MPI-2.2 has neither nonblocking collectives of its own nor hints of communicators. */
int main(void)
{
    fprintf(stderr, "rounds needs an MPI-3\n");
    return 77;
}

#endif
