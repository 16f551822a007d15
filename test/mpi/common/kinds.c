/* SPDX-License-Identifier: MIT */
#include "kinds.h"
#include "layouts.h"

#include <string.h>

enum { PRIME = 65521 };

struct kind kinds[NKINDS];
struct opdef opdefs[NOPS];

/* --- contents ----------------------------------------------------------------------------------
 * Numbers are such that every result is exact whatever the order, and pairs often tie. */

static void fill_byte(void *p, uint64_t x)
{
    *(unsigned char *)p = (unsigned char)x;
}

static void fill_short(void *p, uint64_t x)
{
    short value = (short)(x % 30000);
    memcpy(p, &value, sizeof value);
}

static void fill_int(void *p, uint64_t x)
{
    int value = (int)(x % 2000001) - 1000000;
    memcpy(p, &value, sizeof value);
}

/* An affine map x -> a x + b modulo PRIME in one number, and as good as any other number. */
static void fill_unsigned(void *p, uint64_t x)
{
    uint32_t value = (uint32_t)((x & 0xffffffff) % PRIME) << 16 | (uint32_t)((x >> 32) % PRIME);
    memcpy(p, &value, sizeof value);
}

static void fill_long_long(void *p, uint64_t x)
{
    long long value = (long long)(x >> 8) - (1LL << 55);
    memcpy(p, &value, sizeof value);
}

static void fill_double(void *p, uint64_t x)
{
    double value = (double)((int)(x % 4001) - 2000) / 8;
    memcpy(p, &value, sizeof value);
}

static void fill_2int(void *p, uint64_t x)
{
    int value[2] = {(int)(x % 7), (int)((x >> 32) % 1000)};
    memcpy(p, value, sizeof value);
}

struct double_int {
    double value;
    int index;
};

struct short_int {
    short value;
    int index;
};

static void fill_double_int(void *p, uint64_t x)
{
    double value = (double)(x % 7) / 2;
    int index = (int)((x >> 32) % 1000);
    memcpy(p, &value, sizeof value);
    memcpy((char *)p + offsetof(struct double_int, index), &index, sizeof index);
}

static void fill_short_int(void *p, uint64_t x)
{
    short value = (short)(x % 7);
    int index = (int)((x >> 32) % 1000);
    memcpy(p, &value, sizeof value);
    memcpy((char *)p + offsetof(struct short_int, index), &index, sizeof index);
}

static void fill_matrix(void *p, uint64_t x)
{
    uint32_t m[4];

    for (int i = 0; i < 4; i++)
        m[i] = (uint32_t)((x >> (16 * i)) % PRIME);
    memcpy(p, m, sizeof m);
}

/* --- operators ---------------------------------------------------------------------------------
 * One function each, on elements that need not be aligned. */

#define APPLY(name, type, expression)               \
    static void name(const void *left, void *right) \
    {                                               \
        type a, b;                                  \
        memcpy(&a, left, sizeof a);                 \
        memcpy(&b, right, sizeof b);                \
        b = (expression);                           \
        memcpy(right, &b, sizeof b);                \
    }

APPLY(int_sum, int, (int)((unsigned)a + (unsigned)b))
APPLY(double_sum, double, a + b)
APPLY(unsigned_prod, uint32_t, a *b)
APPLY(long_long_max, long long, a > b ? a : b)
APPLY(short_min, short, a < b ? a : b)
APPLY(byte_band, unsigned char, a &b)
APPLY(int_bxor, int, a ^ b)
APPLY(unsigned_lor, uint32_t, a || b)

static void pair_2int_max(const void *left, void *right)
{
    int a[2], b[2];

    memcpy(a, left, sizeof a);
    memcpy(b, right, sizeof b);
    if (a[0] > b[0] || (a[0] == b[0] && a[1] < b[1]))
        memcpy(right, a, sizeof a);
}

static void double_int_min(const void *left, void *right)
{
    struct double_int a, b;

    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (a.value < b.value || (a.value == b.value && a.index < b.index))
        kind_copy(&kinds[KIND_DOUBLE_INT], right, left);
}

static void short_int_max(const void *left, void *right)
{
    struct short_int a, b;

    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (a.value > b.value || (a.value == b.value && a.index < b.index))
        kind_copy(&kinds[KIND_SHORT_INT], right, left);
}

static void matrix_product(const void *left, void *right)
{
    uint32_t a[4], b[4], c[4];

    memcpy(a, left, sizeof a);
    memcpy(b, right, sizeof b);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            c[2 * i + j] =
                (uint32_t)(((uint64_t)a[2 * i] * b[j] + (uint64_t)a[2 * i + 1] * b[2 + j]) % PRIME);
    memcpy(right, c, sizeof c);
}

/* (a1, b1) then (a2, b2): first the left map, then the right one. */
static uint32_t compose(uint32_t left, uint32_t right)
{
    uint64_t a1 = left >> 16, b1 = left & 0xffff, a2 = right >> 16, b2 = right & 0xffff;

    return (uint32_t)(a1 * a2 % PRIME) << 16 | (uint32_t)((a2 * b1 + b2) % PRIME);
}

APPLY(affine_compose, uint32_t, compose(a, b))

/* The left operand: associative, as far from commutative as can be. */
APPLY(int_left, int, ((void)b, a))

/* Offsets of types of absolute addresses are relative to what no pointer points at. */
static void *place_of(void *base, MPI_Aint offset)
{
    return (void *)((uintptr_t)base + (uintptr_t)offset);
}

/* The functions that MPI calls: find the layout behind the datatype handle, which must be the very
 * handle that the program passed, and walk over its elements. */
static void reduce_elements(void (*apply)(const void *, void *), void *in, void *inout, int n,
                            MPI_Datatype type)
{
    const struct layout *layout = layout_find(type);

    if (!layout) {
        test_fail("an operator was called with a datatype handle that nobody passed in");
        return;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < layout->units; j++) {
            MPI_Aint at = i * layout->extent + layout->offset[j];
            apply(place_of(in, at), place_of(inout, at));
        }
}

#define FUNCTION(name, apply)                                           \
    static void name(void *in, void *inout, int *n, MPI_Datatype *type) \
    {                                                                   \
        reduce_elements(apply, in, inout, *n, *type);                   \
    }

FUNCTION(user_int_sum, int_sum)
FUNCTION(user_affine, affine_compose)
FUNCTION(user_left, int_left)
FUNCTION(user_matrix_product, matrix_product)

/* --- tables ------------------------------------------------------------------------------------
 * Filled at run time: handles are not constants on every MPI. */

static void kind_set(int i, const char *name, MPI_Datatype type, size_t size, struct piece first,
                     struct piece second, void (*fill)(void *, uint64_t))
{
    kinds[i] = (struct kind){name, type, (int)size, {first, second}, fill};
}

#define WHOLE(type)                                                    \
    sizeof(type), (struct piece){0, (int)sizeof(type)}, (struct piece) \
    {                                                                  \
        0, 0                                                           \
    }
#define PAIR(pair)                                                                                 \
    sizeof(struct pair), (struct piece){0, (int)sizeof(((struct pair *)0)->value)}, (struct piece) \
    {                                                                                              \
        (int)offsetof(struct pair, index), (int)sizeof(int)                                        \
    }

void kinds_init(void)
{
    MPI_Datatype matrix;
    int n = 0;

    MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix);
    MPI_Type_commit(&matrix);
    kind_set(KIND_BYTE, "byte", MPI_BYTE, WHOLE(char), fill_byte);
    kind_set(KIND_SHORT, "short", MPI_SHORT, WHOLE(short), fill_short);
    kind_set(KIND_INT, "int", MPI_INT, WHOLE(int), fill_int);
    kind_set(KIND_UNSIGNED, "unsigned", MPI_UNSIGNED, WHOLE(uint32_t), fill_unsigned);
    kind_set(KIND_LONG_LONG, "long long", MPI_LONG_LONG, WHOLE(long long), fill_long_long);
    kind_set(KIND_DOUBLE, "double", MPI_DOUBLE, WHOLE(double), fill_double);
    kind_set(KIND_2INT, "2int", MPI_2INT, WHOLE(int[2]), fill_2int);
    kind_set(KIND_DOUBLE_INT, "double_int", MPI_DOUBLE_INT, PAIR(double_int), fill_double_int);
    kind_set(KIND_SHORT_INT, "short_int", MPI_SHORT_INT, PAIR(short_int), fill_short_int);
    kind_set(KIND_MATRIX, "matrix", matrix, WHOLE(uint32_t[4]), fill_matrix);
    for (int i = 0; i < NKINDS; i++)
        layout_register_kind(&kinds[i]);

#define PREDEFINED(name, kind, apply, op) \
    opdefs[n++] = (struct opdef){name, kind, true, false, apply, op, NULL}
#define USER(name, kind, commutes, apply, function)              \
    opdefs[n++] = (struct opdef)                                 \
    {                                                            \
        name, kind, commutes, true, apply, MPI_OP_NULL, function \
    }
    PREDEFINED("MPI_SUM", KIND_INT, int_sum, MPI_SUM);
    PREDEFINED("MPI_SUM", KIND_DOUBLE, double_sum, MPI_SUM);
    PREDEFINED("MPI_PROD", KIND_UNSIGNED, unsigned_prod, MPI_PROD);
    PREDEFINED("MPI_MAX", KIND_LONG_LONG, long_long_max, MPI_MAX);
    PREDEFINED("MPI_MIN", KIND_SHORT, short_min, MPI_MIN);
    PREDEFINED("MPI_BAND", KIND_BYTE, byte_band, MPI_BAND);
    PREDEFINED("MPI_BXOR", KIND_INT, int_bxor, MPI_BXOR);
    PREDEFINED("MPI_LOR", KIND_UNSIGNED, unsigned_lor, MPI_LOR);
    PREDEFINED("MPI_MAXLOC", KIND_2INT, pair_2int_max, MPI_MAXLOC);
    PREDEFINED("MPI_MINLOC", KIND_DOUBLE_INT, double_int_min, MPI_MINLOC);
    PREDEFINED("MPI_MAXLOC", KIND_SHORT_INT, short_int_max, MPI_MAXLOC);
    USER("user sum", KIND_INT, true, int_sum, user_int_sum);
    USER("user matrix product", KIND_MATRIX, false, matrix_product, user_matrix_product);
    USER("user affine maps", KIND_UNSIGNED, false, affine_compose, user_affine);
    USER("user left", KIND_INT, false, int_left, user_left);
#undef PREDEFINED
#undef USER
}

void kinds_finish(void)
{
    layout_forget_kinds();
    MPI_Type_free(&kinds[KIND_MATRIX].type);
}

MPI_Op op_make(const struct opdef *op)
{
    MPI_Op handle = op->predefined;

    if (op->user)
        MPI_Op_create(op->function, op->commutative, &handle);
    return handle;
}
