/* SPDX-License-Identifier: MIT */
/* As much of CUDA's runtime as examples/device.c uses, over the look-alike of its driver. */
#ifndef NBC_TEST_CUDA_RUNTIME_H
#define NBC_TEST_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

typedef int cudaError_t;
enum { cudaSuccess = 0 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uintptr_t *address, size_t size);
int cuMemFree_v2(uintptr_t address);
int cuMemcpyHtoD_v2(uintptr_t device, const void *host, size_t n);
int cuMemcpyDtoH_v2(void *host, uintptr_t device, size_t n);
int cuGetErrorString(int error, const char **words);

static inline cudaError_t cudaMalloc(void **address, size_t size)
{
    void *context;
    int error = cuDevicePrimaryCtxRetain(&context, 0);
    error = error ? error : cuCtxSetCurrent(context);
    return error ? error : cuMemAlloc_v2((uintptr_t *)address, size);
}

static inline cudaError_t cudaFree(void *address)
{
    return cuMemFree_v2((uintptr_t)address);
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice ? cuMemcpyHtoD_v2((uintptr_t)to, from, n)
                                          : cuMemcpyDtoH_v2(to, (uintptr_t)from, n);
}

static inline const char *cudaGetErrorString(cudaError_t error)
{
    const char *words = "";
    cuGetErrorString(error, &words);
    return words;
}

#endif
