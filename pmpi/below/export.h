/* SPDX-License-Identifier: MIT */
/* Defines an MPI function: EXPORT(int, Wait, (MPI_Request *r, MPI_Status *s), (r, s)) { ... }.
 *
 * The shared library exports the function as MPI_Wait and as PMPI_Wait. Tools and Fortran bindings
 * call PMPI_Wait, and these calls must reach the shim too. If a tool is loaded between the shim and
 * the MPI, the shim's MPI_Wait calls the tool's MPI_Wait, which calls the shim's PMPI_Wait in turn.
 * A tool therefore sees each call of the program once, whatever the load order. The static library
 * defines MPI_Wait alone.
 *
 * The macro defines these functions; shim_Wait has the body:
 *
 * MPI_Wait      forward_Wait if a tool is loaded after the shim, else shim_Wait
 * PMPI_Wait     forward_Wait if tools are loaded before and after the shim and the call comes
 *               from the first, else shim_Wait
 * forward_Wait  calls the MPI_Wait of the tool that is loaded after the shim
 *
 * If calls are observed (nbc_next_observe), forward_Wait is called without a tool too, and calls
 * shim_Wait. */
#ifndef NBC_EXPORT_H
#define NBC_EXPORT_H

#include <stdbool.h>

#include "below/next.h"

/* Called at the beginning and the end of each call of the program, once nbc_next_observe has set
 * them. */
extern void (*nbc_next_enter)(void), (*nbc_next_leave)(void);

static inline void nbc_next_left(const bool *observed)
{
    (void)observed;
    if (nbc_next_leave)
        nbc_next_leave();
}

/* Calls both, the second one where the scope ends, also by an exception (C++, -fexceptions). What
 * the scope calls is no tail call then, which NBC_STAY explains. */
#define NBC_OBSERVE                                                             \
    __attribute__((cleanup(nbc_next_left), unused)) const bool observed = true; \
    if (nbc_next_enter)                                                         \
    nbc_next_enter()

/* Where the program has called the function, in its body: behind forward_Wait that is not the
 * caller. */
extern NBC_PER_THREAD const void *nbc_next_site;
#define NBC_SITE(name) \
    (NBC_IS_FORWARDED(name) ? nbc_next_site : (const void *)__builtin_return_address(0))
#define NBC_KEEP_SITE (nbc_next_site = __builtin_return_address(0))

/* After a call: prevents a tail call, which leaves no frame. A tool must return into this library,
 * by which PMPI_X recognizes that the shim has called the tool; and a hang report finds the call of
 * MPI by its frame. */
#define NBC_STAY __asm__ volatile("")

#ifdef PIC
/* One row per exported function. The linker gathers pointers to the rows into an array (a compiler
 * may align rows and leave gaps). nbc_next_resolve walks the array: it sets *next_tool if a tool
 * loaded after the shim defines the function, and then sets *has_front if a tool loaded before the
 * shim defines it too. */
struct nbc_tool {
    const char *name;
    void (**next_tool)(void);
    bool *has_front;
    void (*shim)(void);
};

/* Whether the caller of a PMPI_ function is a tool loaded before the shim, which passes on a call
 * of the program. The other callers are the MPI itself and the tool loaded after the shim. */
bool nbc_next_passed_on(void (*next_tool)(void), const void *caller);

#define NBC_IS_FORWARDED(name) __builtin_expect(!!tool_##name, 0)

#define EXPORT(type, name, params, args)                                                           \
    static type shim_##name params;                                                                \
    static type(*tool_##name) params;                                                              \
    static bool front_##name;                                                                      \
    static const struct nbc_tool row_##name = {#name, (void (**)(void)) & tool_##name,             \
                                               &front_##name, (void (*)(void))shim_##name};        \
    static const struct nbc_tool *const entry_##name __attribute__((used, section("nbc_tools"))) = \
        &row_##name;                                                                               \
    static type forward_##name params                                                              \
    {                                                                                              \
        NBC_OBSERVE;                                                                               \
        return tool_##name args;                                                                   \
    }                                                                                              \
    type MPI_##name params                                                                         \
    {                                                                                              \
        if (!NBC_IS_FORWARDED(name))                                                               \
            return shim_##name args;                                                               \
        NBC_KEEP_SITE;                                                                             \
        return forward_##name args;                                                                \
    }                                                                                              \
    type PMPI_##name params                                                                        \
    {                                                                                              \
        if (__builtin_expect(front_##name, 0) &&                                                   \
            nbc_next_passed_on((void (*)(void))tool_##name, __builtin_return_address(0))) {        \
            NBC_KEEP_SITE;                                                                         \
            return forward_##name args;                                                            \
        }                                                                                          \
        return shim_##name args;                                                                   \
    }                                                                                              \
    static type shim_##name params
#else
/* The same array, for hang reports: nothing else tells which functions of the program these are. */
struct nbc_tool {
    const char *name;
    void (*entry)(void), (*shim)(void);
};

#define NBC_IS_FORWARDED(name) __builtin_expect(!!nbc_next_enter, 0)

#define EXPORT(type, name, params, args)                                                           \
    static type shim_##name params;                                                                \
    static const struct nbc_tool row_##name = {#name, (void (*)(void))MPI_##name,                  \
                                               (void (*)(void))shim_##name};                       \
    static const struct nbc_tool *const entry_##name __attribute__((used, section("nbc_tools"))) = \
        &row_##name;                                                                               \
    type MPI_##name params                                                                         \
    {                                                                                              \
        if (__builtin_expect(!nbc_next_enter, 1))                                                  \
            return shim_##name args;                                                               \
        NBC_KEEP_SITE;                                                                             \
        NBC_OBSERVE;                                                                               \
        return shim_##name args;                                                                   \
    }                                                                                              \
    static type shim_##name params
#endif

/* The linker takes an object of the static library only if something refers to it that is not
 * defined yet. Each object that wraps functions is an archive member with a name, to which entry.c
 * refers: no call may bypass nbcshim, even if only a shared library of the program makes it, or if
 * the MPI comes before nbcshim on the link line. */
#ifdef PIC
#define NBC_ARCHIVE_MEMBER(name)
#else
#define NBC_ARCHIVE_MEMBER(name) const char nbc_archive_member_##name = 0;
#endif

#endif
