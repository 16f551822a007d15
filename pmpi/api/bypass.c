/* SPDX-License-Identifier: MIT */
/* Programs whose calls of MPI go to the MPI itself and not to nbcshim, because its library comes
 * first, or because they take MPI_Init from it. nbcshim can run no collective there: the calls that
 * complete its requests would go to the MPI too. */
#include "api/setup.h"

#include <stdio.h>

#include "base/settings.h"
#include "base/state.h"
#include "below/detect.h"
#include "below/next.h"
#include "diag/diag.h"

bool nbc_init_was_called;

static void explain_order(const char *mpi, char *text, size_t room)
{
    snprintf(text, room,
             "the dynamic linker searches %s before nbcshim's library, so that calls of MPI bypass "
             "nbcshim. Link nbcshim before the MPI: \"nbcc ...\"; \"-lnbcshim -lmpi\" in this "
             "order; with CMake find_package(nbcshim) and target_link_libraries(... "
             "nbcshim::nbcshim). Or start the program as it is with nbcrun",
             mpi);
}

/* unreached: in a process that writes no counts */
static bool is_initialized_below(void)
{
    int begun = 0, ended = 0;
    NEXT(Initialized)(&begun);
    NEXT(Finalized)(&ended);
    return begun && !ended;
}

void nbc_explain_bypass(char *text, size_t room)
{
    if (nbc_next_mpi_in_front)
        explain_order(nbc_next_mpi_in_front, text, room);
    /* unreached: in a process that writes no counts */
    else if (!nbc_world_initialized && is_initialized_below())
        /* unreached: in a process that writes no counts */
        snprintf(text, room, "the program called the MPI's own MPI_Init, which bypasses nbcshim");
}

#ifdef PIC
/* When the library is loaded: if the MPI has all functions that the program calls, none of them
 * reaches nbcshim. */
__attribute__((constructor)) static void warn_of_order(void)
{
    char text[1024];
    nbc_next_resolve();
    if (!nbc_next_mpi_in_front || nbc_launcher_rank() > 0)
        return;
    nbc_settings_read(false);
    if (nbc_settings.mode == NBC_MODE_OFF)
        return;
    nbc_explain_bypass(text, sizeof text);
    fprintf(stderr, "nbcshim: without effect: %s\n", text);
}

/* A program that takes its functions from the MPI's library by itself (dlsym, ctypes of Python)
 * does not reach nbcshim, which notices only at the end that the MPI has been used without it. */
__attribute__((destructor)) static void warn_of_bypass(void)
{
    if (nbc_init_was_called || nbc_next_mpi_in_front || nbc_launcher_rank() > 0)
        return;
    nbc_settings_read(false);
    /* The variable by which the user expects something of nbcshim. */
    const char *expected = nbc_settings.mode == NBC_MODE_ON ? "NBCSHIM=on"
                           : nbc_settings.mode == NBC_MODE_AUTO && nbc_settings.stats
                               ? "NBCSHIM_STATS is set"
                               : NULL;
    if (expected && nbc_mpi_is_initialized())
        fprintf(stderr,
                "nbcshim: %s, but the program, or a tool behind nbcshim, called MPI_Init in the "
                "MPI's library directly, bypassing nbcshim (dlsym, ctypes)\n",
                expected);
}
#endif
