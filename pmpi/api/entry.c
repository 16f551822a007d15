/* SPDX-License-Identifier: MIT */
/* The entry points of the collectives. Each row of collectives.def makes six functions: blocking,
 * nonblocking and persistent, with counts of type int and MPI_Count. */
#include "nbcshim.h"

#include "api/calls.h"
#include "api/setup.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/export.h"
#include "op/call.h"

#ifndef PIC
/* clang-format off */
#define MEMBERS(M) \
    M(attributes) M(communicators) M(dynamic) M(error_handlers) M(files) M(free) M(get_status) \
    M(idup) M(info) M(init) M(p2p) M(sessions) M(start) M(wait_test) M(wait_test_many) M(windows)
/* clang-format on */
#define DECLARE(name) extern const char nbc_archive_member_##name;
#define ADDRESS(name) &nbc_archive_member_##name,
MEMBERS(DECLARE)
static const char *const members[] __attribute__((used)) = {MEMBERS(ADDRESS)};
#endif

#define PARAMS(...) __VA_ARGS__
#define ARGS(...) __VA_ARGS__

/* clang-format off */
#define VIEW(array) {(array), sizeof *(array)}
/* clang-format on */
#define NONE ((const int *)0)
#define BLOCK(side, b, n, t) .side = {.buf = b, .count = n, .type = t}
#define VECTOR(side, b, n, d, t) .side = {.buf = b, .counts = VIEW(n), .displs = VIEW(d), .type = t}
#define TYPES(side, b, n, d, t) .side = {.buf = b, .counts = VIEW(n), .displs = VIEW(d), .types = t}

/* Calls the function of the MPI below, where it has one. */
#ifdef PIC
#define BELOW(name, params, args)                         \
    do {                                                  \
        static int(*native) params;                       \
        if (!native)                                      \
            native = (int(*) params)nbc_next_find(#name); \
        if (native)                                       \
            return native args;                           \
    } while (0)
#else
#define BELOW(name, params, args)                          \
    do {                                                   \
        extern __typeof__(MPI_##name) PMPI_##name PERHAPS; \
        int(*native) params = PMPI_##name;                 \
        if (native)                                        \
            return native args;                            \
    } while (0)
#endif

/* NBCSHIM_BLOCKING=native, but the MPI lacks the function: nbcshim makes the call nevertheless. */
static int call_lacking(const struct nbc_call *call, const char *name)
{
    int error = nbc_enabled && !nbc_inside ? nbc_call_forced(call) : NBC_CALL_BELOW;
    return error == NBC_CALL_BELOW ? nbc_raise_lacking(call, name) : error;
}

static inline bool is_left_to_the_mpi(void)
{
    return nbc_settings.blocking == NBC_BLOCKING_NATIVE;
}

#define TEXT(name) #name /* of the expanded name */

/* skips: whether the call is known to be the MPI's. lacks: called where the MPI lacks the function.
 */
#define ENTRY(name, COLL, params, args, skips, make, lacks, ...)                              \
    EXPORT(int, name, params, args)                                                           \
    {                                                                                         \
        if (skips)                                                                            \
            BELOW(name, params, args);                                                        \
        const struct nbc_call call = {                                                        \
            .coll = NBC_##COLL, .comm = comm, .large = sizeof(C) > sizeof(int), __VA_ARGS__}; \
        int error = make;                                                                     \
        if (__builtin_expect(error != NBC_CALL_BELOW, 1))                                     \
            return error;                                                                     \
        BELOW(name, params, args);                                                            \
        return lacks(&call, TEXT(name));                                                      \
    }

#define BLOCKING(blocking, COLL, params, args, ...)                                               \
    ENTRY(NAME(blocking), COLL, (params), (args), is_left_to_the_mpi(), nbc_call_blocking(&call), \
          call_lacking, __VA_ARGS__)

#define IMMEDIATE(immediate, COLL, params, args, ...)                                     \
    ENTRY(NAME(immediate), COLL, (params, MPI_Request * request), (args, request), false, \
          nbc_call_start(&call, request), nbc_raise_lacking, __VA_ARGS__)

#define PERSISTENT(persistent, COLL, params, args, ...)                                   \
    ENTRY(NAME(persistent), COLL, (params, MPI_Info info, MPI_Request * request),         \
          (args, info, request), false, nbc_call_init(&call, request), nbc_raise_lacking, \
          .info = info, .has_info = true, __VA_ARGS__)

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
#define EXTENSION(name, params, args) \
    int MPIX_##name params            \
    {                                 \
        return MPI_##name args;       \
    }                                 \
    EXTENSION_TWIN(name, params, args)
#define EXTENSION_OF(persistent, params, args) \
    EXTENSION(persistent, (params, MPI_Info info, MPI_Request * request), (args, info, request))

/* --- int: the blocking forms of MPI-2.2, whose prototypes may lack const ---------------------- */

#define PERHAPS /* every MPI has these */
#define NAME(name) name
#define C int
#define D int
#define CONST NBC_CONST
#define COLLECTIVE(blocking, immediate, persistent, COLL, params, args, ...) \
    BLOCKING(blocking, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)
#define NEIGHBORHOOD(...)
#include "api/collectives.def"
#undef CONST
#undef COLLECTIVE
#undef NEIGHBORHOOD
#undef PERHAPS

/* --- int: the others -------------------------------------------------------------------------- */

#define PERHAPS __attribute__((weak))
#define CONST const
#define COLLECTIVE(blocking, immediate, persistent, COLL, params, args, ...) \
    IMMEDIATE(immediate, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)      \
    PERSISTENT(persistent, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)    \
    EXTENSION_OF(persistent, PARAMS(params), ARGS(args))
#define NEIGHBORHOOD(blocking, immediate, persistent, COLL, params, args, ...) \
    BLOCKING(blocking, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)          \
    COLLECTIVE(blocking, immediate, persistent, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)
#include "api/collectives.def"
#undef NAME
#undef C
#undef D
#undef COLLECTIVE
#undef NEIGHBORHOOD

/* --- MPI_Count -------------------------------------------------------------------------------- */

#define LARGE
#define NAME(name) name##_c
#define C MPI_Count
#define D MPI_Aint
#define COLLECTIVE(blocking, immediate, persistent, COLL, params, args, ...) \
    BLOCKING(blocking, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)        \
    IMMEDIATE(immediate, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)      \
    PERSISTENT(persistent, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)
#define NEIGHBORHOOD COLLECTIVE
#include "api/collectives.def"
