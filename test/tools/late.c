/* SPDX-License-Identifier: MIT */
/* Stands between nbcshim and the MPI, and makes of it one whose MPI_Init does not wait for other
 * ranks: the rank LATE_RANK returns from it LATE seconds later, with LATE=stop when somebody lets
 * it continue. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void be_late(const char *how)
{
    if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    else
        sleep((unsigned)atoi(how));
}

int PMPI_Init(int *argc, char ***argv)
{
    int (*below)(int *, char ***), rank;
    void *found = dlsym(RTLD_NEXT, "PMPI_Init");
    memcpy(&below, &found, sizeof below);
    int error = below(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (getenv("LATE") && rank == atoi(getenv("LATE_RANK")))
        be_late(getenv("LATE"));
    return error;
}

/* Some tools have all functions. */
int PMPI_Get_version(int *version, int *subversion)
{
    int (*below)(int *, int *);
    void *found = dlsym(RTLD_NEXT, "PMPI_Get_version");
    memcpy(&below, &found, sizeof below);
    return below(version, subversion);
}

/* Or nbcshim would take the MPI's own function for one of a tool. */
int MPI_Init(int *argc, char ***argv)
{
    return PMPI_Init(argc, argv);
}
