/* SPDX-License-Identifier: MIT */
/* Reductions number by number against the operator's definition: all operators and types, lengths
 * that fill vectors and leave some over, and the result in place of either operand. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "unit.h"

enum { MOST = 70, AROUND = 3, WIDEST = 8 };

static const struct {
    int width;
    bool is_signed, is_floating;
} numbers[NBC_NNUMBERS] = {
    [NBC_NUMBER_I8] = {1, true, false},  [NBC_NUMBER_U8] = {1, false, false},
    [NBC_NUMBER_I16] = {2, true, false}, [NBC_NUMBER_U16] = {2, false, false},
    [NBC_NUMBER_I32] = {4, true, false}, [NBC_NUMBER_U32] = {4, false, false},
    [NBC_NUMBER_I64] = {8, true, false}, [NBC_NUMBER_U64] = {8, false, false},
    [NBC_NUMBER_F32] = {4, true, true},  [NBC_NUMBER_F64] = {8, true, true},
};

static uint64_t drawn = 1;

static uint64_t draw(void)
{
    drawn = drawn * UINT64_C(6364136223846793005) + 1442695040888963407;
    return drawn ^ drawn >> 29;
}

static bool is_bits(enum nbc_arith op)
{
    return op == NBC_ARITH_AND || op == NBC_ARITH_OR || op == NBC_ARITH_XOR;
}

/* Of integers, modulo 2^64; `less`: whether a < b. */
static uint64_t combine(enum nbc_arith op, uint64_t a, uint64_t b, bool less)
{
    switch (op) {
    case NBC_ARITH_SUM:
        return a + b;
    case NBC_ARITH_PROD:
        return a * b;
    case NBC_ARITH_MAX:
        return less ? b : a;
    case NBC_ARITH_MIN:
        return less ? a : b;
    case NBC_ARITH_AND:
        return a & b;
    case NBC_ARITH_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static double combine_floating(enum nbc_arith op, double a, double b)
{
    switch (op) {
    case NBC_ARITH_SUM:
        return a + b;
    case NBC_ARITH_PROD:
        return a * b;
    case NBC_ARITH_MAX:
        return a < b ? b : a;
    default:
        return a < b ? a : b;
    }
}

/* Little numbers among the large: they are equal at times, and floating sums are exact. */
static void set(enum nbc_number type, unsigned char *at)
{
    int width = numbers[type].width;
    bool little = numbers[type].is_floating || draw() % 3 == 0;
    uint64_t bits = little ? draw() % 9 - 4 : draw();
    float single = (float)(int64_t)bits;
    double wide = (double)(int64_t)bits;
    memcpy(at,
           !numbers[type].is_floating ? (void *)&bits
           : width == 4               ? (void *)&single
                                      : &wide,
           (size_t)width);
}

/* Little-endian or not: what is narrow is widened by way of its own type. */
static uint64_t integer(enum nbc_number type, const unsigned char *at)
{
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint64_t bits;
    switch (numbers[type].width) {
    case 1:
        memcpy(&i8, at, 1);
        bits = (uint64_t)i8;
        break;
    case 2:
        memcpy(&i16, at, 2);
        bits = (uint64_t)i16;
        break;
    case 4:
        memcpy(&i32, at, 4);
        bits = (uint64_t)i32;
        break;
    default:
        memcpy(&i64, at, 8);
        return (uint64_t)i64;
    }
    int unused = 64 - 8 * numbers[type].width;
    return numbers[type].is_signed ? bits : bits << unused >> unused;
}

static double floating(enum nbc_number type, const unsigned char *at)
{
    float single;
    double wide;
    if (numbers[type].width == 4) {
        memcpy(&single, at, 4);
        return single;
    }
    memcpy(&wide, at, 8);
    return wide;
}

static bool is_right(enum nbc_arith op, enum nbc_number type, const unsigned char *is,
                     const unsigned char *left, const unsigned char *right)
{
    if (numbers[type].is_floating)
        return floating(type, is) ==
               combine_floating(op, floating(type, left), floating(type, right));
    uint64_t a = integer(type, left), b = integer(type, right);
    bool less = numbers[type].is_signed ? (int64_t)a < (int64_t)b : a < b;
    int unused = 64 - 8 * numbers[type].width;
    return integer(type, is) << unused == combine(op, a, b, less) << unused;
}

static void check(enum nbc_arith op, enum nbc_number type, int n, int place)
{
    static _Alignas(64) unsigned char memory[3][(MOST + 2 * AROUND) * WIDEST],
        before[3][sizeof memory[0]];
    size_t width = (size_t)numbers[type].width, first = AROUND * width;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n + 2 * AROUND; i++)
            set(type, memory[k] + (size_t)i * width);
    memcpy(before, memory, sizeof memory);
    nbc_kernel_find(op, type)(memory[place] + first, memory[0] + first, memory[1] + first, n);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n + 2 * AROUND; i++) {
            size_t at = (size_t)i * width;
            if (k != place || i < AROUND || i >= AROUND + n)
                need(memcmp(memory[k] + at, before[k] + at, width) == 0);
            else
                need(is_right(op, type, memory[k] + at, before[0] + at, before[1] + at));
        }
}

UNIT(every_operator_on_every_number)
{
    for (int type = NBC_NUMBER_NONE + 1; type < NBC_NNUMBERS; type++)
        for (int op = NBC_ARITH_NONE + 1; op < NBC_NARITHS; op++) {
            bool exists = !numbers[type].is_floating || !is_bits(op);
            need(exists == (nbc_kernel_find(op, type) != NULL));
            for (int n = 0; exists && n <= MOST; n++)
                for (int place = 0; place < 3; place++)
                    check(op, type, n, place);
        }
}

UNIT(none_of_none)
{
    for (int type = 0; type < NBC_NNUMBERS; type++)
        need(!nbc_kernel_find(NBC_ARITH_NONE, type));
    for (int op = 0; op < NBC_NARITHS; op++)
        need(!nbc_kernel_find(op, NBC_NUMBER_NONE));
}
