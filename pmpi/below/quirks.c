/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/quirks.h"

#include <stdlib.h>
#include <string.h>

#include "below/next.h"

#if defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION
/* Excludes the component "treematch" of Open MPI 4: with it, MPI_Dist_graph_create occasionally
 * hangs in programs that create and free many communicators, also without nbcshim. The component
 * that remains does not renumber ranks where `reorder` permits it. A value that the user has set
 * takes precedence. */
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
