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

#include <stdbool.h>

#include "below/next.h"

#ifdef PIC
/* One per exported function. The linker gathers pointers to them (rows themselves a compiler may
 * align, and leave gaps) into an array for nbc_next_resolve, which fills the slots where a tool
 * behind us defines the function: the second one only if another tool, in front of us, does so too.
 */
struct nbc_tool {
    const char *name;
    void (**behind)(void);
    bool *between;
};

/* Whether the PMPI_ call from this address is one of the program's, which a tool in front of us has
 * passed on. Others are the MPI's own, and those of the tool behind us. */
bool nbc_next_passed_on(void (*behind)(void), const void *caller);

/* Not a tail call: our frame tells PMPI_X that the tool was called from here. */
#define NBC_STAY __asm__ volatile("")

#define EXPORT(type, name, params, args)                                                           \
    static type shim_##name params;                                                                \
    static type(*tool_##name) params;                                                              \
    static bool between_##name;                                                                    \
    static const struct nbc_tool row_##name = {#name, (void (**)(void)) & tool_##name,             \
                                               &between_##name};                                   \
    static const struct nbc_tool *const entry_##name __attribute__((used, section("nbc_tools"))) = \
        &row_##name;                                                                               \
    static type forward_##name params                                                              \
    {                                                                                              \
        type result = tool_##name args;                                                            \
        NBC_STAY;                                                                                  \
        return result;                                                                             \
    }                                                                                              \
    type MPI_##name params                                                                         \
    {                                                                                              \
        return __builtin_expect(!!tool_##name, 0) ? forward_##name args : shim_##name args;        \
    }                                                                                              \
    type PMPI_##name params                                                                        \
    {                                                                                              \
        if (__builtin_expect(between_##name, 0) &&                                                 \
            nbc_next_passed_on((void (*)(void))tool_##name, __builtin_return_address(0)))          \
            return forward_##name args;                                                            \
        return shim_##name args;                                                                   \
    }                                                                                              \
    static type shim_##name params
#else
#define EXPORT(type, name, params, args) type MPI_##name params
#endif

#endif
