/* SPDX-License-Identifier: MIT */
#include "kernel.h"

/* Compiled twice, once for AVX2; the dynamic linker selects the variant for the processor. clang
 * gives what selects it a global name, which begins with that of the function. */
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

#ifdef __clang__
#define VECTORIZE
#else
#define VECTORIZE __attribute__((optimize("O3")))
#endif

#define KERNEL(name, type, expression)                                                      \
    CLONES VECTORIZE static void nbc_##name(void *dst, const void *left, const void *right, \
                                            int64_t n)                                      \
    {                                                                                       \
        type *d = dst;                                                                      \
        const type *l = left, *r = right;                                                   \
        for (int64_t i = 0; i < n; i++) {                                                   \
            type a = l[i], b = r[i];                                                        \
            d[i] = (type)(expression);                                                      \
        }                                                                                   \
    }

/* Signed integers wrap on overflow, as in the MPI's reductions: they are added as unsigned ones. */
/* clang-format off */
#define ARITHMETIC(suffix, type, sum_type)                \
    KERNEL(sum_##suffix, type, (sum_type)a + (sum_type)b) \
    KERNEL(prod_##suffix, type, (sum_type)a * (sum_type)b) \
    KERNEL(max_##suffix, type, a > b ? a : b)             \
    KERNEL(min_##suffix, type, a < b ? a : b)

#define BITS(suffix, type)           \
    KERNEL(and_##suffix, type, a & b) \
    KERNEL(or_##suffix, type, a | b) \
    KERNEL(xor_##suffix, type, a ^ b)
/* clang-format on */

#define INTEGER(suffix, type, sum_type) ARITHMETIC(suffix, type, sum_type) BITS(suffix, type)

INTEGER(i8, int8_t, uint32_t)
INTEGER(u8, uint8_t, uint32_t)
INTEGER(i16, int16_t, uint32_t)
INTEGER(u16, uint16_t, uint32_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(u32, uint32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(u64, uint64_t, uint64_t)
ARITHMETIC(f32, float, float)
ARITHMETIC(f64, double, double)

#define ARITHMETIC_ROW(suffix)                                                \
    [NBC_ARITH_SUM] = nbc_sum_##suffix, [NBC_ARITH_PROD] = nbc_prod_##suffix, \
    [NBC_ARITH_MAX] = nbc_max_##suffix, [NBC_ARITH_MIN] = nbc_min_##suffix
#define INTEGER_ROW(suffix)                                                                       \
    ARITHMETIC_ROW(suffix), [NBC_ARITH_AND] = nbc_and_##suffix, [NBC_ARITH_OR] = nbc_or_##suffix, \
                            [NBC_ARITH_XOR] = nbc_xor_##suffix

nbc_kernel *nbc_kernel_find(enum nbc_arith op, enum nbc_number type)
{
    static nbc_kernel *const kernels[NBC_NNUMBERS][NBC_NARITHS] = {
        [NBC_NUMBER_I8] = {INTEGER_ROW(i8)},      [NBC_NUMBER_U8] = {INTEGER_ROW(u8)},
        [NBC_NUMBER_I16] = {INTEGER_ROW(i16)},    [NBC_NUMBER_U16] = {INTEGER_ROW(u16)},
        [NBC_NUMBER_I32] = {INTEGER_ROW(i32)},    [NBC_NUMBER_U32] = {INTEGER_ROW(u32)},
        [NBC_NUMBER_I64] = {INTEGER_ROW(i64)},    [NBC_NUMBER_U64] = {INTEGER_ROW(u64)},
        [NBC_NUMBER_F32] = {ARITHMETIC_ROW(f32)}, [NBC_NUMBER_F64] = {ARITHMETIC_ROW(f64)},
    };
    return kernels[type][op];
}
