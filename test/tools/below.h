/* SPDX-License-Identifier: MIT */
/* For libraries that are preloaded after nbcshim, and make another MPI of the one below (bent_mpi
 * of lib.sh): BELOW(name) declares `below`, the next function PMPI_name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define BELOW(name)                        \
    static __typeof__(&PMPI_##name) below; \
    if (!below)                            \
    find_below(&below, "PMPI_" #name)

static void find_below(void *function, const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    if (!address)
        abort();
    memcpy(function, &address, sizeof address);
}
