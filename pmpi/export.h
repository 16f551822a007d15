/* SPDX-License-Identifier: MIT */
/* Defines an MPI function: EXPORT(int, Wait, (MPI_Request *r, MPI_Status *s), (r, s)) { … }.
 *
 * The shared object exports it as MPI_Wait and PMPI_Wait, because callers of either must find the
 * shim: tools and Fortran bindings call PMPI_Wait. Where a tool stands between the shim and the MPI
 * (preloaded behind it), our MPI_Wait hands the call to the tool's, which comes back through
 * PMPI_Wait: so a tool sees each call of the program once, in whichever order things are loaded.
 * The static library defines MPI_Wait alone. */
#ifndef NBC_EXPORT_H
#define NBC_EXPORT_H

#include "next.h"

#ifdef PIC
/* One per exported function, gathered by the linker into an array for nbc_next_resolve, which
 * fills the slot where a tool defines the function. */
struct nbc_tool {
    const char *name;
    void (**slot)(void);
};

#define EXPORT(type, name, params, args)                                                           \
    static type work_##name params;                                                                \
    static type(*tool_##name) params;                                                              \
    static const struct nbc_tool entry_##name                                                      \
        __attribute__((used, section("nbc_tools"))) = {#name, (void (**)(void)) & tool_##name};    \
    type MPI_##name params                                                                         \
    {                                                                                              \
        return __builtin_expect(!!tool_##name, 0) ? tool_##name args : work_##name args;           \
    }                                                                                              \
    type PMPI_##name params                                                                        \
    {                                                                                              \
        return work_##name args;                                                                   \
    }                                                                                              \
    static type work_##name params
#else
#define EXPORT(type, name, params, args) type MPI_##name params
#endif

#endif
