/* SPDX-License-Identifier: MIT */
/* Makes an MPI take buffers in the memory of devices, as one that is built for GPUs does: a layer
 * between nbcshim and the MPI, for the look-alikes of the runtimes (runtime.c). Messages use the
 * look-alike's hidden mapping of the memory, as a network adapter does, without waiting for copies
 * that the program has begun; and as some MPIs do, it needs the context of the memory to be current
 * in the thread that calls it. */
#define _GNU_SOURCE
#include "config.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int MPIX_Query_cuda_support(void);
int MPIX_Query_rocm_support(void);

int MPIX_Query_cuda_support(void)
{
    return 1;
}

int MPIX_Query_rocm_support(void)
{
    return 1;
}

static void look_up(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

typedef intptr_t distance(uintptr_t at);

/* From the address of a byte of a device to the hidden one; 0: it is none. */
static intptr_t to_hidden(uintptr_t at)
{
    static distance *found;
    static const char *const names[] = {"libcuda.so.1", "libamdhip64.so.6"};
    distance *f = __atomic_load_n(&found, __ATOMIC_RELAXED);
    for (int i = 0; i < 2 && !f; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            look_up(library, "nbc_runtime_to_hidden", &f);
    }
    __atomic_store_n(&found, f, __ATOMIC_RELAXED);
    return f ? f(at) : 0;
}

static void *translated(const void *buf, int count, MPI_Datatype type)
{
    MPI_Aint lb, extent;
    PMPI_Type_get_true_extent(type, &lb, &extent);
    uintptr_t at = (uintptr_t)buf;
    if (count > 0 && extent > 0)
        at += (uintptr_t)to_hidden(at + (uintptr_t)lb);
    return (void *)at;
}

int PMPI_Isend(NBC_CONST void *buf, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    static __typeof__(MPI_Isend) *next;
    if (!next)
        look_up(RTLD_NEXT, "PMPI_Isend", &next);
    return next(translated(buf, count, type), count, type, peer, tag, comm, request);
}

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    static __typeof__(MPI_Irecv) *next;
    if (!next)
        look_up(RTLD_NEXT, "PMPI_Irecv", &next);
    return next(translated(buf, count, type), count, type, peer, tag, comm, request);
}

/* So nbcshim does not take it for a tool. */
__typeof__(MPI_Isend) MPI_Isend __attribute__((alias("PMPI_Isend")));
__typeof__(MPI_Irecv) MPI_Irecv __attribute__((alias("PMPI_Irecv")));
