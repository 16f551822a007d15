/* SPDX-License-Identifier: MIT */
/* A tool as profilers are: it defines MPI_ functions, counts their calls, and calls PMPI_. At its
 * end every rank that has made such calls adds one line to the file that TRACER_LOG names
 * (launchers mix the lines of several ranks up), which TRACER begins:
 *
 *     tracer rank 0: Allreduce_init 2 Comm_dup 1 ...
 *
 * in the order of the table, without what was never called. */
#include <nbcshim.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if MPI_VERSION >= 3
#define CONST const
#else /* its prototypes have none, but those of nbcshim.h */
#define CONST
#endif

#ifndef TRACER
#define TRACER "tracer"
#endif

#ifdef WEAK /* linked into a program; preloading brings what the MPI lacks */
#pragma weak PMPI_Allreduce_init
#pragma weak PMPI_Iallreduce
#pragma weak PMPI_Ibarrier
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
static int rank = -1;

static void called(enum traced function)
{
    int ready;
    counts[function]++;
    PMPI_Initialized(&ready);
    if (rank < 0 && ready)
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

#define TRACED(name, params, args) \
    int MPI_##name params          \
    {                              \
        called(COUNT_##name);      \
        return PMPI_##name args;   \
    }
#include "tracer.def"
#undef TRACED

/* Not in MPI_Finalize: some Fortran bindings call PMPI_Finalize. */
static void __attribute__((destructor)) print(void)
{
    char line[1000];
    if (rank < 0)
        return;
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
