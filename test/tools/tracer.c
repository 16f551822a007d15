/* SPDX-License-Identifier: MIT */
/* A tool as profilers are: it defines MPI_ functions, counts their calls, and calls PMPI_. At
 * MPI_Finalize every rank adds one line to the file that TRACER_LOG names (launchers mix the lines
 * of several ranks up), which TRACER begins:
 *
 *     tracer rank 0: Allreduce_init 2 Comm_dup 1 ...
 *
 * in the order of the table, without what was never called. */
#include <nbcshim.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef TRACER
#define TRACER "tracer"
#endif

#ifdef WEAK /* linked into a program; preloading brings what the MPI lacks */
#pragma weak PMPI_Allreduce_init
#endif

enum traced {
#define TRACED(name, params, args) COUNT_##name,
#include "tracer.def"
#undef TRACED
    NTRACED
};

static const char *const names[] = {
#define TRACED(name, params, args) #name,
#include "tracer.def"
#undef TRACED
};

static int counts[NTRACED]; /* of a single-threaded program */

#define TRACED(name, params, args) \
    int MPI_##name params          \
    {                              \
        counts[COUNT_##name]++;    \
        return PMPI_##name args;   \
    }
#include "tracer.def"
#undef TRACED

static void print(int rank)
{
    char line[1000];
    int n = snprintf(line, sizeof line, TRACER " rank %d:", rank);
    for (int i = 0; i < NTRACED; i++)
        if (counts[i] > 0)
            n += snprintf(line + n, sizeof line - n, " %s %d", names[i], counts[i]);
    line[n++] = '\n';
    const char *name = getenv("TRACER_LOG");
    int file = name ? open(name, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
    if (file < 0 || write(file, line, n) != n)
        perror("TRACER_LOG");
    close(file);
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    print(rank);
    return PMPI_Finalize();
}
