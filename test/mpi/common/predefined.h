/* SPDX-License-Identifier: MIT */
/* The predefined operators and datatypes of C, and the types on which each operator is defined:
 * MPI-4.1 section 6.9.2. */
#ifndef NBC_TEST_PREDEFINED_H
#define NBC_TEST_PREDEFINED_H

#include "util.h"

enum { PREDEFINED_SIZE = 32 }; /* largest size of an element, in bytes */

enum class {
    CLASS_INTEGER = 1,
    CLASS_FLOATING = 2,
    CLASS_LOGICAL = 4,
    CLASS_COMPLEX = 8,
    CLASS_BYTE = 16,
    CLASS_MULTI = 32, /* MPI_AINT, MPI_OFFSET */
    CLASS_PAIR = 64,
};

struct predefined_type {
    MPI_Datatype handle;
    const char *name;
    enum class class;
    size_t size;
    void (*set)(void *element, int value);
    bool (*same)(const void *a, const void *b); /* compares without padding */
};

struct predefined_op {
    MPI_Op handle;
    const char *name;
    int on; /* classes on which it is defined */
};

extern const int npredefined_types, npredefined_ops;
extern const struct predefined_type predefined_types[];
extern const struct predefined_op predefined_ops[];

/* Fills elements with small numbers that depend on the rank, so that floating-point results are
 * exact. */
void predefined_fill(const struct predefined_type *type, void *elements, int n, int rank);

bool predefined_same(const struct predefined_type *type, const void *a, const void *b, int n);

#endif
