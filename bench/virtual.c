/* SPDX-License-Identifier: MIT */
/* Measures collectives in the virtual time of SMPI: start and wait of nbcshim, or the blocking
 * calls of SMPI itself, whose algorithms its option smpi/coll-selector chooses. bench/virtual runs
 * it.
 *
 *   virtual nbcshim|NAME BYTES...
 *
 * prints lines "NAME collective ranks bytes seconds". All ranks start at the same time; the time is
 * that of the last one. In virtual time there is no noise, so each call is made once. */
#include <mpi.h>

#include <nbcshim.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The largest memory of a rank, and of all ranks. */
enum { MOST_OF_RANK = 16 << 20, MOST_OF_ALL = 512 << 20 };

/* On more than MANY ranks SMPI takes about a minute or more for a cell of more bytes, for its own
 * scans, and for an alltoall(v, w) of more than MOST_TO_EACH. */
enum { MANY = 64, MOST_OF_MANY = 65536, MOST_TO_EACH = 8 };

static int rank, size;
static char *in, *out;

/* Of the collectives with counts: equal blocks, one after the other. */
static int *counts, *displs;
static MPI_Datatype *types;

struct row {
    const char *name;
    bool blocks; /* the bytes are of one block, of which there is one for each rank */
    bool empty;  /* there is only one size */
    void (*native)(int n);
    void (*start)(int n, MPI_Request *request);
};

#define ROW(name, CALL, START)                            \
    static void native_##name(int n)                      \
    {                                                     \
        (void)n;                                          \
        PMPI_##CALL;                                      \
    }                                                     \
    static void start_##name(int n, MPI_Request *request) \
    {                                                     \
        (void)n;                                          \
        MPI_I##START;                                     \
    }

/* Reductions are of doubles, so that no size has a fraction of one. */
#define DOUBLES (n / 8), MPI_DOUBLE, MPI_SUM

ROW(barrier, Barrier(MPI_COMM_WORLD), barrier(MPI_COMM_WORLD, request))
ROW(bcast, Bcast(out, n, MPI_BYTE, 0, MPI_COMM_WORLD),
    bcast(out, n, MPI_BYTE, 0, MPI_COMM_WORLD, request))
ROW(gather, Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, MPI_COMM_WORLD),
    gather(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, MPI_COMM_WORLD, request))
ROW(scatter, Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, MPI_COMM_WORLD),
    scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, MPI_COMM_WORLD, request))
ROW(allgather, Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD),
    allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD, request))
ROW(alltoall, Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD),
    alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD, request))
ROW(reduce, Reduce(in, out, DOUBLES, 0, MPI_COMM_WORLD),
    reduce(in, out, DOUBLES, 0, MPI_COMM_WORLD, request))
ROW(allreduce, Allreduce(in, out, DOUBLES, MPI_COMM_WORLD),
    allreduce(in, out, DOUBLES, MPI_COMM_WORLD, request))
ROW(reduce_scatter_block, Reduce_scatter_block(in, out, DOUBLES, MPI_COMM_WORLD),
    reduce_scatter_block(in, out, DOUBLES, MPI_COMM_WORLD, request))
#define BYTES counts, displs, MPI_BYTE

ROW(gatherv, Gatherv(in, n, MPI_BYTE, out, BYTES, 0, MPI_COMM_WORLD),
    gatherv(in, n, MPI_BYTE, out, BYTES, 0, MPI_COMM_WORLD, request))
ROW(scatterv, Scatterv(in, BYTES, out, n, MPI_BYTE, 0, MPI_COMM_WORLD),
    scatterv(in, BYTES, out, n, MPI_BYTE, 0, MPI_COMM_WORLD, request))
ROW(allgatherv, Allgatherv(in, n, MPI_BYTE, out, BYTES, MPI_COMM_WORLD),
    allgatherv(in, n, MPI_BYTE, out, BYTES, MPI_COMM_WORLD, request))
ROW(alltoallv, Alltoallv(in, BYTES, out, BYTES, MPI_COMM_WORLD),
    alltoallv(in, BYTES, out, BYTES, MPI_COMM_WORLD, request))
ROW(alltoallw, Alltoallw(in, counts, displs, types, out, counts, displs, types, MPI_COMM_WORLD),
    alltoallw(in, counts, displs, types, out, counts, displs, types, MPI_COMM_WORLD, request))
ROW(reduce_scatter, Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
    reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request))
ROW(exscan, Exscan(in, out, DOUBLES, MPI_COMM_WORLD),
    exscan(in, out, DOUBLES, MPI_COMM_WORLD, request))
ROW(scan, Scan(in, out, DOUBLES, MPI_COMM_WORLD), scan(in, out, DOUBLES, MPI_COMM_WORLD, request))

#define FUNCTIONS(name) native_##name, start_##name

static const struct row rows[] = {
    {"barrier", false, true, FUNCTIONS(barrier)},
    {"bcast", false, false, FUNCTIONS(bcast)},
    {"gather", true, false, FUNCTIONS(gather)},
    {"gatherv", true, false, FUNCTIONS(gatherv)},
    {"scatter", true, false, FUNCTIONS(scatter)},
    {"scatterv", true, false, FUNCTIONS(scatterv)},
    {"allgather", true, false, FUNCTIONS(allgather)},
    {"allgatherv", true, false, FUNCTIONS(allgatherv)},
    {"alltoall", true, false, FUNCTIONS(alltoall)},
    {"alltoallv", true, false, FUNCTIONS(alltoallv)},
    {"alltoallw", true, false, FUNCTIONS(alltoallw)},
    {"reduce", false, false, FUNCTIONS(reduce)},
    {"allreduce", false, false, FUNCTIONS(allreduce)},
    {"reduce_scatter_block", true, false, FUNCTIONS(reduce_scatter_block)},
    {"reduce_scatter", true, false, FUNCTIONS(reduce_scatter)},
    {"scan", false, false, FUNCTIONS(scan)},
    {"exscan", false, false, FUNCTIONS(exscan)},
};

static void set_blocks(int n)
{
    for (int i = 0; i < size; i++) {
        counts[i] = n;
        displs[i] = i * n;
        types[i] = MPI_BYTE;
    }
}

/* The clock of the simulation is one for all ranks. */
static double start_together(void)
{
    double begin = PMPI_Wtime() + 1;
    PMPI_Bcast(&begin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    double left = begin - PMPI_Wtime();
    struct timespec pause = {.tv_sec = (time_t)left};
    pause.tv_nsec = (long)((left - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
    return begin;
}

static double measure(const struct row *row, bool native, int n)
{
    MPI_Request request;
    set_blocks(row->start == start_reduce_scatter ? n / 8 : n);
    double last, begin = start_together();
    if (native) {
        row->native(n);
    } else {
        row->start(n, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    double mine = PMPI_Wtime() - begin;
    PMPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last;
}

static bool fits(const struct row *row, double n)
{
    double most = row->blocks ? n * size : n;
    bool to_each = strncmp(row->name, "alltoall", strlen("alltoall")) == 0;
    bool prefix = row->start == start_scan || row->start == start_exscan;
    if (size > MANY && (n > MOST_OF_MANY || prefix || (to_each && n > MOST_TO_EACH)))
        return false;
    return most <= MOST_OF_RANK && most * size <= MOST_OF_ALL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    bool native = strcmp(argv[1], "nbcshim") != 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in = calloc(1, MOST_OF_RANK);
    out = calloc(1, MOST_OF_RANK);
    counts = calloc((size_t)size, sizeof *counts);
    displs = calloc((size_t)size, sizeof *displs);
    types = calloc((size_t)size, sizeof *types);
    if (!in || !out || !counts || !displs || !types)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 2; k < argc; k++) {
            int n = rows[i].empty ? 0 : atoi(argv[k]);
            if ((rows[i].empty && k > 2) || !fits(&rows[i], n))
                continue;
            double seconds = measure(&rows[i], native, n);
            if (rank == 0)
                printf("%s %s %d %d %.9f\n", argv[1], rows[i].name, size, n, seconds);
        }
    free(in);
    free(out);
    free(counts);
    free(displs);
    free(types);
    MPI_Finalize();
    return 0;
}
