/* SPDX-License-Identifier: MIT */
/* Stands between nbcshim and the MPI, and makes of it one whose MPI_Init does not wait for other
 * ranks: the rank LATE_RANK returns from it LATE seconds later, with LATE=stop when somebody lets
 * it continue. */
#include "below.h"

#include <signal.h>
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
    int rank;
    BELOW(Init);
    int error = below(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (getenv("LATE") && rank == atoi(getenv("LATE_RANK")))
        be_late(getenv("LATE"));
    return error;
}

/* Some tools have all functions. */
int PMPI_Get_version(int *version, int *subversion)
{
    BELOW(Get_version);
    return below(version, subversion);
}

/* Or nbcshim would take the MPI's own function for one of a tool. */
int MPI_Init(int *argc, char ***argv)
{
    return PMPI_Init(argc, argv);
}
