/* SPDX-License-Identifier: MIT */
/* The collectives in libnbcprofile.so: the rows of collectives.def, as in api/entry.c. */
#include "nbcshim.h"

#include "profile/next.h"
#include "profile/record.h"

#define PARAMS(...) __VA_ARGS__
#define ARGS(...) __VA_ARGS__

/* clang-format off */
#define VIEW(array) {(array), sizeof *(array)}
/* clang-format on */
#define NONE ((const int *)0)
#define BLOCK(side, b, n, t) .side = {.buf = b, .count = n, .type = t}
#define VECTOR(side, b, n, d, t) .side = {.buf = b, .counts = VIEW(n), .displs = VIEW(d), .type = t}
#define TYPES(side, b, n, d, t) .side = {.buf = b, .counts = VIEW(n), .displs = VIEW(d), .types = t}

#define ENTRY(name, COLL, kind, params, args, request, ...)                           \
    PROFILE_EXPORT(name, params, args)                                                \
    {                                                                                 \
        static int(*next) params;                                                     \
        struct nbc_timed t;                                                           \
        if (!next)                                                                    \
            next = (int(*) params)nbc_profile_next(#name);                            \
        if (nbc_profile_skips())                                                      \
            return next args;                                                         \
        const struct nbc_call call = {.coll = NBC_##COLL, .comm = comm, __VA_ARGS__}; \
        nbc_profile_begin(&t, &call, NBC_KIND_##kind);                                \
        int error = next args;                                                        \
        nbc_profile_end(&t, request, error);                                          \
        return error;                                                                 \
    }

#define NAMED(name, ...) ENTRY(name, __VA_ARGS__)
#define BLOCKING(blocking, COLL, params, args, ...) \
    NAMED(NAME(blocking), COLL, BLOCKING, (params), (args), NULL, __VA_ARGS__)
#define IMMEDIATE(immediate, COLL, params, args, ...)                                           \
    NAMED(NAME(immediate), COLL, NONBLOCKING, (params, MPI_Request * request), (args, request), \
          request, __VA_ARGS__)
#define PERSISTENT(persistent, COLL, params, args, ...)                                       \
    NAMED(NAME(persistent), COLL, PERSISTENT, (params, MPI_Info info, MPI_Request * request), \
          (args, info, request), request, __VA_ARGS__)

/* --- int: the blocking forms of MPI-2.2, whose prototypes may lack const ---------------------- */

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

/* --- int: the others -------------------------------------------------------------------------- */

#define CONST const
#define COLLECTIVE(blocking, immediate, persistent, COLL, params, args, ...) \
    IMMEDIATE(immediate, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)      \
    PERSISTENT(persistent, COLL, PARAMS(params), ARGS(args), __VA_ARGS__)
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
