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

/* Reductions are of doubles, so that no size has a fraction of one. */
#define BUFFER out, n, MPI_BYTE
#define S_BLOCK in, n, MPI_BYTE
#define R_BLOCK out, n, MPI_BYTE
#define S_VECTOR in, counts, displs, MPI_BYTE
#define R_VECTOR out, counts, displs, MPI_BYTE
#define S_TYPES in, counts, displs, types
#define R_TYPES out, counts, displs, types
#define S_ADDRESSES in, counts, NULL, types
#define R_ADDRESSES out, counts, NULL, types
#define VECTOR in, out, n / 8, MPI_DOUBLE, MPI_SUM
#define OF_BLOCK VECTOR
#define OF_BLOCKS in, out, counts, MPI_DOUBLE, MPI_SUM
#define ROOT 0

enum coll {
    BARRIER,
#define CALL(NAME, ...) NAME,
#include "common/collectives.def"
#undef CALL
};

static const char *const names[] = {
    "barrier",
#define CALL(NAME, Name, name, ...) #name,
#include "common/collectives.def"
#undef CALL
};

static void start(enum coll coll, bool native, int n, MPI_Request *request)
{
    switch (coll) {
    case BARRIER:
        native ? PMPI_Barrier(MPI_COMM_WORLD) : MPI_Ibarrier(MPI_COMM_WORLD, request);
        break;
#define CALL(NAME, Name, name, ...)                                 \
    case NAME:                                                      \
        native ? PMPI_##Name(__VA_ARGS__, MPI_COMM_WORLD)           \
               : MPI_I##name(__VA_ARGS__, MPI_COMM_WORLD, request); \
        break;
#include "common/collectives.def"
#undef CALL
    }
}

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

static double measure(enum coll coll, bool native, int n)
{
    MPI_Request request = MPI_REQUEST_NULL;
    set_blocks(coll == REDUCE_SCATTER ? n / 8 : n);
    double last, begin = start_together();
    start(coll, native, n, &request);
    if (!native)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    double mine = PMPI_Wtime() - begin;
    PMPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return last;
}

static bool fits(enum coll coll, double n)
{
    bool vector = coll == BCAST || coll == REDUCE || coll == ALLREDUCE || coll >= SCAN;
    bool to_each = coll >= ALLTOALL && coll <= ALLTOALLW;
    double most = vector ? n : n * size;
    if (size > MANY && (n > MOST_OF_MANY || coll >= SCAN || (to_each && n > MOST_TO_EACH)))
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
    for (enum coll coll = BARRIER; coll <= EXSCAN; coll++) /* neighborhoods need a topology */
        for (int k = 2; k < (coll == BARRIER ? 3 : argc); k++) {
            int n = coll == BARRIER ? 0 : atoi(argv[k]);
            if (!fits(coll, n))
                continue;
            double seconds = measure(coll, native, n);
            if (rank == 0)
                printf("%s %s %d %d %.9f\n", argv[1], names[coll], size, n, seconds);
        }
    free(in);
    free(out);
    free(counts);
    free(displs);
    free(types);
    MPI_Finalize();
    return 0;
}
