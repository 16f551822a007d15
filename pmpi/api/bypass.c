/* SPDX-License-Identifier: MIT */
/* Programs whose calls of MPI go to the MPI itself and not to nbcshim, because its library comes
 * first, or because they take MPI_Init from it. nbcshim can run no collective there: the calls that
 * complete its requests would go to the MPI too. */
#include "api/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbcshim.h"

#include "base/state.h"
#include "below/detect.h"
#include "below/next.h"
#include "diag/diag.h"

#include "coll.h"

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

bool nbc_bypassed(char *text, size_t room)
{
    const char *mpi = nbc_next_mpi_in_front();
    if (mpi)
        explain_order(mpi, text, room);
    /* unreached: in a process that writes no counts */
    else if (!nbc_world_initialized && is_initialized_below())
        /* unreached: in a process that writes no counts */
        snprintf(text, room, "the program called the MPI's own MPI_Init, which bypasses nbcshim");
    else
        return false; /* unreached: in a process that writes no counts */
    return true;
}

#ifdef PIC
/* What the launcher says; true if it says nothing. */
static bool is_first_rank(void)
{
    const char *slurm = getenv("SLURM_PROCID");
    int rank = nbc_launcher_rank();
    return rank >= 0 ? rank == 0 : !slurm || strcmp(slurm, "0") == 0;
}

static const char *value_of(const char *variable)
{
    struct nbcshim_variable v;
    for (int i = 0; nbcshim_variable(i, &v); i++)
        if (strcmp(v.name, variable) == 0)
            return v.value;
    return NULL; /* unreached: never: they are listed */
}

/* Whether NBCSHIM has this value. */
static bool is_set_to(const char *value)
{
    const char *set = value_of("NBCSHIM");
    return set && nbc_same_word(set, value);
}

/* When the library is loaded: if the MPI has all functions that the program calls, none of them
 * reaches nbcshim. */
__attribute__((constructor)) static void warn_of_order(void)
{
    char text[1024];
    nbc_next_resolve();
    if (!nbc_next_mpi_in_front() || !is_first_rank() || is_set_to("off"))
        return;
    nbc_bypassed(text, sizeof text);
    fprintf(stderr, "nbcshim: without effect: %s\n", text);
}

/* A program that takes its functions from the MPI's library by itself (dlsym, ctypes of Python)
 * does not reach nbcshim, which notices only at the end that the MPI has been used without it. */
__attribute__((destructor)) static void warn_of_bypass(void)
{
    /* The variable by which the user expects something of nbcshim. */
    const char *expected = is_set_to("on")                                  ? "NBCSHIM=on"
                           : value_of("NBCSHIM_STATS") && !is_set_to("off") ? "NBCSHIM_STATS is set"
                                                                            : NULL;
    if (nbc_init_was_called || nbc_next_mpi_in_front() || !is_first_rank() || !expected)
        return;
    if (nbc_mpi_is_initialized())
        fprintf(stderr,
                "nbcshim: %s, but the program, or a tool behind nbcshim, called MPI_Init in the "
                "MPI's library directly, bypassing nbcshim (dlsym, ctypes)\n",
                expected);
}
#endif
