/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/quirks.h"

#include <stdlib.h>
#include <string.h>

#include "below/next.h"

#if defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION
/* MPI_Dist_graph_create of Open MPI 4's component "treematch" hangs now and then in a program that
 * makes and frees many communicators, also without us; the other component does not. What it would
 * have done, to renumber ranks where `reorder` allows that, is left undone. A choice of the user's
 * stays. */
void nbc_quirks_before_init(void)
{
    static const char version_4[] = "Open MPI v4.";
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (NEXT(Get_library_version)(version, &length))
        return;
    if (strncmp(version, version_4, sizeof version_4 - 1) == 0)
        setenv("OMPI_MCA_topo", "^treematch", 0);
}
#else
void nbc_quirks_before_init(void)
{
}
#endif
