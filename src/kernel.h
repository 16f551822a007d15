/* SPDX-License-Identifier: MIT */
/* Reductions of the common operators on the common types, with three addresses. MPI_Reduce_local
 * takes two, so that the first reduction of a vector would cost a copy. */
#ifndef NBC_KERNEL_H
#define NBC_KERNEL_H

#include <stdint.h>

enum nbc_arith {
    NBC_ARITH_NONE,
    NBC_ARITH_SUM,
    NBC_ARITH_PROD,
    NBC_ARITH_MAX,
    NBC_ARITH_MIN,
    NBC_ARITH_AND,
    NBC_ARITH_OR,
    NBC_ARITH_XOR,
    NBC_NARITHS
};

enum nbc_number {
    NBC_NUMBER_NONE,
    NBC_NUMBER_I8,
    NBC_NUMBER_U8,
    NBC_NUMBER_I16,
    NBC_NUMBER_U16,
    NBC_NUMBER_I32,
    NBC_NUMBER_U32,
    NBC_NUMBER_I64,
    NBC_NUMBER_U64,
    NBC_NUMBER_F32,
    NBC_NUMBER_F64,
    NBC_NNUMBERS
};

/* Computes dst[i] = left[i] op right[i] for n numbers. dst may be left or right, and must not
 * overlap them otherwise. The addresses are aligned for the type. */
typedef void nbc_kernel(void *dst, const void *left, const void *right, int64_t n);

/* Returns the kernel for an operator and a type; NULL if the operator is not defined on the type,
 * or if either is NONE. */
nbc_kernel *nbc_kernel_find(enum nbc_arith op, enum nbc_number type);

#endif
