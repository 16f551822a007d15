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

/* CUDA's and HIP's functions, with the same parameters; or those below for Level Zero. */
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

/* Level Zero's functions; copies are in a list that waits for them. */
static struct {
    void *context, *list[MOST_DEVICES];
    int now; /* the current device, which Level Zero does not have */
    int (*init)(unsigned flags);
    int (*drivers)(unsigned *n, void **drivers);
    int (*devices)(void *driver, unsigned *n, void **devices);
    int (*context_new)(void *driver, const void *how, void **context);
    int (*list_new)(void *context, void *device, const void *how, void **list);
    int (*allocate)(void *context, const void *how, size_t size, size_t align, void *device,
                    uintptr_t *memory);
    int (*allocate_shared)(void *context, const void *how, const void *how_on_host, size_t size,
                           size_t align, void *device, uintptr_t *memory);
    int (*release)(void *context, uintptr_t memory);
    int (*copy)(void *list, uintptr_t to, uintptr_t from, size_t n, void *event, unsigned nwaits,
                void **waits);
} ze;

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

/* The structures of descriptions: their type, no extension, and zeros. */
struct how {
    int type;
    const void *next;
    int rest[5];
};

static int ze_allocate(uintptr_t *address, size_t size)
{
    const struct how how = {.type = 0x15};
    return ze.allocate(ze.context, &how, size, 64, contexts[ze.now], address);
}

static int ze_allocate_shared(uintptr_t *address, size_t size, unsigned flags)
{
    const struct how how = {.type = 0x15}, on_host = {.type = 0x16};
    (void)flags;
    return ze.allocate_shared(ze.context, &how, &on_host, size, 64, contexts[ze.now], address);
}

static int ze_release(uintptr_t address)
{
    return ze.release(ze.context, address);
}

static int ze_store(uintptr_t device, const void *host, size_t n)
{
    return ze.copy(ze.list[ze.now], device, (uintptr_t)host, n, NULL, 0, NULL);
}

static int ze_fetch(void *host, uintptr_t device, size_t n)
{
    return ze.copy(ze.list[ze.now], (uintptr_t)host, device, n, NULL, 0, NULL);
}

static int ze_set_device(int device)
{
    ze.now = device;
    return 0;
}

/* Level Zero cannot pin what malloc has given. */
static int ze_pin(void *memory, size_t size, unsigned flags)
{
    (void)memory;
    (void)size;
    (void)flags;
    return 1;
}

static void look_up_level_zero(void)
{
    is_hip = true; /* a device is current, not a context */
    look_up("", "zeInit", &ze.init);
    look_up("", "zeDriverGet", &ze.drivers);
    look_up("", "zeDeviceGet", &ze.devices);
    look_up("", "zeContextCreate", &ze.context_new);
    look_up("", "zeCommandListCreateImmediate", &ze.list_new);
    look_up("", "zeMemAllocDevice", &ze.allocate);
    look_up("", "zeMemAllocShared", &ze.allocate_shared);
    look_up("", "zeMemFree", &ze.release);
    look_up("", "zeCommandListAppendMemoryCopy", &ze.copy);
    run.allocate = ze_allocate;
    run.allocate_managed = ze_allocate_shared;
    run.release = ze_release;
    run.store = ze_store;
    run.fetch = ze_fetch;
    run.pin = ze_pin;
    run.set_device = ze_set_device;
}

static bool set_up_level_zero(void)
{
    const struct how context = {.type = 0xd}, list = {.type = 0xe, .rest = {0, 0, 0, 1, 0}};
    unsigned n = 1;
    void *driver;

    look_up_level_zero();
    if (ze.init(0) || ze.drivers(&n, &driver) || n == 0)
        return false;
    n = MOST_DEVICES;
    must(ze.devices(driver, &n, contexts) == 0 &&
         ze.context_new(driver, &context, &ze.context) == 0);
    for (unsigned i = 0; i < n; i++)
        must(ze.list_new(ze.context, contexts[i], &list, &ze.list[i]) == 0);
    ndevices = (int)n;
    return ndevices > 0;
}

bool device_load(const char *name)
{
    if (ndevices > 0)
        return true;
    is_hip = strstr(name, "hip");
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    if (strstr(name, "ze_loader"))
        return set_up_level_zero();
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

bool device_is_look_alike(void)
{
    return device_function("nbc_runtime_settings");
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
