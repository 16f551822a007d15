/* SPDX-License-Identifier: MIT */
/* The entry points of the collectives: each row of collectives.def six times: blocking, nonblocking
 * and persistent, with int and with MPI_Count. */
#include "nbcshim.h"

#include "call.h"
#include "export.h"
#include "init.h"

#define PARAMS(...) __VA_ARGS__
#define ARGS(...) __VA_ARGS__

#define VIEW(array) {(array), sizeof *(array)}
#define NONE ((const int *)0)
#define BLOCK(side, b, n, t) .side = {.buf = b, .count = n, .type = t}
#define VECTOR(side, b, n, d, t)                                                                   \
    .side = {.buf = b, .counts = VIEW(n), .displs = VIEW(d), .type = t}
#define TYPES(side, b, n, d, t)                                                                    \
    .side = {.buf = b, .counts = VIEW(n), .displs = VIEW(d), .types = t}

#define FILL(COLL, ...) {.coll = NBC_##COLL, .comm = comm, __VA_ARGS__}

/* While the shim stands aside, and for communicators it does not know (an MPI's own, made below
 * us), a call goes to the MPI's function, if there is one. */
#define BELOW(name, params, args)                                                                  \
    do {                                                                                           \
        static int(*native) params;                                                                \
        if (!native)                                                                               \
            native = (int(*) params)nbc_next_find(#name);                                          \
        return native ? native args : nbc_off_error(comm, #name);                                  \
    } while (0)

#define ENTRY(name, make, params, args, ...)                                                       \
    EXPORT(int, name, params, args)                                                                \
    {                                                                                              \
        if (__builtin_expect(!nbc_on, 0))                                                          \
            BELOW(name, params, args);                                                             \
        const struct nbc_call call = FILL(__VA_ARGS__);                                            \
        return make(&call, request);                                                               \
    }

/* A blocking collective is ours too, so that a rank that waits in it goes on forwarding what it
 * has started before. Which way is taken must be the same on all ranks. */
#define BLOCKING_ENTRY(name, params, args, ...)                                                    \
    EXPORT(int, name, params, args)                                                                \
    {                                                                                              \
        if (!nbc_takes_blocking(comm))                                                             \
            BELOW(name, params, args);                                                             \
        const struct nbc_call call = FILL(__VA_ARGS__);                                            \
        return nbc_call_wait(&call);                                                               \
    }

#define COLLECTIVE(blocking, immediate, persistent, COLL, params, args, ...)                       \
    BLOCKING_ENTRY(NAME(blocking), (params), (args), COLL, __VA_ARGS__)                            \
    ENTRY(NAME(immediate), nbc_call_start, (params, MPI_Request *request), (args, request), COLL,  \
          __VA_ARGS__)                                                                             \
    ENTRY(NAME(persistent), nbc_call_init, (params, MPI_Info info, MPI_Request *request),          \
          (args, info, request), COLL, .info = info, .has_info = true, __VA_ARGS__)

#define NAME(name) name
#define C int
#define D int
#include "collectives.def"
#undef NAME
#undef C
#undef D

#define LARGE
#define NAME(name) name##_c
#define C MPI_Count
#define D MPI_Aint
#include "collectives.def"
