/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "below/detect.h"
#include "below/next.h"
#include "below/quirks.h"
#include "below/runtime.h"

static const uintptr_t yes = 1, no = 0;
const uintptr_t *nbc_device_word = &yes;

static char fault[200];

const char *nbc_device_fault(void)
{
    return fault;
}

/* --- the runtimes ----------------------------------------------------------------------------- */

enum { NON_BLOCKING = 1, NO_TIMING = 2, PORTABLE = 1 }; /* in CUDA and HIP */

static const char *lacking; /* the function that resolve has not found last */

static bool resolve(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    lacking = found ? NULL : name;
    return found;
}

/* CUDA_MEMCPY2D */
struct cuda_side {
    size_t x, y;
    int memory;
    const void *host;
    uintptr_t device;
    void *array;
    size_t pitch;
};

struct cuda_rows {
    struct cuda_side from, to;
    size_t length, n;
};

#define CUDA(F)                                                                                  \
    F(int, get_attributes, "cuPointerGetAttributes",                                             \
      (unsigned n, int *which, void **data, uintptr_t at))                                       \
    F(int, copy_rows, "cuMemcpy2DAsync_v2", (const struct cuda_rows *rows, void *stream))        \
    F(int, push, "cuCtxPushCurrent_v2", (void *context))                                         \
    F(int, pop, "cuCtxPopCurrent_v2", (void **context))                                          \
    F(int, device_get, "cuDeviceGet", (int *device, int ordinal))                                \
    F(int, primary_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))             \
    F(int, primary_state, "cuDevicePrimaryCtxGetState",                                          \
      (int device, unsigned *flags, int *is_active))                                             \
    F(int, set_attribute, "cuPointerSetAttribute", (const void *value, int which, uintptr_t at)) \
    F(int, wait_event, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags))         \
    F(int, allocate, "cuMemAlloc_v2", (uintptr_t * at, size_t size))                             \
    F(int, release, "cuMemFree_v2", (uintptr_t at))                                              \
    F(int, error_string, "cuGetErrorString", (int error, const char **words))

NBC_RUNTIME_OWN(CUDA, cuda)

/* Memory that is mapped by addresses (cuMemMap) and that of pools has no context: it is used in its
 * device's own. That is retained once, and again after a reset. It is not released: after a reset
 * this would take a reference of the program's. */
enum { MOST_PRIMARY = 64 };

static void *cuda_primary(int ordinal)
{
    static void *primary[MOST_PRIMARY];
    unsigned flags;
    int device, is_active;
    if (ordinal < 0 || ordinal >= MOST_PRIMARY || cuda.device_get(&device, ordinal) ||
        cuda.primary_state(device, &flags, &is_active))
        return NULL;
    if ((!primary[ordinal] || !is_active) && cuda.primary_retain(&primary[ordinal], device))
        primary[ordinal] = NULL;
    return primary[ordinal];
}

/* Whether no question has an answer: the program has not initialized the driver, or has ended it,
 * or there is no GPU. */
static bool cuda_is_off(int error)
{
    enum { NOT_INITIALIZED = 3, DEINITIALIZED = 4, STUB_LIBRARY = 34, NO_DEVICE = 100 };
    return error == NOT_INITIALIZED || error == DEINITIALIZED || error == STUB_LIBRARY ||
           error == NO_DEVICE;
}

static bool cuda_locate(uintptr_t at, struct nbc_place *p)
{
    enum { CONTEXT = 1, TYPE, WAITS = 6, MANAGED = 8, ORDINAL, START = 11, SIZE, N = 7 };
    enum { DEVICE = 2 };
    int which[N] = {CONTEXT, TYPE, MANAGED, ORDINAL, START, SIZE, WAITS}, ordinal = 0;
    unsigned type = 0, managed = 0, waits = 0;
    void *data[N] = {&p->context, &type, &managed, &ordinal, &p->start, &p->size, &waits};
    *p = (struct nbc_place){0};
    int error = cuda.get_attributes(N, which, data, at);
    if (error && !cuda_is_off(error)) /* may refuse the last one for memory that has not got it */
        error = cuda.get_attributes(N - 1, which, data, at);
    if (error || !type)
        return false;
    p->device = type == DEVICE && !(managed & 0xff);
    p->waits = waits & 0xff;
    if (p->device && !p->context)
        p->context = cuda_primary(ordinal);
    return true;
}

/* Sets *id to what memory has as long as it is allocated, and no other memory ever has; to 0 if
 * there is none. Returns false if the driver does not tell. */
static bool cuda_memory_id(uintptr_t at, uint64_t *id)
{
    int which = 7; /* BUFFER_ID */
    void *data = id;
    *id = 0;
    return !cuda.get_attributes(1, &which, &data, at);
}

/* cuMemcpy and cudaMemcpy to a device return before the data is there, if it comes from memory that
 * is not pinned. Sets the attribute of the memory that makes them wait. Memory of pools does not
 * have it. */
static void cuda_make_wait(uintptr_t at)
{
    enum { SYNC_MEMOPS = 6 };
    const int value = 1;
    cuda.set_attribute(&value, SYNC_MEMOPS, at);
}

static int cuda_enter(void *context, void **before)
{
    *before = NULL;
    return cuda.push(context);
}

static void cuda_leave(void *before)
{
    cuda.pop(&before);
}

static int cuda_copy_rows(bool store, const struct nbc_rows *rows, void *stream)
{
    enum { HOST = 1, DEVICE = 2 };
    size_t pitch = (size_t)rows->pitch;
    struct cuda_side host = {.memory = HOST, .host = (void *)rows->on_host, .pitch = pitch};
    struct cuda_side device = {.memory = DEVICE, .device = rows->on_device, .pitch = pitch};
    struct cuda_rows r = {.from = store ? host : device,
                          .to = store ? device : host,
                          .length = (size_t)rows->length,
                          .n = (size_t)rows->n};
    return cuda.copy_rows(&r, stream);
}

static const char *cuda_words(int error)
{
    const char *words;
    return cuda.error_string(error, &words) ? "an unknown error" : words;
}

struct hip_attributes {
    int type, device;
    void *on_device, *on_host;
    int managed;
    unsigned flags;
    void *room[8]; /* should it grow */
};

#define HIP(F)                                                                                   \
    F(int, get_attributes, "hipPointerGetAttributes", (struct hip_attributes * a, uintptr_t at)) \
    F(int, get_range, "hipMemGetAddressRange", (void **start, size_t *size, uintptr_t at))       \
    F(int, copy_rows, "hipMemcpy2DAsync",                                                        \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t length, size_t n,  \
       int kind, void *stream))                                                                  \
    F(int, get_device, "hipGetDevice", (int *device))                                            \
    F(int, set_device, "hipSetDevice", (int device))                                             \
    F(const char *, error_string, "hipGetErrorString", (int error))                              \
    F(int, peek, "hipPeekAtLastError", (void))                                                   \
    F(int, take, "hipGetLastError", (void))

NBC_RUNTIME_OWN(HIP, hip)

/* The numbers of the types differ between the versions of HIP. A device's number stands for a
 * context. */
static bool hip_locate(uintptr_t at, struct nbc_place *p)
{
    struct hip_attributes a = {0};
    void *start = NULL;
    int before = hip.peek(), error = hip.get_attributes(&a, at);
    *p = (struct nbc_place){0};
    if (error && !before)
        hip.take(); /* memory of the host is an error, which the program would find */
    if (error || (!a.on_device && !a.on_host))
        return false;
    p->device = a.on_device && !a.on_host && !a.managed;
    p->waits = true;
    p->context = (void *)(intptr_t)(a.device + 1);
    if (p->device && !hip.get_range(&start, &p->size, at))
        p->start = (uintptr_t)start;
    return true;
}

static int hip_enter(void *context, void **before)
{
    int device = 0, error = hip.get_device(&device);
    *before = (void *)(intptr_t)device;
    return error ? error : hip.set_device((int)(intptr_t)context - 1);
}

static void hip_leave(void *before)
{
    hip.set_device((int)(intptr_t)before);
}

static int hip_copy_rows(bool store, const struct nbc_rows *rows, void *stream)
{
    enum { TO_DEVICE = 1, TO_HOST = 2 };
    void *host = (void *)rows->on_host, *device = (void *)rows->on_device;
    size_t pitch = (size_t)rows->pitch;
    return hip.copy_rows(store ? device : host, pitch, store ? host : device, pitch,
                         (size_t)rows->length, (size_t)rows->n, store ? TO_DEVICE : TO_HOST,
                         stream);
}

static const char *hip_words(int error)
{
    return hip.error_string(error);
}

static struct nbc_runtime cuda_and_hip[] = {
    {.library = "libcuda.so", /* a program may open it by this name: then it has no other */
     .names = {"cuStreamCreate", "cuStreamDestroy_v2", "cuEventCreate", "cuEventDestroy_v2",
               "cuEventRecord", "cuEventQuery", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
               "cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemcpyDtoDAsync_v2"},
     .aware = {{"MPIX_Query_cuda_support", NULL}, 0, 0},
     .own = &cuda,
     .own_names = cuda_names,
     .locate = cuda_locate,
     .enter = cuda_enter,
     .leave = cuda_leave,
     .copy_rows = cuda_copy_rows,
     .rows_name = "cuMemcpy2DAsync_v2",
     .words = cuda_words},
    {.library = "libamdhip64.so",
     .names = {"hipStreamCreateWithFlags", "hipStreamDestroy", "hipEventCreateWithFlags",
               "hipEventDestroy", "hipEventRecord", "hipEventQuery", "hipMemcpyDtoHAsync",
               "hipMemcpyHtoDAsync", "hipHostRegister", "hipHostUnregister", "hipMemcpyDtoDAsync"},
     .aware = {{"MPIX_Query_rocm_support", "MPIX_Query_hip_support"}, 2, 0},
     .own = &hip,
     .own_names = hip_names,
     .locate = hip_locate,
     .enter = hip_enter,
     .leave = hip_leave,
     .copy_rows = hip_copy_rows,
     .rows_name = "hipMemcpy2DAsync",
     .words = hip_words},
};

static struct nbc_runtime *const runtimes[] = {&cuda_and_hip[0], &cuda_and_hip[1], &nbc_level_zero};

enum { NRUNTIMES = sizeof runtimes / sizeof *runtimes };

/* --- finding them ----------------------------------------------------------------------------- */

/* The files of the runtimes among those that are loaded. */
struct search {
    unsigned long long added; /* libraries ever loaded */
    char file[NRUNTIMES][1024];
};

static unsigned long long added_before;

/* Called for each library; the first call tells whether there are new ones. */
static int see_library(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *s = context;
    (void)size;
    s->added = info->dlpi_adds;
    if (s->added == added_before)
        return 1;
    const char *name = nbc_base_name(info->dlpi_name);
    for (int i = 0; i < NRUNTIMES; i++)
        if (strncmp(name, runtimes[i]->library, strlen(runtimes[i]->library)) == 0)
            snprintf(s->file[i], sizeof s->file[i], "%s", info->dlpi_name);
    return 0;
}

/* The C library appends a library to its list when it loads it. A small one of its own, which
 * hardly a program uses, marks the end of the list: it is loaded again when others have come after
 * it. */
static struct {
    void *library;
    struct link_map *entry; /* NULL: the end is not marked */
    bool given_up;
} mark;

static void mark_take(void)
{
    if (mark.library)
        dlclose(mark.library);
    mark.library = NULL;
    mark.entry = NULL;
}

static void mark_end(void)
{
    static const char *const names[] = {"libBrokenLocale.so.1", "libanl.so.1"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !mark.given_up; i++) {
        mark_take();
        mark.library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (mark.library && !dlinfo(mark.library, RTLD_DI_LINKMAP, &mark.entry) &&
            !mark.entry->l_next)
            return;
    }
    mark_take();
    mark.given_up = true;
}

static bool runtime_resolve(struct nbc_runtime *r, const char *file)
{
    void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    bool ok = library;
    for (int i = 0; i < NBC_NFUNCTIONS && ok; i++)
        ok = !r->names[i] || r->any[i] || resolve(library, r->names[i], &r->any[i]);
    for (int i = 0; r->own_names[i] && ok; i++)
        ok = resolve(library, r->own_names[i], (void **)r->own + i);
    r->is_refused = library && !ok;
    if (r->is_refused) {
        fprintf(stderr, "nbcshim: GPU memory is not supported with %s, which lacks %s\n", file,
                lacking);
        dlclose(library);
    }
    return ok;
}

static bool found_any;

static void look(void)
{
    struct search s;
    for (int i = 0; i < NRUNTIMES; i++)
        s.file[i][0] = '\0';
    dl_iterate_phdr(see_library, &s);
    if (s.added == added_before)
        return;
    added_before = s.added;
    for (int i = 0; i < NRUNTIMES; i++)
        if (!runtimes[i]->found && !runtimes[i]->is_refused && s.file[i][0] &&
            runtime_resolve(runtimes[i], s.file[i]))
            found_any = runtimes[i]->found = true;
}

/* The end is marked first: what is loaded meanwhile is seen next time. */
bool nbc_device_look(void)
{
    if (mark.entry && !mark.entry->l_next)
        return found_any;
    mark_end();
    look();
    nbc_device_word = found_any || !mark.entry ? &yes : (const uintptr_t *)&mark.entry->l_next;
    return found_any;
}

void nbc_device_set_up(bool off, bool level_zero)
{
    if (level_zero)
        nbc_level_zero.is_refused = false;
    if (off)
        nbc_device_word = &no;
}

/* --- what the MPI takes ----------------------------------------------------------------------- */

/* Asks MPICH, of which versions before 4.1 do not know HIP's number and raise an error. Returns
 * whether there is an answer. */
static bool mpi_answers(int number, int *answer)
{
    int (*query)(int number, int *answer), initialized = 0;
    MPI_Errhandler kept[2];
    NEXT(Initialized)(&initialized);
    if (!initialized || !resolve(RTLD_DEFAULT, "MPIX_GPU_query_support", &query))
        return false;
    nbc_quirks_mute(kept);
    int error = query(number, answer);
    nbc_quirks_unmute(kept);
    return !error;
}

/* The functions with names come last: that of MPICH 3.4.1 ends the program. */
static bool mpi_says(const struct nbc_aware *a)
{
    int answer = 0, (*query)(void);
    if (mpi_answers(a->number, &answer))
        return answer;
    for (int i = 0; i < 2 && a->names[i]; i++)
        if (resolve(RTLD_DEFAULT, a->names[i], &query))
            return query() == 1;
    return false;
}

static bool mpi_takes(struct nbc_runtime *r)
{
    if (!r->aware.asked)
        r->aware.asked = mpi_says(&r->aware) ? 2 : 1;
    return r->aware.asked == 2;
}

/* --- devices ---------------------------------------------------------------------------------- */

struct nbc_device_copy {
    struct nbc_device *device;
    void *event;
    const char *function; /* that has failed: what is under way is waited for all the same */
    int error;
    int64_t settles;              /* of the device when it started */
    struct nbc_device_copy *next; /* idle */
};

struct nbc_device {
    struct nbc_runtime *runtime;
    void *context;
    void *stream[2]; /* for fetches and stores; NULL: not yet */
    uintptr_t mark;  /* memory that ends with the context; 0: none */
    uint64_t mark_id;
    bool is_marked;           /* or that failed */
    bool unsettled;           /* copies should wait, but could not be made to */
    int64_t settles, settled; /* how often copies had to wait for what the program has written, and
                               * how often that is known to be over */
    struct nbc_device_copy *idle;
    struct nbc_device *next;
};

static struct nbc_device *devices;

static const char *last_function;
static int last_error;

static bool failed(const struct nbc_runtime *r, const char *function, int error)
{
    last_function = function;
    last_error = error;
    if (error)
        snprintf(fault, sizeof fault, "%s failed: %s (%d)", function, r->words(error), error);
    return error;
}

#define NAME_OF(r, function) \
    (r)->names[offsetof(struct nbc_runtime_functions, function) / sizeof(void *)]

/* Calls a function that all runtimes have. Whether it has failed. */
#define FAILS(r, function, ...) failed(r, NAME_OF(r, function), (r)->f.function(__VA_ARGS__))

static struct nbc_device *device_of(struct nbc_runtime *r, void *context)
{
    struct nbc_device *d = devices;
    while (d && (d->runtime != r || d->context != context))
        d = d->next;
    if (d || !(d = calloc(1, sizeof *d)))
        return d;
    *d = (struct nbc_device){.runtime = r, .context = context, .next = devices};
    return devices = d;
}

/* A system call that reads a mask of signals, and then refuses what to do with it. */
static bool is_readable(uintptr_t at)
{
    return !syscall(SYS_rt_sigprocmask, -1, at & ~(uintptr_t)7, NULL, 8) || errno != EFAULT;
}

/* *p: if a device's, where. */
static enum nbc_memory memory_at(uintptr_t at, struct nbc_runtime **runtime, struct nbc_place *p)
{
    for (int i = 0; i < NRUNTIMES; i++) {
        *runtime = runtimes[i];
        if (runtimes[i]->found && runtimes[i]->locate(at, p))
            return p->device ? NBC_MEMORY_DEVICE : NBC_MEMORY_HOST;
    }
    return is_readable(at) ? NBC_MEMORY_HOST : NBC_MEMORY_NONE;
}

bool nbc_device_mpi_takes(const struct nbc_device *d)
{
    for (int i = 0; i < NRUNTIMES && !d; i++)
        if (mpi_takes(runtimes[i]))
            return true;
    return d && mpi_takes(d->runtime);
}

enum nbc_memory nbc_device_find(uintptr_t first, uintptr_t last, struct nbc_device **device,
                                bool *waits)
{
    enum { SMALLEST_PAGE = 4096 };
    struct nbc_runtime *runtime, *other;
    struct nbc_place p = {0}, end;
    enum nbc_memory memory = memory_at(first, &runtime, &p);
    bool inside = memory == NBC_MEMORY_DEVICE ? p.size > 0 && last - p.start < p.size
                                              : first / SMALLEST_PAGE == last / SMALLEST_PAGE;
    *device = NULL;
    if (!inside && memory_at(last, &other, &end) != memory)
        return NBC_MEMORY_DIFFERS;
    if (memory == NBC_MEMORY_DEVICE)
        *device = device_of(runtime, p.context);
    *waits = p.waits && !(*device && (*device)->unsettled);
    return memory == NBC_MEMORY_DEVICE && !*device ? NBC_MEMORY_NONE : memory;
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Whether the context has been destroyed, and perhaps made again at the same address: CUDA's driver
 * crashes if it is given such a context, or streams and events of it, but it tells whether memory
 * is there; if it does not, returns `unknown`. HIP returns an error. */
static bool is_gone(const struct nbc_device *d, bool unknown)
{
    uint64_t id;
    if (!d->mark)
        return false;
    return cuda_memory_id(d->mark, &id) ? id != d->mark_id : unknown;
}

/* In the device's context. */
static void mark_context(struct nbc_device *d)
{
    d->is_marked = true;
    if (d->runtime->locate != cuda_locate || cuda.allocate(&d->mark, 1) ||
        cuda_memory_id(d->mark, &d->mark_id))
        return;
    cuda.release(d->mark);
    d->mark = 0;
}

bool nbc_device_enter(struct nbc_device *d, void **before)
{
    if (failed(d->runtime, "making a device's context current",
               d->runtime->enter(d->context, before)))
        return false;
    if (!d->is_marked)
        mark_context(d);
    return true;
}

static struct nbc_device_copy *copy_new(struct nbc_device *d)
{
    struct nbc_device_copy *copy = d->idle;
    if (copy) {
        d->idle = copy->next;
        return copy;
    }
    copy = calloc(1, sizeof *copy);
    if (!copy)
        snprintf(fault, sizeof fault, "no memory");
    if (!copy || FAILS(d->runtime, event_new, &copy->event, NO_TIMING)) {
        free(copy);
        return NULL;
    }
    copy->device = d;
    return copy;
}

static void copy_give(struct nbc_device_copy *copy)
{
    copy->next = copy->device->idle;
    copy->device->idle = copy;
}

/* The copy is over when what is under way is; then it fails with these words. */
static void keep_failure(struct nbc_device_copy *copy)
{
    copy->function = last_function;
    copy->error = last_error;
}

static bool copy_run(struct nbc_device *d, bool store, uintptr_t device, uintptr_t host, int64_t n)
{
    const struct nbc_runtime *r = d->runtime;
    return !(store ? FAILS(r, store, device, (void *)host, (size_t)n, d->stream[1])
                   : FAILS(r, fetch, (void *)host, device, (size_t)n, d->stream[0]));
}

static bool copy_rows(struct nbc_device *d, bool store, const struct nbc_rows *rows)
{
    enum { MOST_PITCH = INT32_MAX };
    const struct nbc_runtime *r = d->runtime;
    if (rows->n > 1 && rows->pitch >= rows->length && rows->pitch <= MOST_PITCH)
        return !failed(r, r->rows_name, r->copy_rows(store, rows, d->stream[store]));
    for (int64_t i = 0; i < rows->n; i++) {
        uintptr_t at = (uintptr_t)(i * rows->pitch);
        if (!copy_run(d, store, rows->on_device + at, rows->on_host + at, rows->length))
            return false;
    }
    return true;
}

/* Whether the runs of an element are rows; sets how far apart. */
static bool is_regular(const struct nbc_elements *e, int64_t *pitch)
{
    *pitch = e->nruns > 1 ? e->runs[1].at - e->runs[0].at : e->extent;
    for (int k = 1; k < e->nruns; k++)
        if (e->runs[k].length != e->runs->length || e->runs[k].at - e->runs[k - 1].at != *pitch)
            return false;
    return e->nruns > 0;
}

static struct nbc_rows rows_at(const struct nbc_elements *e, int64_t at, int64_t length,
                               int64_t pitch, int64_t n)
{
    return (struct nbc_rows){.on_device = e->on_device + (uintptr_t)at,
                             .on_host = e->on_host + (uintptr_t)at,
                             .length = length,
                             .pitch = pitch,
                             .n = n};
}

/* In few copies, unless it is within the device: of everything, if that is rows; or else of each
 * element, or of the same run of all elements. */
static bool copy_elements(struct nbc_device *d, bool store, const struct nbc_elements *e)
{
    int64_t pitch, nruns = e->nruns;
    if (e->within)
        return !FAILS(d->runtime, move, e->on_device, e->on_host, (size_t)e->runs->length,
                      d->stream[1]);
    bool regular = is_regular(e, &pitch), whole = regular && e->extent == nruns * pitch;
    bool by_element = regular && e->count <= nruns;
    int64_t ncopies = whole ? 1 : by_element ? e->count : nruns;
    for (int64_t i = 0; i < ncopies; i++) {
        const struct nbc_bytes_run *r = whole || by_element ? e->runs : &e->runs[i];
        struct nbc_rows rows = whole ? rows_at(e, r->at, r->length, pitch, nruns * e->count)
                               : by_element
                                   ? rows_at(e, i * e->extent + r->at, r->length, pitch, nruns)
                                   : rows_at(e, r->at, r->length, e->extent, e->count);
        if (!copy_rows(d, store, &rows))
            return false;
    }
    return true;
}

/* In the device's context. */
static bool make_stream(struct nbc_device *d, bool store)
{
    void **stream = &d->stream[store];
    return *stream || !FAILS(d->runtime, stream_new, stream, NON_BLOCKING);
}

/* In the device's context. */
static struct nbc_device_copy *copy_start(struct nbc_device *d, bool store,
                                          const struct nbc_elements *e)
{
    if (!make_stream(d, store))
        return NULL;
    struct nbc_device_copy *copy = copy_new(d);
    if (!copy)
        return NULL;
    copy->settles = d->settles;
    copy->error = 0;
    if (!copy_elements(d, store, e))
        keep_failure(copy);
    for (int i = 0; i < 2; i++) {
        if (!FAILS(d->runtime, event_record, copy->event, d->stream[store]))
            return copy;
        keep_failure(copy);
    }
    copy_give(copy);
    return NULL;
}

/* Whether a function has failed because the context was destroyed. */
static bool is_stale(void)
{
    enum { INVALID_CONTEXT = 201, INVALID_HANDLE = 400, CONTEXT_IS_DESTROYED = 709 };
    return last_error == INVALID_CONTEXT || last_error == INVALID_HANDLE ||
           last_error == CONTEXT_IS_DESTROYED;
}

/* in: the device's context, with the events of the copies, exists, and is current. */
static void idle_free(struct nbc_device *d, bool in)
{
    for (struct nbc_device_copy *copy; (copy = d->idle);) {
        d->idle = copy->next;
        if (in)
            d->runtime->f.event_free(copy->event);
        free(copy);
    }
}

static void device_forget(struct nbc_device *d)
{
    d->settled = d->settles;
    d->stream[0] = d->stream[1] = NULL;
    d->mark = 0;
    d->is_marked = false;
    idle_free(d, false);
}

/* Enters a device for new work, also if its context has been made again. */
static bool device_enter_anew(struct nbc_device *d, void **before)
{
    if (is_gone(d, false))
        device_forget(d);
    return nbc_device_enter(d, before);
}

struct nbc_device_copy *nbc_device_start(struct nbc_device *d, bool store,
                                         const struct nbc_elements *e)
{
    void *before;
    if (!device_enter_anew(d, &before))
        return NULL;
    struct nbc_device_copy *copy = copy_start(d, store, e);
    if (!copy && is_stale()) {
        device_forget(d);
        copy = copy_start(d, store, e);
    }
    d->runtime->leave(before);
    return copy;
}

/* In the device's context: the streams wait for a default stream of the program. */
static bool follow(struct nbc_device *d, void *stream)
{
    const struct nbc_runtime *r = d->runtime;
    struct nbc_device_copy *copy = copy_new(d);
    bool ok = copy && make_stream(d, false) && make_stream(d, true) &&
              !FAILS(r, event_record, copy->event, stream) &&
              !failed(r, "cuStreamWaitEvent", cuda.wait_event(d->stream[0], copy->event, 0)) &&
              !failed(r, "cuStreamWaitEvent", cuda.wait_event(d->stream[1], copy->event, 0));
    if (copy)
        copy_give(copy);
    return ok;
}

bool nbc_device_settle(struct nbc_device *d, uintptr_t at)
{
    void *const legacy = (void *)1, *const per_thread = (void *)2;
    void *before;
    cuda_make_wait(at);
    d->unsettled = true;
    if (!device_enter_anew(d, &before))
        return false;
    d->unsettled = !follow(d, legacy) || !follow(d, per_thread);
    d->settles++;
    d->runtime->leave(before);
    return !d->unsettled;
}

bool nbc_device_is_settled(const struct nbc_device *d)
{
    return d->settled == d->settles;
}

/* Returns whether the runtime answers. */
static bool copy_ask(const struct nbc_device_copy *copy, bool *over)
{
    const struct nbc_runtime *r = copy->device->runtime;
    void *before;
    if (!nbc_device_enter(copy->device, &before))
        return false;
    int error = r->f.event_query(copy->event);
    r->leave(before);
    *over = !error;
    return error == NBC_NOT_READY || !failed(r, NAME_OF(r, event_query), error);
}

/* After a failure the runtime is asked on until the copy has ended. If it fails again, nobody can
 * tell. */
bool nbc_device_test(struct nbc_device_copy *copy, bool *over)
{
    struct nbc_device *d = copy->device;
    *over = false;
    if (!copy_ask(copy, over)) {
        *over = copy->error;
        keep_failure(copy);
    } else if (*over && copy->settles > d->settled)
        d->settled = copy->settles;
    if (*over)
        copy_give(copy);
    return !*over || !failed(d->runtime, copy->function, copy->error);
}

void nbc_device_leave(struct nbc_device *d, void *before)
{
    d->runtime->leave(before);
}

bool nbc_device_makes_memory(const struct nbc_device *d)
{
    return d && d->runtime->memory_new;
}

static bool pin(struct nbc_device *d, void *memory, size_t size)
{
    void *before;
    if (!nbc_device_enter(d, &before))
        return false;
    int error = d->runtime->f.pin(memory, size, PORTABLE);
    d->runtime->leave(before);
    return !error;
}

void *nbc_device_memory_new(struct nbc_device *d, size_t size, struct nbc_device **owner)
{
    enum { PAGE = 4096, HUGE = 2 << 20 }; /* the alignment, and that from this size on */
    bool makes = nbc_device_makes_memory(d);
    void *memory =
        makes ? d->runtime->memory_new(size) : aligned_alloc(size < HUGE ? PAGE : HUGE, size);
    if (memory && !makes && size >= HUGE)
        madvise(memory, size, MADV_HUGEPAGE); /* if it may be had */
    *owner = memory && (makes || (d && pin(d, memory, size))) ? d : NULL;
    return memory;
}

bool nbc_device_memory_drop(struct nbc_device *owner, void *memory)
{
    void *before;
    if (nbc_device_makes_memory(owner)) {
        owner->runtime->memory_free(memory);
        return true;
    }
    if (!is_gone(owner, true) && nbc_device_enter(owner, &before)) {
        owner->runtime->f.unpin(memory);
        owner->runtime->leave(before);
    }
    return false;
}

static void device_free(struct nbc_device *d)
{
    void *before;
    bool in = !is_gone(d, true) && nbc_device_enter(d, &before);
    idle_free(d, in);
    for (int i = 0; i < 2 && in; i++)
        if (d->stream[i])
            d->runtime->f.stream_free(d->stream[i]);
    if (in && d->mark)
        cuda.release(d->mark);
    if (in)
        d->runtime->leave(before);
    free(d);
}

void nbc_device_cleanup(void)
{
    for (struct nbc_device *d; (d = devices);) {
        devices = d->next;
        device_free(d);
    }
    for (int i = 0; i < NRUNTIMES; i++)
        if (runtimes[i]->found && runtimes[i]->end)
            runtimes[i]->end();
    mark_take();
    nbc_device_word = &yes;
}
