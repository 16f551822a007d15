/* SPDX-License-Identifier: MIT */
/* Kinds of data elements, and the reduction operators on each. */
#ifndef NBC_TEST_KINDS_H
#define NBC_TEST_KINDS_H

#include "util.h"

#include <string.h>

enum { KIND_MAX_SIZE = 16 };

/* The bytes of an element that hold data: pair types may have gaps, whose contents are undefined.
 */
struct piece {
    int offset, length;
};

struct kind {
    const char *name;
    MPI_Datatype type;
    int size; /* extent in bytes */
    struct piece piece[2];
    void (*fill)(void *element, uint64_t random);
};

enum {
    KIND_BYTE,
    KIND_SHORT,
    KIND_INT,
    KIND_UNSIGNED,
    KIND_LONG_LONG,
    KIND_DOUBLE,
    KIND_2INT,
    KIND_DOUBLE_INT,
    KIND_SHORT_INT,
    KIND_MATRIX, /* 2 × 2 unsigned, modulo a prime; a derived type */
    NKINDS
};

extern struct kind kinds[NKINDS];

struct opdef {
    const char *name;
    int kind;
    bool commutative;
    bool user; /* made by MPI_Op_create; also works on derived types */
    void (*apply)(const void *left, void *right); /* right = left op right, one element */
    MPI_Op predefined;
    MPI_User_function *function;
};

enum { NOPS = 15 };

/* The predefined operators come first, then user-defined ones. */
extern struct opdef opdefs[NOPS];

/* Call them after MPI_Init; before MPI_Finalize. */
void kinds_init(void);
void kinds_finish(void);

/* Returns a new handle of a user-defined operator, to be freed, or the predefined handle. */
MPI_Op op_make(const struct opdef *op);

/* Copies what counts of an element. Most of a test's time goes here: sizes that the compiler knows
 * take it no call. */
static inline void kind_copy(const struct kind *kind, void *to, const void *from)
{
    const struct piece *piece = kind->piece;

    switch (piece[1].length ? 0 : kind->size) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    default:
        for (int i = 0; i < 2; i++)
            memcpy((char *)to + piece[i].offset, (const char *)from + piece[i].offset,
                   (size_t)piece[i].length);
        break;
    }
}

#endif
