/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;
static bool is_hip;

/* CUDA's and HIP's functions, with the same parameters. */
static struct {
    int (*allocate)(uintptr_t *address, size_t size);
    int (*allocate_managed)(uintptr_t *address, size_t size, unsigned flags);
    int (*release)(uintptr_t address);
    int (*store)(uintptr_t device, const void *host, size_t n);
    int (*fetch)(void *host, uintptr_t device, size_t n);
    int (*pin)(void *memory, size_t size, unsigned flags);
    int (*unpin)(void *memory);
    int (*count)(int *n);
    int (*set_context)(void *context); /* CUDA */
    int (*set_device)(int device);     /* HIP */
} run;

enum { MOST_DEVICES = 16 };

static void *contexts[MOST_DEVICES];
static int ndevices, next, chosen = -1;

void *device_function(const char *name)
{
    return dlsym(library, name);
}

/* Not an assertion, which might be left out. */
static void must(bool ok)
{
    if (!ok) {
        fprintf(stderr, "a function of the device's runtime fails\n");
        abort();
    }
}

static void look_up(const char *cuda, const char *hip, void *function)
{
    void *found = device_function(is_hip ? hip : cuda);

    if (!found) {
        fprintf(stderr, "the runtime has no %s\n", is_hip ? hip : cuda);
        abort();
    }
    memcpy(function, &found, sizeof found);
}

static bool set_up_cuda(void)
{
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);

    look_up("cuInit", "", &init);
    look_up("cuCtxSetCurrent", "", &run.set_context);
    look_up("cuDevicePrimaryCtxRetain", "", &retain);
    if (init(0) != 0 || run.count(&ndevices) != 0)
        return false;
    ndevices = ndevices > MOST_DEVICES ? MOST_DEVICES : ndevices;
    for (int i = 0; i < ndevices; i++)
        must(retain(&contexts[i], i) == 0);
    return ndevices > 0;
}

static bool set_up_hip(void)
{
    look_up("", "hipSetDevice", &run.set_device);
    return run.count(&ndevices) == 0 && ndevices > 0;
}

bool device_load(const char *name)
{
    if (ndevices > 0)
        return true;
    is_hip = strstr(name, "hip");
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    look_up("cuMemAlloc_v2", "hipMalloc", &run.allocate);
    look_up("cuMemAllocManaged", "hipMallocManaged", &run.allocate_managed);
    look_up("cuMemFree_v2", "hipFree", &run.release);
    look_up("cuMemcpyHtoD_v2", "hipMemcpyHtoD", &run.store);
    look_up("cuMemcpyDtoH_v2", "hipMemcpyDtoH", &run.fetch);
    look_up("cuMemHostRegister_v2", "hipHostRegister", &run.pin);
    look_up("cuMemHostUnregister", "hipHostUnregister", &run.unpin);
    look_up("cuDeviceGetCount", "hipGetDeviceCount", &run.count);
    return is_hip ? set_up_hip() : set_up_cuda();
}

void device_load_tested(void)
{
    const char *name = getenv("NBC_DEVICE_LIBRARY");

    name = name && *name ? name : "test/device/libcuda.so.1";
    if (!device_load(name)) {
        fprintf(stderr, "%s: %s\n", name, library ? "it has no device" : dlerror());
        abort();
    }
}

void device_choose(int n)
{
    chosen = n % ndevices;
}

/* HIP always has a current device. */
static void enter(int device)
{
    device_load_tested();
    must((is_hip ? run.set_device(device) : run.set_context(contexts[device])) == 0);
}

static void leave(void)
{
    must((is_hip ? run.set_device(0) : run.set_context(NULL)) == 0);
}

void *device_new(enum device_memory kind, size_t size)
{
    uintptr_t address;
    int error;

    device_load_tested();
    enter(chosen < 0 ? next++ / 3 % ndevices : chosen);
    size = size > 0 ? size : 1;
    error =
        kind == MANAGED ? run.allocate_managed(&address, size, 1) : run.allocate(&address, size);
    must(error == 0);
    leave();
    return (void *)address;
}

void device_free(void *memory)
{
    enter(chosen < 0 ? 0 : chosen);
    must(run.release((uintptr_t)memory) == 0);
    leave();
}

void device_store(void *device, const void *host, size_t size)
{
    enter(chosen < 0 ? 0 : chosen);
    must(size == 0 || run.store((uintptr_t)device, host, size) == 0);
    leave();
}

void device_fetch(void *host, const void *device, size_t size)
{
    enter(chosen < 0 ? 0 : chosen);
    must(size == 0 || run.fetch(host, (uintptr_t)device, size) == 0);
    leave();
}

bool device_pin(void *memory, size_t size)
{
    int error;

    enter(chosen < 0 ? 0 : chosen);
    error = run.pin(memory, size, 1); /* for all contexts */
    leave();
    return error == 0;
}

void device_unpin(void *memory)
{
    enter(chosen < 0 ? 0 : chosen);
    must(run.unpin(memory) == 0);
    leave();
}

/* The look-alikes have no function for it. */
void device_name(char *text, int size)
{
    int (*get)(char *text, int size, int device);
    void *found = device_function(is_hip ? "hipDeviceGetName" : "cuDeviceGetName");

    memcpy(&get, &found, sizeof get);
    if (!found || get(text, size, chosen < 0 ? 0 : chosen))
        snprintf(text, (size_t)size, "a device without a name");
}
