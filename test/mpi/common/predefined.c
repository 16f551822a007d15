/* SPDX-License-Identifier: MIT */
#include "predefined.h"

#include <string.h>

typedef signed char signed_char;
typedef unsigned char unsigned_char, byte;
typedef unsigned short unsigned_short;
typedef unsigned long unsigned_long;
typedef long long long_long;
typedef unsigned long long unsigned_long_long;
typedef long double long_double;
typedef _Bool boolean;
typedef float _Complex float_complex;
typedef double _Complex double_complex;
typedef long double _Complex long_double_complex;

/* Functions that write an element, and compare two of them but for their padding. */
#define FUNCTIONS(name, type, equal, ...)                 \
    static void set_##name(void *at, int value)           \
    {                                                     \
        const type x = {__VA_ARGS__};                     \
        memcpy(at, &x, sizeof x);                         \
    }                                                     \
    static bool same_##name(const void *a, const void *b) \
    {                                                     \
        type x, y;                                        \
        memcpy(&x, a, sizeof x);                          \
        memcpy(&y, b, sizeof y);                          \
        return equal;                                     \
    }

#define NUMBER(handle, name, class) FUNCTIONS(name, name, x == y, (name)value)
#define PAIR(handle, name, type) \
    struct name {                \
        type value;              \
        int index;               \
    };                           \
    FUNCTIONS(name, struct name, x.value == y.value && x.index == y.index, (type)(value % 3), value)
#include "predefined.def"

#define ROW(handle, name, type, class) \
    {handle, #handle, class, sizeof(type), set_##name, same_##name},
#define NUMBER(handle, name, class) ROW(handle, name, name, class)
#define PAIR(handle, name, type) ROW(handle, name, struct name, CLASS_PAIR)
const struct predefined_type predefined_types[] = {
#include "predefined.def"
};
const int npredefined_types = sizeof predefined_types / sizeof *predefined_types;

enum {
    WHOLE = CLASS_INTEGER | CLASS_MULTI,
    ORDERED = WHOLE | CLASS_FLOATING,
    SUMMED = ORDERED | CLASS_COMPLEX,
    TRUTH = CLASS_INTEGER | CLASS_LOGICAL,
    BITS = WHOLE | CLASS_BYTE
};

#define OP(op, on)  \
    {               \
        op, #op, on \
    }
const struct predefined_op predefined_ops[] = {
    OP(MPI_MAX, ORDERED), OP(MPI_MIN, ORDERED),       OP(MPI_SUM, SUMMED),
    OP(MPI_PROD, SUMMED), OP(MPI_LAND, TRUTH),        OP(MPI_LOR, TRUTH),
    OP(MPI_LXOR, TRUTH),  OP(MPI_BAND, BITS),         OP(MPI_BOR, BITS),
    OP(MPI_BXOR, BITS),   OP(MPI_MAXLOC, CLASS_PAIR), OP(MPI_MINLOC, CLASS_PAIR),
};
const int npredefined_ops = sizeof predefined_ops / sizeof *predefined_ops;

/* Many equal ones among the ranks, so that the index of a pair counts; and zeros. */
void predefined_fill(const struct predefined_type *type, void *elements, int n, int rank)
{
    memset(elements, 0, (size_t)n * type->size);
    for (int i = 0; i < n; i++)
        type->set((char *)elements + (size_t)i * type->size, (i * 5 + rank * 3 + i * rank) % 4);
}

bool predefined_same(const struct predefined_type *type, const void *a, const void *b, int n)
{
    bool same = true;

    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i * type->size;
        same = same && type->same((const char *)a + at, (const char *)b + at);
    }
    return same;
}
