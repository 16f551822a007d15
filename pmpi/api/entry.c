/* SPDX-License-Identifier: MIT */
/* The entry points of the collectives. Each row of collectives.def makes six functions: blocking,
 * nonblocking and persistent, with counts of type int and MPI_Count. */
#include <stdio.h>

#include "nbcshim.h"

#include "api/setup.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/state.h"
#include "below/export.h"
#include "engine/calls.h"
#include "op/call.h"

#ifndef PIC
/* clang-format off */
#define MEMBERS(M) \
    M(communicators) M(dynamic) M(files) M(free) M(idup) M(init) M(p2p) M(properties) \
    M(sessions) M(start) M(wait_test) M(windows)
/* clang-format on */
#define DECLARE(name) extern const char nbc_archive_member_##name;
#define ADDRESS(name) &nbc_archive_member_##name,
MEMBERS(DECLARE)
static const char *const members[] __attribute__((used)) = {MEMBERS(ADDRESS)};
#endif

/* Calls the function of the MPI below, where it has one. */
#define BELOW(name, args)         \
    do {                          \
        NBC_FIND_BELOW(name);     \
        if (function)             \
            return function args; \
    } while (0)

static void explain_lacking(const char *name, const char *why)
{
    static bool warned; /* without a lock: a second line would do no harm */
    if (!warned)
        fprintf(stderr, "nbcshim: MPI_%s failed: this MPI lacks it, and %s\n", name, why);
    warned = true;
}

/* Raises the error for a collective on a communicator without a context, where the MPI lacks the
 * function, and returns it. If the reason is that nbcshim is inactive, a line on standard error
 * says once how to change that. */
static __attribute__((cold, noinline)) int raise_lacking(const struct nbc_call *call,
                                                         const char *name)
{
    char why[1024] = "nbcshim is inactive (NBCSHIM=off, or no object loaded at MPI_Init references "
                     "a nonblocking or persistent collective); set NBCSHIM=on";
    if (nbc_enabled && call->comm != MPI_COMM_NULL)
        explain_lacking(name, "nbcshim does not know the communicator, which was freed, made past "
                              "nbcshim, or connects jobs that do not both run nbcshim with "
                              "the same settings");
    if (nbc_enabled)
        return nbc_raise(call->comm, MPI_ERR_COMM);
    nbc_explain_bypass(why, sizeof why);
    explain_lacking(name, why);
    return nbc_raise(call->comm, MPI_ERR_OTHER);
}

/* NBCSHIM_BLOCKING=native, but the MPI lacks the function, and no object referenced the function
 * when MPI_Init was called: nbcshim makes the call nevertheless. */
static int call_lacking(const struct nbc_call *call, const char *name)
{
    int error = nbc_enabled && !nbc_inside ? nbc_call_forced(call) : NBC_CALL_BELOW;
    return error == NBC_CALL_BELOW ? raise_lacking(call, name) : error;
}

#define MAKE_BLOCKING(request) nbc_call_blocking(&call)
#define MAKE_NONBLOCKING(request) nbc_call_start(&call, request)
#define MAKE_PERSISTENT(request) nbc_call_init(&call, request)
#define LACKS_BLOCKING call_lacking
#define LACKS_NONBLOCKING raise_lacking
#define LACKS_PERSISTENT raise_lacking

#define ENTRY(name, COLL, form, params, args, request, ...)                                \
    EXPORT(int, name, params, args)                                                        \
    {                                                                                      \
        if (NBC_KIND_##form == NBC_KIND_BLOCKING && nbc_native_blocking >> NBC_##COLL & 1) \
            BELOW(name, args);                                                             \
        struct nbc_call call = nbc_no_call;                                                \
        SET(coll, NBC_##COLL), SET(kind, NBC_KIND_##form);                                 \
        SET(large, sizeof(C) > sizeof(int)), SET(site, NBC_SITE(name)), __VA_ARGS__;       \
        int error = MAKE_##form(request);                                                  \
        if (__builtin_expect(error != NBC_CALL_BELOW, 1))                                  \
            return error;                                                                  \
        BELOW(name, args);                                                                 \
        return LACKS_##form(&call, #name);                                                 \
    }

/* Open MPI 4 has the persistent forms under these names, in an extension (mpi-ext.h). */
#ifdef PIC
#define EXTENSION_TWIN(name, params, args) \
    int PMPIX_##name params                \
    {                                      \
        return shim_##name args;           \
    }
#else
#define EXTENSION_TWIN(name, params, args)
#endif
#define EXTENSION_OF(name, params, args) \
    int MPIX_##name params               \
    {                                    \
        return MPI_##name args;          \
    }                                    \
    EXTENSION_TWIN(name, params, args)

#include "op/forms.def"
