/* SPDX-License-Identifier: MIT */
/* Level Zero, a row of the table of runtimes: structures and numbers as its specification has them.
 *
 * It cannot tell to which context of the program an address belongs, and the specification lets a
 * context know only its own memory. Intel's driver tells in each context what all memory of the
 * process is, and copies it there; a context of nbcshim's own relies on that, in the first driver.
 * With a driver that does not tell, buffers are taken for memory of the host. */
#define _GNU_SOURCE
#include "below/runtime.h"

#include <stdlib.h>

#include "below/device.h"

struct description { /* of a context, or of memory of the host */
    int type;
    const void *next;
    uint32_t flags;
};

struct queue_description {
    int type;
    const void *next;
    uint32_t ordinal, index, flags;
    int mode, priority;
};

struct group {
    int type;
    void *next;
    uint32_t flags;
    size_t pattern;
    uint32_t nqueues;
};

struct pool_description {
    int type;
    const void *next;
    uint32_t flags, count;
};

struct event_description {
    int type;
    const void *next;
    uint32_t index, signal, wait;
};

struct properties {
    int type;
    void *next;
    int memory;
    uint64_t id, page;
};

struct region {
    uint32_t x, y, z, width, height, depth;
};

enum {
    GROUP = 0x6,
    CONTEXT = 0xd,
    QUEUE = 0xe,
    POOL = 0x10,
    EVENT,
    HOST_MEMORY = 0x16,
    PROPERTIES
};

#define LEVEL_ZERO(F)                                                                              \
    F(int, driver_get, "zeDriverGet", (uint32_t * n, void **drivers))                              \
    F(int, context_new, "zeContextCreate",                                                         \
      (void *driver, const struct description *how, void **context))                               \
    F(int, context_free, "zeContextDestroy", (void *context))                                      \
    F(int, get_groups, "zeDeviceGetCommandQueueGroupProperties",                                   \
      (void *device, uint32_t *n, struct group *groups))                                           \
    F(int, list_new, "zeCommandListCreateImmediate",                                               \
      (void *context, void *device, const struct queue_description *how, void **list))             \
    F(int, list_free, "zeCommandListDestroy", (void *list))                                        \
    F(int, copy, "zeCommandListAppendMemoryCopy",                                                  \
      (void *list, void *to, const void *from, size_t n, void *event, uint32_t nwaits,             \
       void **waits))                                                                              \
    F(int, copy_region, "zeCommandListAppendMemoryCopyRegion",                                     \
      (void *list, void *to, const struct region *to_region, uint32_t to_pitch, uint32_t to_slice, \
       const void *from, const struct region *from_region, uint32_t from_pitch,                    \
       uint32_t from_slice, void *event, uint32_t nwaits, void **waits))                           \
    F(int, barrier, "zeCommandListAppendBarrier",                                                  \
      (void *list, void *event, uint32_t nwaits, void **waits))                                    \
    F(int, pool_new, "zeEventPoolCreate",                                                          \
      (void *context, const struct pool_description *how, uint32_t ndevices, void **devices,       \
       void **pool))                                                                               \
    F(int, pool_free, "zeEventPoolDestroy", (void *pool))                                          \
    F(int, event_new, "zeEventCreate",                                                             \
      (void *pool, const struct event_description *how, void **event))                             \
    F(int, event_free, "zeEventDestroy", (void *event))                                            \
    F(int, event_reset, "zeEventHostReset", (void *event))                                         \
    F(int, event_query, "zeEventQueryStatus", (void *event))                                       \
    F(int, get_properties, "zeMemGetAllocProperties",                                              \
      (void *context, const void *at, struct properties *p, void **device))                        \
    F(int, get_range, "zeMemGetAddressRange",                                                      \
      (void *context, const void *at, void **start, size_t *size))                                 \
    F(int, memory_new, "zeMemAllocHost",                                                           \
      (void *context, const struct description *how, size_t size, size_t align, void **memory))    \
    F(int, memory_free, "zeMemFree", (void *context, void *memory))

NBC_RUNTIME_OWN(LEVEL_ZERO, ze)

static void *context; /* nbcshim's own */
static void *current; /* device; Level Zero has none. Under the lock */

/* The program has to initialize Level Zero. */
static bool has_context(void)
{
    const struct description how = {.type = CONTEXT};
    uint32_t n = 1;
    void *driver;
    if (!context &&
        (ze.driver_get(&n, &driver) || n == 0 || ze.context_new(driver, &how, &context)))
        context = NULL;
    return context;
}

static bool locate(uintptr_t at, struct nbc_place *p)
{
    enum { UNKNOWN, HOST, DEVICE, SHARED };
    struct properties properties = {.type = PROPERTIES};
    void *device = NULL, *start = NULL;
    *p = (struct nbc_place){0};
    if (!has_context() || ze.get_properties(context, (void *)at, &properties, &device) ||
        properties.memory == UNKNOWN)
        return false;
    p->device = properties.memory == DEVICE && device;
    p->waits = true;
    p->context = device;
    if (p->device && !ze.get_range(context, (void *)at, &start, &p->size))
        p->start = (uintptr_t)start;
    return true;
}

static int enter(void *device, void **before)
{
    *before = current;
    current = device;
    return 0;
}

static void leave(void *before)
{
    current = before;
}

/* The queues for copies alone, if the device has some: kernels do not hold them up. */
static int group_for_copies(uint32_t *ordinal)
{
    enum { COMPUTE = 1, COPY = 2, MOST = 16 };
    struct group groups[MOST];
    uint32_t n = MOST;
    for (int i = 0; i < MOST; i++)
        groups[i] = (struct group){.type = GROUP};
    int error = ze.get_groups(current, &n, groups);
    *ordinal = 0;
    for (uint32_t i = 0; i < n && !error; i++)
        if ((groups[i].flags & (COMPUTE | COPY)) == COPY) {
            *ordinal = i;
            break;
        }
    return error;
}

static int stream_new(void **stream, unsigned flags)
{
    enum { ASYNCHRONOUS = 2 };
    struct queue_description how = {.type = QUEUE, .mode = ASYNCHRONOUS};
    int error = group_for_copies(&how.ordinal);
    (void)flags;
    return error ? error : ze.list_new(context, current, &how, stream);
}

static int stream_free(void *list)
{
    return ze.list_free(list);
}

/* An event that has been given up may be signaled late. It is not used again. */
struct event {
    void *pool, *event;
    bool is_awaited;
};

static int event_make(struct event *e)
{
    enum { HOST_VISIBLE = 1, DEVICE_AND_HOST = 6 };
    const struct pool_description pool = {.type = POOL, .flags = HOST_VISIBLE, .count = 1};
    const struct event_description how = {
        .type = EVENT, .signal = DEVICE_AND_HOST, .wait = DEVICE_AND_HOST};
    struct event made = {NULL, NULL, false};
    int error = ze.pool_new(context, &pool, 0, NULL, &made.pool);
    if (error)
        return error;
    error = ze.event_new(made.pool, &how, &made.event);
    if (error)
        ze.pool_free(made.pool);
    else
        *e = made;
    return error;
}

static int event_new(void **event, unsigned flags)
{
    enum { OUT_OF_HOST_MEMORY = 0x70000002 };
    struct event *e = calloc(1, sizeof *e);
    int error = e ? event_make(e) : OUT_OF_HOST_MEMORY;
    (void)flags;
    if (error)
        free(e);
    else
        *event = e;
    return error;
}

static int event_free(void *event)
{
    struct event *e = event;
    int error = ze.event_free(e->event);
    error = error ? error : ze.pool_free(e->pool);
    free(e);
    return error;
}

/* A barrier waits for all that the list has, in whatever order it is done. */
static int event_record(void *event, void *list)
{
    struct event *e = event;
    int error = e->is_awaited ? event_make(e) : ze.event_reset(e->event);
    error = error ? error : ze.barrier(list, e->event, 0, NULL);
    e->is_awaited = !error;
    return error;
}

static int event_query(void *event)
{
    enum { NOT_READY = 1 };
    struct event *e = event;
    int error = ze.event_query(e->event);
    if (!error)
        e->is_awaited = false;
    return error == NOT_READY ? NBC_NOT_READY : error;
}

static int fetch(void *host, uintptr_t device, size_t n, void *list)
{
    return ze.copy(list, host, (void *)device, n, NULL, 0, NULL);
}

static int store(uintptr_t device, const void *host, size_t n, void *list)
{
    return ze.copy(list, (void *)device, host, n, NULL, 0, NULL);
}

/* A slice, not a region of depth 0: of that a driver might copy nothing. Its size has 32 bits. */
static int copy_rows(bool stores, const struct nbc_rows *rows, void *list)
{
    uint32_t pitch = (uint32_t)rows->pitch;
    int64_t most = UINT32_MAX / rows->pitch;
    for (int64_t i = 0; i < rows->n; i += most) {
        uint32_t n = (uint32_t)(rows->n - i < most ? rows->n - i : most);
        const struct region r = {.width = (uint32_t)rows->length, .height = n, .depth = 1};
        uintptr_t at = (uintptr_t)(i * rows->pitch);
        void *device = (void *)(rows->on_device + at), *host = (void *)(rows->on_host + at);
        int error = ze.copy_region(list, stores ? device : host, &r, pitch, n * pitch,
                                   stores ? host : device, &r, pitch, n * pitch, NULL, 0, NULL);
        if (error)
            return error;
    }
    return 0;
}

static void *memory_new(size_t size)
{
    enum { ALIGN = 4096 };
    const struct description how = {.type = HOST_MEMORY};
    void *memory;
    return ze.memory_new(context, &how, size, ALIGN, &memory) ? NULL : memory;
}

static void memory_free(void *memory)
{
    ze.memory_free(context, memory);
}

static const char *words(int error)
{
    switch (error) {
    case 0x70000001:
        return "the device is lost";
    case 0x70000002:
        return "no memory of the host";
    case 0x70000003:
        return "no memory of the device";
    default:
        return "an error of Level Zero";
    }
}

static void end(void)
{
    if (context)
        ze.context_free(context);
    context = NULL;
}

/* No MPI gets such buffers (NBC_DEVICE_DIRECT): then copies would use the program's memory. */
struct nbc_runtime nbc_level_zero = {
    .library = "libze_loader.so",
    .names = {"zeCommandListCreateImmediate", "zeCommandListDestroy", "zeEventCreate",
              "zeEventDestroy", "zeCommandListAppendBarrier", "zeEventQueryStatus",
              "zeCommandListAppendMemoryCopy", "zeCommandListAppendMemoryCopy"},
    .aware = {.asked = 1},
    .f = {.stream_new = stream_new,
          .stream_free = stream_free,
          .event_new = event_new,
          .event_free = event_free,
          .event_record = event_record,
          .event_query = event_query,
          .fetch = fetch,
          .store = store},
    .own = &ze,
    .own_names = ze_names,
    .locate = locate,
    .enter = enter,
    .leave = leave,
    .copy_rows = copy_rows,
    .rows_name = "zeCommandListAppendMemoryCopyRegion",
    .words = words,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .end = end,
    .is_refused = true};
