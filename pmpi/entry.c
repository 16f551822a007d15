/* SPDX-License-Identifier: MIT */
/* The entry points of the collectives: each row of collectives.def four times, nonblocking and
 * persistent, with int and with MPI_Count. */
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

/* While the shim stands aside the call goes to the MPI's own function, if it has one. */
#define ENTRY(name, COLL, make, params, args, ...)                                                 \
    EXPORT(int, name, params, args)                                                                \
    {                                                                                              \
        if (__builtin_expect(!nbc_on, 0)) {                                                        \
            static int(*native) params;                                                            \
            if (!native)                                                                           \
                native = (int(*) params)nbc_next_find(#name);                                      \
            return native ? native args : nbc_off_error(comm, #name);                              \
        }                                                                                          \
        const struct nbc_call call = {.coll = NBC_##COLL, .comm = comm, __VA_ARGS__};              \
        return make(&call, request);                                                               \
    }

#define COLLECTIVE(immediate, persistent, COLL, params, args, ...)                                 \
    ENTRY(NAME(immediate), COLL, nbc_call_start, (params, MPI_Request *request), (args, request),  \
          __VA_ARGS__)                                                                             \
    ENTRY(NAME(persistent), COLL, nbc_call_init, (params, MPI_Info info, MPI_Request *request),    \
          (args, info, request), .info = info, __VA_ARGS__)

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
