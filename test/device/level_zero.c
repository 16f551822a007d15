/* SPDX-License-Identifier: MIT */
/* A look-alike of libze_loader.so.1 over that of the other runtimes. As Intel's driver does, it
 * knows in each context what all memory is. Copies may use memory of devices and what
 * zeMemAllocHost has made, nothing else; an event stays signaled until it is reset. */
#define LEVEL_ZERO
#include "runtime.c"

enum {
    UNINITIALIZED = 0x78000001,
    INVALID_ARGUMENT = 0x78000004,
    INVALID_HANDLE_ZE = 0x78000005,
    LIST_READY = 0,
    LIST_WAITS = 1,
    MEMORY_UNKNOWN = 0,
    MEMORY_HOST,
    MEMORY_DEVICE,
    MEMORY_SHARED
};

struct host_memory {
    char *at;
    size_t size;
    struct host_memory *next;
};

struct list {
    struct context *device;
    struct stream *stream; /* NULL: its copies have ended when they return */
};

struct ze_event {
    struct stream *stream; /* whose copies it waits for; NULL: none */
    uint64_t after;
    bool signaled;
};

static struct host_memory *host_memories;
static int ncontexts, npools;
static bool initialized;

/* Whether a structure is of this type, and has no extension. */
static bool is_of_type(const void *structure, int type)
{
    const struct {
        int type;
        const void *next;
    } *head = structure;
    return head->type == type && !head->next;
}

#define ZE(name, parameters, ...)                               \
    __attribute__((visibility("default"))) int name parameters; \
    int name parameters                                         \
    {                                                           \
        int result = 0;                                         \
        pthread_mutex_lock(&mutex);                             \
        if (!initialized && strcmp(#name, "zeInit") != 0)       \
            result = UNINITIALIZED;                             \
        else if (is_to_fail(#name))                             \
            result = INJECTED;                                  \
        else                                                    \
            __VA_ARGS__                                         \
        pthread_mutex_unlock(&mutex);                           \
        return result;                                          \
    }

ZE(zeInit, (unsigned flags), {
    (void)flags;
    initialized = true;
})

ZE(zeDriverGet, (uint32_t * n, void **drivers), {
    if (drivers)
        *drivers = &initialized;
    *n = 1;
})

ZE(zeDeviceGet, (void *driver, uint32_t *n, void **devices), {
    if (driver != &initialized)
        result = misuse("no driver", INVALID_HANDLE_ZE);
    for (uint32_t i = 0; i < *n && i < NDEVICES && devices; i++)
        devices[i] = &contexts[i];
    *n = NDEVICES;
})

ZE(zeContextCreate, (void *driver, const void *how, void **context), {
    if (driver != &initialized || !is_of_type(how, 0xd))
        result = misuse("a context without a driver or a description", INVALID_ARGUMENT);
    *context = calloc(1, 1);
    ncontexts++;
})

ZE(zeContextDestroy, (void *context), {
    free(context);
    ncontexts--;
})

struct group {
    int type;
    void *next;
    uint32_t flags;
    size_t pattern;
    uint32_t nqueues;
};

/* The first is for kernels, the second for copies. */
ZE(zeDeviceGetCommandQueueGroupProperties, (void *device, uint32_t *n, struct group *groups), {
    (void)device;
    if (*n < 2 || !is_of_type(groups, 0x6) || !is_of_type(groups + 1, 0x6))
        result = misuse("groups of queues without a description", INVALID_ARGUMENT);
    groups[0].flags = 3;
    groups[1].flags = 2;
    *n = 2;
})

struct list_how {
    int type;
    const void *next;
    uint32_t ordinal, index, flags;
    int mode, priority;
};

ZE(zeCommandListCreateImmediate,
   (void *context, struct context *device, const struct list_how *how, struct list **list), {
       struct stream *s = calloc(1, sizeof *s);
       if (!context || !is_of_type(how, 0xe) || how->index || how->mode < 1 || how->mode > 2)
           result = misuse("a list without a context or a description", INVALID_ARGUMENT);
       if (how->mode == 2 && how->ordinal != 1)
           result = misuse("a list that kernels hold up", INVALID_ARGUMENT);
       *s = (struct stream){.context = device, .last = &s->first};
       s->last = &s->first;
       *list = malloc(sizeof **list);
       **list = (struct list){device, how->mode == 2 ? s : NULL};
       if (how->mode == 2) {
           s->next = streams;
           streams = s;
           nstreams++;
       } else
           free(s);
   })

static void stream_end(struct stream *s)
{
    struct stream **at = &streams;
    while (*at != s)
        at = &(*at)->next;
    end_all(s);
    *at = s->next;
    free(s);
    nstreams--;
}

ZE(zeCommandListDestroy, (struct list * list), {
    if (list->stream)
        stream_end(list->stream);
    free(list);
})

/* Of so many bytes. */
static bool is_for_copies(const char *at, size_t n)
{
    const struct host_memory *h = host_memories;
    while (h && (at < h->at || at + n > h->at + h->size))
        h = h->next;
    return h;
}

static int copy_in_list(const struct list *list, char *to, char *from, size_t n, size_t pitch,
                        size_t rows)
{
    struct memory *m = memory_of((uintptr_t)to);
    bool store = m && (!m->managed || !memory_of((uintptr_t)from));
    char *host = store ? from : to;
    if (list->stream && !is_for_copies(host, (rows - 1) * pitch + n))
        return misuse("a copy with memory that the device may not access", INVALID_ARGUMENT);
    stack[depth++] = list->device;
    int error =
        copy_rows(store, (uintptr_t)(store ? to : from), host, n, pitch, rows, list->stream);
    depth--;
    return error;
}

ZE(zeCommandListAppendMemoryCopy,
   (struct list * list, char *to, char *from, size_t n, void *event, uint32_t nwaits, void **waits),
   {
       if (event || nwaits || waits)
           result = misuse("a copy with events", INVALID_ARGUMENT);
       else
           result = copy_in_list(list, to, from, n, n, 1);
   })

struct region {
    uint32_t x, y, z, width, height, depth;
};

ZE(zeCommandListAppendMemoryCopyRegion,
   (struct list * list, char *to, const struct region *to_region, uint32_t to_pitch,
    uint32_t to_slice, char *from, const struct region *from_region, uint32_t from_pitch,
    uint32_t from_slice, void *event, uint32_t nwaits, void **waits),
   {
       const struct region *r = to_region;
       if (event || nwaits || waits || memcmp(r, from_region, sizeof *r) ||
           to_pitch != from_pitch || r->x || r->y || r->z || r->depth != 1 ||
           to_slice < r->height * to_pitch || from_slice != to_slice)
           result = misuse("a region that is not one of rows", INVALID_ARGUMENT);
       else
           result = copy_in_list(list, to, from, r->width, to_pitch, r->height);
   })

ZE(zeCommandListAppendBarrier,
   (struct list * list, struct ze_event *event, uint32_t nwaits, void **waits), {
       if (nwaits || waits || !list->stream)
           result = misuse("a barrier with events", INVALID_ARGUMENT);
       else {
           event->stream = list->stream;
           event->after = list->stream->begun;
       }
   })

struct pool_how {
    int type;
    const void *next;
    uint32_t flags, count;
};

ZE(zeEventPoolCreate,
   (void *context, const struct pool_how *how, uint32_t ndevices, void **devices, void **pool), {
       if (!context || !is_of_type(how, 0x10) || !(how->flags & 1) || how->count != 1 || ndevices ||
           devices)
           result = misuse("a pool of events that the host cannot see", INVALID_ARGUMENT);
       *pool = calloc(1, 1);
       npools++;
   })

ZE(zeEventPoolDestroy, (void *pool), {
    free(pool);
    npools--;
})

struct event_how {
    int type;
    const void *next;
    uint32_t index, signal, wait;
};

ZE(zeEventCreate, (void *pool, const struct event_how *how, struct ze_event **event), {
    if (!pool || !is_of_type(how, 0x11) || how->index || !(how->signal & 4) || !(how->signal & 2))
        result = misuse("an event that does not make data visible", INVALID_ARGUMENT);
    *event = calloc(1, sizeof **event);
    nevents++;
})

ZE(zeEventDestroy, (struct ze_event * event), {
    free(event);
    nevents--;
})

ZE(zeEventHostReset, (struct ze_event * event), {
    if (event->stream)
        result = misuse("an event is reset that may be signaled yet", INVALID_ARGUMENT);
    event->signaled = false;
})

ZE(zeEventQueryStatus, (struct ze_event * event), {
    end_due();
    if (event->stream && event->stream->ended >= event->after) {
        event->signaled = true;
        event->stream = NULL;
    }
    result = event->signaled ? LIST_READY : LIST_WAITS;
})

struct properties {
    int type;
    void *next;
    int memory;
    uint64_t id, page;
};

ZE(zeMemGetAllocProperties, (void *context, const char *at, struct properties *p, void **device), {
    struct memory *m = memory_of((uintptr_t)at);
    nasked++;
    if (!context || !is_of_type(p, 0x17))
        result = misuse("properties without a context or a description", INVALID_ARGUMENT);
    p->memory = m                      ? m->managed ? MEMORY_SHARED : MEMORY_DEVICE
                : is_for_copies(at, 1) ? MEMORY_HOST
                                       : MEMORY_UNKNOWN;
    *device = m ? m->context : NULL;
})

ZE(zeMemGetAddressRange, (void *context, const void *at, void **start, size_t *size), {
    struct memory *m = memory_of((uintptr_t)at);
    if (!context || !m)
        result = INVALID_ARGUMENT;
    else {
        *start = m->address;
        *size = m->size;
    }
})

ZE(zeMemAllocHost, (void *context, const void *how, size_t size, size_t align, void **memory), {
    struct host_memory *h = malloc(sizeof *h);
    if (!context || !is_of_type(how, 0x16) || size == 0)
        result = misuse("memory without a context or a description", INVALID_ARGUMENT);
    *h = (struct host_memory){aligned_alloc(align, size), size, host_memories};
    host_memories = h;
    *memory = h->at;
    npinned++;
})

static int allocate_on(struct context *device, size_t size, bool managed, uintptr_t *at)
{
    stack[depth++] = device;
    int error = allocate(at, size, managed);
    depth--;
    return error;
}

ZE(zeMemAllocDevice,
   (void *context, const void *how, size_t size, size_t align, struct context *device,
    uintptr_t *memory),
   {
       (void)context;
       (void)how;
       (void)align;
       result = allocate_on(device, size, false, memory);
   })

ZE(zeMemAllocShared,
   (void *context, const void *device_how, const void *host_how, size_t size, size_t align,
    struct context *device, uintptr_t *memory),
   {
       (void)context;
       (void)device_how;
       (void)host_how;
       (void)align;
       result = allocate_on(device, size, true, memory);
   })

ZE(zeMemFree, (void *context, char *memory), {
    (void)context;
    struct host_memory **host = &host_memories, *found;
    struct memory **at = &memories;
    while (*host && (*host)->at != memory)
        host = &(*host)->next;
    while (*at && (*at)->address != memory)
        at = &(*at)->next;
    found = *host;
    if (found) {
        *host = found->next;
        free(found->at);
        free(found);
        npinned--;
    } else if (*at) {
        for (struct stream *s = streams; s; s = s->next)
            end_all(s);
        memory_end(at);
    } else
        result = misuse("memory is freed that is none", INVALID_ARGUMENT);
})

__attribute__((destructor)) static void report_level_zero(void)
{
    if (npools || ncontexts > 1) /* the program's */
        fprintf(stderr, "runtime: left over: %d pools of events, %d contexts\n", npools, ncontexts);
    if (npools || ncontexts > 1)
        _exit(77);
}
