/* SPDX-License-Identifier: MIT */
/* A look-alike of the runtimes of devices: of libcuda.so.1, with -DHIP of libamdhip64.so, or as a
 * part of level_zero.c of libze_loader.so.1, as far as nbcshim and the tests use them. A "device"
 * is memory of this process that the processor may not access: its addresses are mapped without any
 * access, and a second mapping of the same memory, which nobody knows, serves the copies.
 *
 * It is as adverse as the real ones may be: copies end late, and those of different streams in any
 * order. What a copy to the host will write holds garbage until the copy has ended, and what a copy
 * to the device reads is read as late as possible.
 *
 *     NBC_RUNTIME_FAIL=FUNCTION[:N]  the N-th call of the function fails, and all later ones
 *     NBC_RUNTIME_FAIL=FUNCTION=N    the N-th call alone
 *     NBC_RUNTIME_FAIL=cuInit        no question what memory is has an answer either
 *     NBC_RUNTIME_TIME=NS,MBS        copies take so many ns, and 1 s for so many MB; in each stream
 *                                    one after the other
 *     NBC_RUNTIME_TIME=NS,MBS,only   and move nothing: for measurements, since a processor that
 *                                    copies is not free for the program
 *
 * At exit it reports on standard error what has been left over: streams, events, pinned memory, and
 * uses that the real runtimes do not allow. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_READY = 600,
    INJECTED = 999,
    NDEVICES = 2,
    MOST_LATE = 4
};

struct context {
    int device;
    bool destroyed;
};

struct copy {
    bool store;
    char *hidden, *host;
    size_t n, pitch, rows; /* n bytes each, `pitch` bytes apart */
    uint64_t gate;         /* waits for so many late copies */
    bool is_late;          /* of the program: owns `host` */
    int64_t due;           /* queries, or ns */
    struct copy *next;
};

struct stream {
    struct context *context;
    struct copy *first, **last;
    uint64_t begun, ended;
    int64_t busy_until;
    uint64_t gate; /* of the copies that begin from now on */
    struct stream *next;
};

/* Copies of the program return when the data is there. */
#if defined HIP || defined LEVEL_ZERO
static const bool copies_wait = true;
#else
static const bool copies_wait = false;
#endif

/* Copies of the program that have returned before the data was there. It stands for the default
 * streams, of which nbcshim must wait for both. */
static struct stream late_stream = {.last = &late_stream.first};

struct event {
    struct event *next;
    struct context *context;
    struct stream *stream;
    unsigned defaults; /* recorded in these of the default streams */
    uint64_t after;    /* is complete when this many copies of the stream have ended, */
    uint64_t gate;     /* and so many late ones */
};

struct memory {
    char *address, *hidden;
    size_t size;
    uint64_t id; /* no other memory ever has it */
    struct context *context;
    bool managed;
    bool waits; /* SYNC_MEMOPS */
    struct memory *next;
};

/* Memory of the host. It is pinned no longer when its context is destroyed. */
struct pin {
    void *memory;
    struct context *context;
    struct pin *next;
};

static struct pin *pins;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct context contexts[NDEVICES] = {{.device = 0}, {.device = 1}};
static struct stream *streams;
static struct event *events;
static void *next_address;
static struct memory *memories;
static int nstreams, nevents, npinned, nmisuses;
static int64_t ncopies, nbytes, nasked, queries;
static uint64_t last_id;
static __thread struct context *stack[64];
static __thread int depth;

static uint64_t random_state = 88172645463325252u;

static int random_below(int n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)(random_state % (uint64_t)n);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int misuse(const char *what, int error)
{
    nmisuses++;
    fprintf(stderr, "runtime: %s\n", what);
    return error;
}

static const char *to_fail; /* NBC_RUNTIME_FAIL */
static int calls_to_fail;   /* of that function */
static bool is_timed;       /* NBC_RUNTIME_TIME */
static struct {
    int64_t latency, rate;
    bool only;
} timing;

/* Reads the variables. A program that changes them calls it: searching the environment in every
 * call took a third of the time. */
__attribute__((constructor)) void nbc_runtime_settings(void)
{
    const char *given = getenv("NBC_RUNTIME_TIME");
    to_fail = getenv("NBC_RUNTIME_FAIL");
    calls_to_fail = 0;
    is_timed = given && sscanf(given, "%" SCNd64 ",%" SCNd64, &timing.latency, &timing.rate) == 2;
    timing.only = is_timed && strstr(given, ",only");
}

/* Whether this call of a function is to fail. */
static bool is_to_fail(const char *function)
{
    size_t n = to_fail ? strcspn(to_fail, ":=") : 0;
    if (!to_fail || strlen(function) != n || strncmp(to_fail, function, n) != 0)
        return false;
    int at = to_fail[n] ? atoi(to_fail + n + 1) : 1;
    calls_to_fail++;
    return to_fail[n] == '=' ? calls_to_fail == at : calls_to_fail >= at;
}

static struct memory *memory_of(uintptr_t at)
{
    struct memory *m = memories;
    while (m && at - (uintptr_t)m->address >= m->size)
        m = m->next;
    return m;
}

static struct context *current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

/* --- copies ----------------------------------------------------------------------------------- */

static int64_t copy_due(struct stream *s, size_t n)
{
    int64_t begin = now();
    if (!is_timed)
        return queries + random_below(MOST_LATE);
    if (s->busy_until > begin)
        begin = s->busy_until;
    else
        begin += timing.latency; /* of the first copy: those behind it are waiting already */
    return s->busy_until = begin + (int64_t)n * 1000 / timing.rate;
}

static bool is_due(const struct copy *c)
{
    return c->due <= (is_timed ? now() : queries) && late_stream.ended >= c->gate;
}

static void move(const struct copy *c)
{
    for (size_t at = 0; at < c->rows * c->pitch && (!is_timed || !timing.only); at += c->pitch)
        memcpy((c->store ? c->hidden : c->host) + at, (c->store ? c->host : c->hidden) + at, c->n);
}

/* A copy that the caller waits for: the processor is free meanwhile. */
static void move_now(const struct copy *c)
{
    if (is_timed) {
        int64_t ns = now() + timing.latency + (int64_t)c->n * 1000 / timing.rate,
                second = 1000000000;
        struct timespec due = {.tv_sec = ns / second, .tv_nsec = ns % second};
        prctl(PR_SET_TIMERSLACK, 1UL);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
    move(c);
}

static void end_first(struct stream *s)
{
    struct copy *c = s->first;
    move(c);
    s->first = c->next;
    if (!s->first)
        s->last = &s->first;
    s->ended++;
    if (c->is_late)
        free(c->host);
    free(c);
}

static void end_due(void)
{
    queries++;
    for (struct stream *s = streams; s; s = s->next)
        while (s->first && is_due(s->first))
            end_first(s);
    while (late_stream.first && is_due(late_stream.first))
        end_first(&late_stream);
}

static void end_all(struct stream *s)
{
    while (s->first)
        end_first(s);
}

/* The program's memory may be used again at once. */
static struct stream *make_late(struct copy *c)
{
    char *host = malloc(c->n);
    memcpy(host, c->host, c->n);
    c->host = host;
    c->is_late = true;
    return &late_stream;
}

static int copy_rows(bool store, uintptr_t device, void *host, size_t n, size_t pitch, size_t rows,
                     struct stream *s)
{
    struct memory *m = memory_of(device), *other = memory_of((uintptr_t)host);
    if (other && !other->managed)
        return misuse("a device's memory where the host's should be", INVALID_VALUE);
    if (n == 0 || pitch < n || rows == 0)
        return misuse("a copy of nothing, or of rows that overlap", INVALID_VALUE);
    if (!m || device + (rows - 1) * pitch + n > (uintptr_t)m->address + m->size)
        return misuse("a copy outside of the device's memory", INVALID_VALUE);
    struct copy made = {.store = store,
                        .hidden = m->hidden + (device - (uintptr_t)m->address),
                        .host = host,
                        .n = n,
                        .pitch = pitch,
                        .rows = rows};
    enum { MOST_LATE_BYTES = 64 << 10 };
    if (!s && store && n <= MOST_LATE_BYTES && !m->waits && !m->managed && !is_timed &&
        !copies_wait)
        s = make_late(&made);
    if (!s) {
        end_all(&late_stream);
        move_now(&made);
        return 0;
    }
    if (s != &late_stream && s->context->destroyed)
        return misuse("a stream of a context that is no more", INVALID_HANDLE);
    if (s != &late_stream && s->context != current())
        return misuse("a copy in a stream of another context", INVALID_CONTEXT);
    if (s != &late_stream && s->context != m->context)
        return misuse("a copy in a stream of another context than its memory's", INVALID_CONTEXT);
    made.gate = s->gate;
    struct copy *c = malloc(sizeof *c);
    *c = made;
    c->due = copy_due(s, n * rows);
    for (size_t at = 0; at < rows * pitch && !store && !is_timed; at += pitch)
        memset((char *)host + at, 0x5a, n);
    *s->last = c;
    s->last = &c->next;
    s->begun++;
    ncopies += s != &late_stream;
    nbytes += s != &late_stream ? (int64_t)(n * rows) : 0;
    return 0;
}

static int copy(bool store, uintptr_t device, void *host, size_t n, struct stream *s)
{
    return copy_rows(store, device, host, n, n, 1, s);
}

/* --- what has both names ----------------------------------------------------------------------
 */

#ifdef HIP
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif

/* HIP keeps the last error of each thread until the program asks for it. */
static __thread int last_error;

/* Those of CUDA are no part of Level Zero. */
#ifdef LEVEL_ZERO
#define VISIBLE hidden
#else
#define VISIBLE default
#endif
#define TEXT_(word) #word
#define TEXT(word) TEXT_(word)

#define CALL_(cuda_name, hip_name, parameters, ...)                                      \
    __attribute__((visibility(TEXT(VISIBLE)))) int NAME(cuda_name, hip_name) parameters; \
    int NAME(cuda_name, hip_name) parameters                                             \
    {                                                                                    \
        int result = 0;                                                                  \
        pthread_mutex_lock(&mutex);                                                      \
        if (is_to_fail(NAME(#cuda_name, #hip_name)))                                     \
            result = INJECTED;                                                           \
        else                                                                             \
            __VA_ARGS__                                                                  \
        if (result && result != NOT_READY)                                               \
            last_error = result;                                                         \
        pthread_mutex_unlock(&mutex);                                                    \
        return result;                                                                   \
    }

CALL_(cuStreamCreate, hipStreamCreateWithFlags, (struct stream * *stream, unsigned flags), {
    struct stream *s = calloc(1, sizeof *s);
    *s = (struct stream){.context = current(), .next = streams};
    s->last = &s->first;
    if (flags != 1 || !s->context)
        result =
            misuse("a stream without a context, or one that waits for others", INVALID_CONTEXT);
    *stream = streams = s;
    nstreams++;
})

CALL_(cuStreamDestroy_v2, hipStreamDestroy, (struct stream * stream), {
    struct stream **at = &streams;
    while (*at && *at != stream)
        at = &(*at)->next;
    if (!*at)
        result = misuse("a stream is destroyed that is none", INVALID_HANDLE);
    else {
        end_all(&late_stream);
        end_all(stream);
        *at = stream->next;
        free(stream);
        nstreams--;
    }
})

CALL_(cuEventCreate, hipEventCreateWithFlags, (struct event * *event, unsigned flags), {
    *event = calloc(1, sizeof **event);
    **event = (struct event){.next = events, .context = current()};
    events = *event;
    if (flags != 2 || !current())
        result = misuse("an event without a context, or with times", INVALID_CONTEXT);
    nevents++;
})

CALL_(cuEventDestroy_v2, hipEventDestroy, (struct event * event), {
    struct event **at = &events;
    while (*at && *at != event)
        at = &(*at)->next;
    if (!*at)
        result = misuse("an event is destroyed that is none", INVALID_HANDLE);
    else {
        *at = event->next;
        free(event);
        nevents--;
    }
})

CALL_(cuEventRecord, hipEventRecord, (struct event * event, struct stream *stream), {
    uintptr_t number = (uintptr_t)stream; /* of a default stream */
    event->defaults = number <= 2 ? (unsigned)number : 0;
    if (number <= 2)
        stream = &late_stream;
    if (event->context->destroyed)
        result = misuse("an event of a context that is no more", INVALID_HANDLE);
    else if (stream != &late_stream &&
             (event->context != stream->context || current() != stream->context))
        result = misuse("an event in a stream of another context", INVALID_HANDLE);
    event->stream = stream;
    event->after = stream->begun;
    event->gate = stream->gate;
})

CALL_(cuEventQuery, hipEventQuery, (struct event * event), {
    end_due();
    if (current() != event->context)
        result = misuse("an event of another context", INVALID_CONTEXT);
    else if (event->stream->ended < event->after || late_stream.ended < event->gate)
        result = NOT_READY;
})

CALL_(cuStreamWaitEvent, hipStreamWaitEvent,
      (struct stream * stream, struct event *event, unsigned flags), {
          static unsigned seen; /* since the program began: then both are waited for */
          seen |= event->defaults;
          if (flags || event->stream != &late_stream)
              result = misuse("a stream waits for no default stream", INVALID_VALUE);
          else if (seen == 3)
              stream->gate = event->after;
      })

CALL_(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync,
      (void *host, uintptr_t device, size_t n, struct stream *stream),
      { result = copy(false, device, host, n, stream); })

/* Within a device, or between two. */
CALL_(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync,
      (uintptr_t to, uintptr_t from, size_t n, struct stream *stream), {
          struct memory *m = memory_of(from);
          if (!m || n > m->size - (from - (uintptr_t)m->address))
              result = misuse("a copy from outside of the device's memory", INVALID_VALUE);
          else
              result = copy(true, to, m->hidden + (from - (uintptr_t)m->address), n, stream);
          if (!result)
              nbytes -= (int64_t)n;
      })

CALL_(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,
      (uintptr_t device, void *host, size_t n, struct stream *stream),
      { result = copy(true, device, host, n, stream); })

#ifdef HIP
CALL_(, hipMemcpy2DAsync,
      (char *to, size_t to_pitch, char *from, size_t from_pitch, size_t length, size_t n, int kind,
       struct stream *stream),
      {
          bool store = kind == 1;
          result = to_pitch != from_pitch
                       ? misuse("rows that are not equally far apart", INVALID_VALUE)
                       : copy_rows(store, (uintptr_t)(store ? to : from), store ? from : to, length,
                                   to_pitch, n, stream);
      })
#else
struct side {
    size_t x, y;
    int memory; /* 1: of the host, 2: of a device */
    char *host;
    uintptr_t device;
    void *array;
    size_t pitch;
};

struct rows {
    struct side from, to;
    size_t length, n;
};

CALL_(cuMemcpy2DAsync_v2, , (const struct rows *r, struct stream *stream), {
    bool store = r->to.memory == 2;
    const struct side *device = store ? &r->to : &r->from, *host = store ? &r->from : &r->to;
    if (device->memory != 2 || host->memory != 1 || device->pitch != host->pitch)
        result = misuse("rows of other memory, or not equally far apart", INVALID_VALUE);
    else
        result = copy_rows(store, device->device, host->host, r->length, r->n ? host->pitch : 0,
                           r->n, stream);
})
#endif

CALL_(cuMemcpyDtoH_v2, hipMemcpyDtoH, (void *host, uintptr_t device, size_t n),
      { result = copy(false, device, host, n, NULL); })

CALL_(cuMemcpyHtoD_v2, hipMemcpyHtoD, (uintptr_t device, void *host, size_t n),
      { result = copy(true, device, host, n, NULL); })

CALL_(cuMemHostRegister_v2, hipHostRegister, (char *memory, size_t size, unsigned flags), {
    for (size_t i = 0; i < size; i += 4096)
        __atomic_fetch_add(&memory[i], 0, __ATOMIC_RELAXED); /* there is a page for each address */
    if (flags != 1)
        result = misuse("pinned memory for one context", INVALID_VALUE);
    struct pin *p = malloc(sizeof *p);
    *p = (struct pin){memory, current(), pins};
    pins = p;
    npinned++;
})

/* Of a context, or this memory. */
static bool unpin(const struct context *context, const void *memory)
{
    bool found = false;
    for (struct pin **at = &pins; *at;) {
        struct pin *p = *at;
        if (p->context != context && p->memory != memory) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        free(p);
        npinned--;
        found = true;
    }
    return found;
}

CALL_(cuMemHostUnregister, hipHostUnregister, (void *memory), {
    if (!unpin(NULL, memory))
        result = INVALID_VALUE;
})

static int allocate(uintptr_t *address, size_t size, bool managed)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    struct memory *m = malloc(sizeof *m);
    int fd = memfd_create("device", 0);
    if (!current() || size == 0 || fd < 0 || ftruncate(fd, (off_t)whole))
        return misuse("memory without a context, or none", INVALID_CONTEXT);
    *m = (struct memory){
        .size = size, .id = ++last_id, .context = current(), .managed = managed, .next = memories};
    m->address = mmap(next_address, whole, managed ? PROT_READ | PROT_WRITE : PROT_NONE,
                      MAP_SHARED | (next_address ? MAP_FIXED : 0), fd, 0);
    next_address = NULL;
    m->hidden = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (m->address == MAP_FAILED || m->hidden == MAP_FAILED)
        return OUT_OF_MEMORY;
    memories = m;
    *address = (uintptr_t)m->address;
    return 0;
}

/* The addresses stay without access. */
static void memory_end(struct memory **at)
{
    struct memory *m = *at;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (m->size + page - 1) / page * page;
    *at = m->next;
    mmap(m->address, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
         0);
    munmap(m->hidden, whole);
    free(m);
}

/* Waits for all copies. */
CALL_(cuMemFree_v2, hipFree, (uintptr_t address), {
    struct memory **at = &memories;
    while (*at && (uintptr_t)(*at)->address != address)
        at = &(*at)->next;
    end_all(&late_stream);
    for (struct stream *s = streams; s; s = s->next)
        end_all(s);
    if (*at)
        memory_end(at);
    else
        result = misuse("memory is freed that is none", INVALID_VALUE);
})

CALL_(cuMemAlloc_v2, hipMalloc, (uintptr_t * address, size_t size),
      { result = allocate(address, size, false); })

CALL_(cuMemAllocManaged, hipMallocManaged, (uintptr_t * address, size_t size, unsigned flags), {
    (void)flags;
    result = allocate(address, size, true);
})

/* --- what has not ----------------------------------------------------------------------------- */

#ifdef HIP
static int device_now(void)
{
    return current() ? current()->device : 0;
}

CALL_(, hipGetDevice, (int *device), { *device = device_now(); })

CALL_(, hipGetDeviceCount, (int *n), { *n = NDEVICES; })

CALL_(, hipSetDevice, (int device), {
    if (device < 0 || device >= NDEVICES)
        result = INVALID_VALUE;
    else {
        depth = 1;
        stack[0] = &contexts[device];
    }
})

struct attributes {
    int type, device;
    void *on_device, *on_host;
    int managed;
    unsigned flags;
};

CALL_(, hipPointerGetAttributes, (struct attributes * a, uintptr_t at), {
    struct memory *m = memory_of(at);
    nasked++;
    if (!m)
        result = INVALID_VALUE;
    else
        *a = (struct attributes){.type = 2,
                                 .device = m->context->device,
                                 .on_device = (void *)at,
                                 .on_host = m->managed ? (void *)at : NULL,
                                 .managed = m->managed};
})

CALL_(, hipMemGetAddressRange, (void **start, size_t *size, uintptr_t at), {
    struct memory *m = memory_of(at);
    *start = m->address;
    *size = m->size;
})

__attribute__((visibility("default"))) int hipPeekAtLastError(void);
int hipPeekAtLastError(void)
{
    return last_error;
}

__attribute__((visibility("default"))) int hipGetLastError(void);
int hipGetLastError(void)
{
    int error = last_error;
    last_error = 0;
    return error;
}

__attribute__((visibility("default"))) const char *hipGetErrorString(int error);
const char *hipGetErrorString(int error)
{
    return error == INJECTED ? "an injected error" : "an error";
}
#else
CALL_(cuInit, , (unsigned flags), { (void)flags; })

CALL_(cuDeviceGetCount, , (int *n), { *n = NDEVICES; })

CALL_(cuDeviceGet, , (int *device, int ordinal), { *device = ordinal; })

CALL_(cuDevicePrimaryCtxGetState, , (int device, unsigned *flags, int *is_active), {
    (void)device;
    *flags = 0;
    *is_active = 1;
})

/* A context that was reset comes back at the same address. */
CALL_(cuDevicePrimaryCtxRetain, , (struct context * *context, int device),
      { *context = &contexts[device]; })

/* Its streams and events are no more, and its memory is not either. */
CALL_(cuDevicePrimaryCtxReset_v2, , (int device), {
    static struct context dead = {.destroyed = true};
    end_all(&late_stream);
    unpin(&contexts[device], NULL);
    for (struct stream *s = streams; s; s = s->next)
        if (s->context == &contexts[device]) {
            end_all(s);
            s->context = &dead;
            nstreams--;
        }
    for (struct event *e = events; e; e = e->next)
        if (e->context == &contexts[device]) {
            e->context = &dead;
            nevents--;
        }
    for (struct memory **at = &memories; *at;)
        if ((*at)->context == &contexts[device])
            memory_end(at);
        else
            at = &(*at)->next;
})

CALL_(cuCtxSetCurrent, , (struct context * context), {
    depth = context ? 1 : 0;
    stack[0] = context;
})

CALL_(cuCtxPushCurrent_v2, , (struct context * context), {
    if (!context)
        result = misuse("no context is made current", INVALID_CONTEXT);
    else
        stack[depth++] = context;
})

CALL_(cuCtxPopCurrent_v2, , (struct context * *context), {
    if (depth == 0)
        result = misuse("no context is current", INVALID_CONTEXT);
    else
        *context = stack[--depth];
})

CALL_(cuPointerGetAttributes, , (unsigned n, const int *which, void **data, uintptr_t at), {
    struct memory *m = memory_of(at);
    nasked++;
    if (to_fail && strcmp(to_fail, "cuInit") == 0)
        result = NOT_INITIALIZED;
    for (unsigned i = 0; i < n; i++)
        switch (which[i]) {
        case 1:
            *(struct context **)data[i] = m ? m->context : NULL;
            break;
        case 2:
            *(unsigned *)data[i] = m ? 2 : 0;
            break;
        case 6:
            *(bool *)data[i] = m && m->waits;
            break;
        case 7:
            *(uint64_t *)data[i] = m ? m->id : 0;
            break;
        case 8:
            *(bool *)data[i] = m && m->managed;
            break;
        case 9:
            *(int *)data[i] = m ? m->context->device : -2;
            break;
        case 11:
            *(char **)data[i] = m ? m->address : NULL;
            break;
        case 12:
            *(size_t *)data[i] = m ? m->size : 0;
            break;
        default:
            result = misuse("an attribute that is not known", INVALID_VALUE);
        }
})

CALL_(cuPointerSetAttribute, , (const int *value, int which, uintptr_t at), {
    struct memory *m = memory_of(at);
    if (!m || which != 6)
        result = misuse("an attribute that cannot be set", INVALID_VALUE);
    else
        m->waits = *value;
})

CALL_(cuGetErrorString, , (int error, const char **words),
      { *words = error == INJECTED ? "an injected error" : "an error"; })
#endif

#define FOR_TESTS(type, name, parameters)                                      \
    __attribute__((visibility("default"))) type nbc_runtime_##name parameters; \
    type nbc_runtime_##name parameters

/* Where the next memory is to be, NULL: anywhere. */
FOR_TESTS(void, place, (void *address))
{
    next_address = address;
}

/* Copies of streams so far. */
FOR_TESTS(int64_t, copies, (void))
{
    return ncopies;
}

/* And their bytes between devices and the host. */
FOR_TESTS(int64_t, bytes, (void))
{
    return nbytes;
}

/* Copies of streams that have not ended. */
FOR_TESTS(int64_t, under_way, (void))
{
    int64_t n = 0;
    for (struct stream *s = streams; s; s = s->next)
        n += (int64_t)(s->begun - s->ended);
    return n;
}

/* And questions what memory is. */
FOR_TESTS(int64_t, asked, (void))
{
    return nasked;
}

/* For an MPI that takes addresses of a device: how far the hidden ones are; 0 if it is none. */
FOR_TESTS(intptr_t, to_hidden, (uintptr_t at))
{
    pthread_mutex_lock(&mutex);
    struct memory *m = memory_of(at);
    intptr_t distance = m && !m->managed ? m->hidden - m->address : 0;
    if (distance && current() != m->context)
        misuse("the MPI gets memory of a context that is not current", 0);
    pthread_mutex_unlock(&mutex);
    return distance;
}

__attribute__((destructor)) static void report(void)
{
    if (nstreams || nevents || npinned || nmisuses)
        fprintf(stderr, "runtime: left over: %d streams, %d events, %d pinned; %d misuses\n",
                nstreams, nevents, npinned, nmisuses);
    if ((nstreams || nevents || npinned || nmisuses) && !to_fail)
        _exit(77);
}
