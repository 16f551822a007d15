/* SPDX-License-Identifier: MIT */
/* What libnbcprofile.so calls: the PMPI_ functions of nbcshim or the MPI, whichever is next. */
#ifndef NBC_PROFILE_NEXT_H
#define NBC_PROFILE_NEXT_H

#include <mpi.h>

/* The function PMPI_name behind this library. Without one the MPI lacks it: says so, and ends the
 * program, as the dynamic linker would. */
void (*nbc_profile_next(const char *name))(void);

#define PROFILE_NEXT(name)                                            \
    __extension__({                                                   \
        static __typeof__(MPI_##name) *next;                          \
        if (!next)                                                    \
            next = (__typeof__(MPI_##name) *)nbc_profile_next(#name); \
        next;                                                         \
    })

/* Defines MPI_X and PMPI_X (which Open MPI's Fortran calls): both note the caller. */
#define PROFILE_EXPORT(name, params, args)                \
    static int profiled_##name params;                    \
    int MPI_##name params                                 \
    {                                                     \
        nbc_profile_caller = __builtin_return_address(0); \
        return profiled_##name args;                      \
    }                                                     \
    int PMPI_##name params                                \
    {                                                     \
        nbc_profile_caller = __builtin_return_address(0); \
        return profiled_##name args;                      \
    }                                                     \
    static int profiled_##name params

#endif
