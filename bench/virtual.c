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
 * scan, and for an alltoall of more than MOST_TO_EACH. */
enum { MANY = 64, MOST_OF_MANY = 65536, MOST_TO_EACH = 8 };

static int rank, size;
static char *in, *out;

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
ROW(scan, Scan(in, out, DOUBLES, MPI_COMM_WORLD), scan(in, out, DOUBLES, MPI_COMM_WORLD, request))

static const struct row rows[] = {
    {"barrier", false, true, native_barrier, start_barrier},
    {"bcast", false, false, native_bcast, start_bcast},
    {"gather", true, false, native_gather, start_gather},
    {"scatter", true, false, native_scatter, start_scatter},
    {"allgather", true, false, native_allgather, start_allgather},
    {"alltoall", true, false, native_alltoall, start_alltoall},
    {"reduce", false, false, native_reduce, start_reduce},
    {"allreduce", false, false, native_allreduce, start_allreduce},
    {"reduce_scatter_block", true, false, native_reduce_scatter_block, start_reduce_scatter_block},
    {"scan", false, false, native_scan, start_scan},
};

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
    if (size > MANY && (n > MOST_OF_MANY || row->start == start_scan ||
                        (row->start == start_alltoall && n > MOST_TO_EACH)))
        return false;
    return most <= MOST_OF_RANK && most * size <= MOST_OF_ALL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    bool native = strcmp(argv[1], "nbcshim") != 0;
    const char *only = getenv("VIRTUAL_ONLY");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in = calloc(1, MOST_OF_RANK);
    out = calloc(1, MOST_OF_RANK);
    for (size_t i = 0; in && out && i < sizeof rows / sizeof *rows; i++)
        for (int k = 2; k < argc; k++) {
            int n = rows[i].empty ? 0 : atoi(argv[k]);
            if ((only && !strstr(only, rows[i].name)) || (rows[i].empty && k > 2) ||
                !fits(&rows[i], n))
                continue;
            double seconds = measure(&rows[i], native, n);
            if (rank == 0)
                printf("%s %s %d %d %.9f\n", argv[1], rows[i].name, size, n, seconds);
        }
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
