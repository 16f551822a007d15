/* SPDX-License-Identifier: MIT */
/* To be preloaded after nbcshim: an MPI whose MPI_Finalize first deletes the attributes of
 * MPI_COMM_SELF, as the standard says and Open MPI 5 does. MPICH deletes them when the last session
 * ends as well. */
#include "below.h"

#include <stdio.h>

enum { MOST = 8 };
static int keyvals[MOST], n, early;

int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
    BELOW(Comm_set_attr);
    if (comm == MPI_COMM_SELF && n < MOST)
        keyvals[n++] = keyval;
    return below(comm, keyval, value);
}

static void delete_all(void)
{
    BELOW(Comm_delete_attr);
    for (early = n; n > 0;)
        below(MPI_COMM_SELF, keyvals[--n]);
}

int PMPI_Finalize(void)
{
    BELOW(Finalize);
    delete_all();
    return below();
}

/* Or nbcshim would take the MPI's own function for one of a tool. */
int MPI_Finalize(void)
{
    return PMPI_Finalize();
}

__attribute__((destructor)) static void report(void)
{
    if (early)
        fprintf(stderr, "deleted early: %d\n", early);
}
