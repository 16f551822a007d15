/* SPDX-License-Identifier: MIT */
/* The memory of devices, by the runtime that the program has loaded: CUDA's driver API, HIP or, if
 * that is allowed, Level Zero. They
 * are found at run time; nothing depends on them. Under the lock. Local; nothing waits. */
#ifndef NBC_DEVICE_H
#define NBC_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "below/next.h"

/* Points to a word that is 0 as long as there can be no runtime: nbc_device_look has found none,
 * and no library has been loaded since. */
extern NBC_HIDDEN const uintptr_t *nbc_device_word;

static inline bool nbc_device_may_be(void)
{
    return __builtin_expect(__atomic_load_n(nbc_device_word, __ATOMIC_RELAXED) != 0, 0);
}

/* Looks for the runtimes among the libraries that are loaded, if there are new ones. Returns
 * whether one has ever been found. */
bool nbc_device_look(void);

/* At init. off: there is no runtime, whatever the program loads; level_zero: that is looked for,
 * too. */
void nbc_device_set_up(bool off, bool level_zero);

/* What is at an address. */
enum nbc_memory {
    NBC_MEMORY_HOST, /* what the processor may access */
    NBC_MEMORY_DEVICE,
    NBC_MEMORY_NONE,    /* neither: it has been freed, say */
    NBC_MEMORY_DIFFERS, /* not the same at the first byte and at the last */
};

/* A context of a device, with streams of nbcshim's own. */
struct nbc_device;

/* Finds out what the bytes from `first` to `last` are; if a device's, sets *device, and *waits to
 * whether the device has what the program has written there by calls that have returned. */
enum nbc_memory nbc_device_find(uintptr_t first, uintptr_t last, struct nbc_device **device,
                                bool *waits);

/* If it may not have it: copies that start from now on wait for that, and calls of the program that
 * write to this memory in future will. Returns false if that fails: see nbc_device_fault. */
bool nbc_device_settle(struct nbc_device *d, uintptr_t at);

/* Whether nothing has to be waited for any more: a copy that started since then has ended. */
bool nbc_device_is_settled(const struct nbc_device *d);

/* Whether the MPI says that it takes buffers in this device's memory; or in any that there may be,
 * if NULL. After the MPI is initialized. */
bool nbc_device_mpi_takes(const struct nbc_device *d);

/* Makes a device's context current in this thread, and then the one before. */
bool nbc_device_enter(struct nbc_device *d, void **before);
void nbc_device_leave(struct nbc_device *d, void *before);

/* Bytes of an element that hold data: `length` of them from `at` on. */
struct nbc_bytes_run {
    int64_t at, length;
};

/* A copy of elements, `extent` bytes apart, between the memories of a device and of the host.
 * No element: the copy is over when those that started before are, and what they wait for. */
struct nbc_elements {
    uintptr_t on_device, on_host;
    bool within; /* on_host is on the same device: a store of the first run from there */
    const struct nbc_bytes_run *runs;
    int nruns;
    int64_t count, extent;
};

/* A copy that is under way. */
struct nbc_device_copy;

/* Starts a copy, to the device if `store`. Returns NULL if that fails: nbc_device_fault says why.
 * If a part of it is under way, it fails when that is over, unless the runtime cannot tell. */
struct nbc_device_copy *nbc_device_start(struct nbc_device *d, bool store,
                                         const struct nbc_elements *e);

/* Sets *over if the copy, which then does not exist any more, has ended. Returns false if it has
 * failed. */
bool nbc_device_test(struct nbc_device_copy *copy, bool *over);

/* What has failed last, and the runtime's words for it. */
const char *nbc_device_fault(void);

/* Memory of the host for copies of a device (NULL: of none), aligned to a page, or NULL. *owner:
 * the device whose runtime has made it, as some must, or knows it, which makes copies faster; or
 * NULL. */
void *nbc_device_memory_new(struct nbc_device *d, size_t size, struct nbc_device **owner);

/* Whether copies of a device need memory that its runtime has made. */
bool nbc_device_makes_memory(const struct nbc_device *d);

/* The runtime forgets the memory, before it is freed; returns whether it has freed it itself. */
bool nbc_device_memory_drop(struct nbc_device *owner, void *memory);

/* Frees streams and events. Everything may be used again. */
void nbc_device_cleanup(void);

#endif
