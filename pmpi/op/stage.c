/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "op/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/in_mpi.h"
#include "base/errors.h"
#include "base/settings.h"
#include "base/state.h"
#include "op/types.h"

#include "sched.h"
#include "staged.h"

int64_t nbc_stage_starts[2];
int64_t nbc_stage_bytes[2];
int64_t nbc_stage_time;

enum {
    PIECE = 512 << 10,     /* bytes of a copy */
    PAGE = 4096,           /* blocks of the pool have this size at least */
    STEP = 16 << 20,       /* sizes are powers of two below this, and multiples of this above */
    KEPT_MOST = 256 << 20, /* bytes of the blocks in the pool */
    FAR = 4096,            /* bytes of a gap that takes no memory in a block */
    SPARSE = 64 << 20,     /* a block of this size, and twice its data, takes memory for its data */
    ALIGN = 64 /* data has the place in a block that it has in the buffer, modulo this */
};

/* --- the pool of pinned memory ---------------------------------------------------------------- */

struct block {
    void *memory;
    size_t size;
    struct nbc_device *owner; /* see nbc_device_memory_new */
    bool sparse;              /* used once */
    struct block *next;
};

static struct block *pool;
static size_t pool_bytes;

static size_t block_size(size_t needed)
{
    size_t size = PAGE;
    while (size < needed && size < STEP)
        size *= 2;
    return needed <= size ? size : (needed + STEP - 1) / STEP * STEP;
}

static void block_free(struct block *b)
{
    if (b->sparse)
        munmap(b->memory, b->size);
    else if (!b->owner || !nbc_device_memory_drop(b->owner, b->memory))
        free(b->memory);
    free(b);
}

/* Memory of pages that exist when they are used. */
static void *sparse_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static struct block *block_new(size_t size, struct nbc_device *device, bool sparse)
{
    struct block *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->size = size;
    b->sparse = sparse;
    b->memory = sparse ? sparse_memory(size) : nbc_device_memory_new(device, size, &b->owner);
    if (b->memory)
        return b;
    free(b);
    return NULL;
}

static struct block *block_out(struct block **at)
{
    struct block *b = *at;
    *at = b->next;
    pool_bytes -= b->size;
    return b;
}

static struct block *block_take(size_t needed, struct nbc_device *device)
{
    size_t size = block_size(needed);
    bool makes = nbc_device_makes_memory(device);
    for (struct block **at = &pool; *at; at = &(*at)->next)
        if ((*at)->size >= size && (*at)->size / 2 <= size &&
            (!makes || nbc_device_makes_memory((*at)->owner)))
            return block_out(at);
    return size < needed ? NULL : block_new(size, device, false);
}

/* The oldest make room; the newest is always kept. */
static void block_give(struct block *b)
{
    if (b->sparse) {
        block_free(b);
        return;
    }
    b->next = pool;
    pool = b;
    pool_bytes += b->size;
    while (pool_bytes > KEPT_MOST && pool->next) {
        struct block **last = &pool->next;
        while ((*last)->next)
            last = &(*last)->next;
        block_free(block_out(last));
    }
}

/* --- a staged run ----------------------------------------------------------------------------- */

struct nbc_stage {
    struct nbc_exec host; /* the execution without staging */
    bool is_on;
    bool lost;    /* a copy has failed, and may be under way still: the block is not used again */
    int error[2]; /* of a buffer that is no memory */
    struct nbc_device *device[2]; /* of the send and the receive buffer; NULL: it is not on one */
    struct nbc_device *direct;    /* of all buffers on devices, which the MPI gets; or NULL */
    bool several;                 /* devices */
    bool is_pending;              /* counted in `direct` */
    uintptr_t base[2];            /* of the program's buffers */
    struct block *block;
    void *memory; /* of the execution */
    size_t room;
};

/* Blocks of failed copies. The list keeps them from being reported as a leak. */
static struct block *lost;

static int explain_buffer(int buf, enum nbc_memory memory, uintptr_t first)
{
    char text[200];
    snprintf(text, sizeof text, "the %s buffer, whose data begins at %#llx, %s",
             buf == NBC_BUF_SEND ? "send" : "receive", (unsigned long long)first,
             memory == NBC_MEMORY_DIFFERS ? "begins and ends in different kinds of memory"
                                          : "is neither memory of the host nor of a device");
    return nbc_error_text_of_call(MPI_ERR_BUFFER, text);
}

/* What all parts of a buffer are. */
static enum nbc_memory find_parts(struct nbc_stage *s, const struct nbc_staged *kept, int buf)
{
    enum nbc_memory memory = NBC_MEMORY_HOST;
    for (int i = 0; i < kept->nparts[buf]; i++) {
        const struct nbc_span *span = &kept->parts[buf][i].span;
        struct nbc_device *device;
        uintptr_t first = s->base[buf] + (uintptr_t)span->low;
        bool waits;
        enum nbc_memory found =
            nbc_device_find(first, s->base[buf] + (uintptr_t)span->high - 1, &device, &waits);
        if (i > 0 && found != memory)
            return NBC_MEMORY_DIFFERS;
        memory = found;
        if (i == 0)
            s->device[buf] = device;
        s->direct = s->direct ? s->direct : device;
        s->several = s->several || (device && device != s->direct);
        if (found == NBC_MEMORY_DEVICE && !waits && !nbc_device_settle(device, first))
            s->error[buf] = nbc_error_text(NBC_ERROR_DEVICE, nbc_device_fault());
    }
    return memory;
}

/* Finds out which buffers must be staged. Returns them as a set. */
static unsigned find_buffers(const struct nbc_run *run, struct nbc_stage *s,
                             const struct nbc_staged *kept)
{
    unsigned buffers = 0;
    s->direct = NULL;
    s->several = false;
    for (int buf = 0; buf < 2; buf++) {
        s->error[buf] = MPI_SUCCESS;
        s->device[buf] = NULL;
        s->base[buf] = run->exec.base[buf];
        enum nbc_memory memory = find_parts(s, kept, buf);
        if (memory == NBC_MEMORY_HOST)
            continue;
        buffers |= 1U << buf;
        if (memory != NBC_MEMORY_DEVICE)
            s->error[buf] =
                explain_buffer(buf, memory, s->base[buf] + (uintptr_t)kept->parts[buf]->span.low);
    }
    return buffers;
}

/* Memory of the host for what is temporary. */
static bool take_temporary(struct nbc_run *run, struct nbc_stage *s)
{
    size_t size = (size_t)run->exec.sched->temp_bytes;
    s->block = size > 0 ? block_take(size, s->direct) : NULL;
    if (s->block)
        run->exec.base[NBC_BUF_TEMP] = (uintptr_t)s->block->memory;
    return s->block || size == 0;
}

/* Memory of the host for the staged buffers; sets where they are in it. */
static bool take_block(struct nbc_run *run, struct nbc_stage *s, unsigned buffers,
                       const struct nbc_staged *kept)
{
    size_t size = 0, at = 0, data = 0;
    if (s->direct)
        return take_temporary(run, s);
    for (int buf = 0; buf < 2; buf++)
        if (buffers >> buf & 1) {
            size += (size_t)nbc_staged_size(kept, buf) + 2 * ALIGN;
            for (int i = 0; i < kept->nparts[buf]; i++)
                data += (size_t)(kept->parts[buf][i].span.high - kept->parts[buf][i].span.low);
        }
    s->block = size >= SPARSE && size / 2 > data
                   ? block_new(size, NULL, true)
                   : block_take(size, s->device[0] ? s->device[0] : s->device[1]);
    for (int buf = 0; buf < 2 && s->block; buf++) {
        if (!(buffers >> buf & 1))
            continue;
        uintptr_t low = (uintptr_t)kept->parts[buf]->span.low;
        at = (at + ALIGN - 1) / ALIGN * ALIGN + (s->base[buf] + low) % ALIGN;
        run->exec.base[buf] = (uintptr_t)s->block->memory + at - low;
        at += (size_t)nbc_staged_size(kept, buf);
    }
    return s->block;
}

static bool make_room(struct nbc_stage *s, size_t needed)
{
    if (needed <= s->room)
        return true;
    free(s->memory);
    s->memory = malloc(needed);
    s->room = s->memory ? needed : 0;
    return s->memory;
}

/* From now on the run executes this schedule. */
static void replace(struct nbc_run *run, const struct nbc_sched *sched,
                    const struct nbc_transport *transport)
{
    struct nbc_exec *e = &run->exec, *host = &run->stage->host;
    nbc_exec_init(e, sched, transport, run, run->stage->memory);
    memcpy(e->base, host->base, sizeof e->base);
    e->defer = host->defer;
    e->defer_kinds = host->defer_kinds;
    run->stage->is_on = true;
}

/* Direct runs that are pending, and the device of the first of them. */
static struct {
    struct nbc_device *device;
    int n;
} direct;

static void count_direct(struct nbc_stage *s, bool begins)
{
    if (s->is_pending == begins)
        return;
    if (direct.n == 0)
        direct.device = s->direct;
    direct.n += begins ? 1 : -1;
    s->is_pending = begins;
}

/* Whether the MPI gets these buffers: this rank moves data only, and they are on one device. In
 * each poll of the progress thread the MPI may move messages of all pending operations, and may
 * need their context: there, all that are pending are on one device. */
static bool is_direct(const struct nbc_run *run, const struct nbc_stage *s, unsigned buffers)
{
    if (run->device == NBC_DEVICE_STAGE || !s->direct || s->several || s->error[0] || s->error[1] ||
        !nbc_device_mpi_takes(s->direct) || !nbc_has_direct(run->sched))
        return false;
    if (direct.n > 0 && direct.device != s->direct && nbc_thread_polls())
        return false;
    return run->device == NBC_DEVICE_DIRECT || nbc_direct_is_better(run->sched, buffers);
}

static int begin(struct nbc_run *run, const struct nbc_type *types,
                 const struct nbc_transport *transport)
{
    int ntypes = run->handles.ntypes;
    struct nbc_staged *kept = nbc_staged_of(run->sched, types, ntypes, FAR);
    if (!run->stage)
        run->stage = calloc(1, sizeof *run->stage);
    struct nbc_stage *s = run->stage;
    if (!kept || !s)
        return MPI_ERR_NO_MEM;
    unsigned buffers = find_buffers(run, s, kept);
    if (!buffers)
        return MPI_SUCCESS;
    if (!is_direct(run, s, buffers))
        s->direct = NULL;
    struct nbc_sched *sched = nbc_stage(run->sched, types, ntypes, buffers, s->direct ? 0 : PIECE);
    if (!sched || !make_room(s, nbc_exec_memory(sched)))
        return MPI_ERR_NO_MEM;
    s->host = run->exec;
    replace(run, sched, transport);
    nbc_stage_starts[s->direct != NULL]++;
    s->lost = false;
    if (take_block(run, s, buffers, kept)) {
        count_direct(s, s->direct);
        return MPI_SUCCESS;
    }
    nbc_stage_undo(run);
    return MPI_ERR_NO_MEM;
}

int nbc_stage_begin(struct nbc_run *run, const struct nbc_transport *transport)
{
    enum { FEW = 16 };
    int n = run->handles.ntypes;
    struct nbc_type few[FEW], *types = n <= FEW ? few : malloc((size_t)n * sizeof *types);
    if (!types)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < n; i++)
        types[i] = run->handles.types[i]->layout;
    int error = begin(run, types, transport);
    if (types != few)
        free(types);
    return error;
}

bool nbc_stage_is_on(const struct nbc_run *run)
{
    return run->stage && run->stage->is_on;
}

bool nbc_stage_is_direct(const struct nbc_run *run)
{
    return nbc_stage_is_on(run) && run->stage->direct;
}

void nbc_stage_undo(struct nbc_run *run)
{
    if (!run->stage || !run->stage->is_on)
        return;
    run->stage->is_on = false;
    run->exec = run->stage->host;
}

void nbc_stage_free(struct nbc_run *run)
{
    if (!run->stage)
        return;
    count_direct(run->stage, false);
    if (run->exec.abandoned)
        return;
    free(run->stage->memory);
    free(run->stage);
    run->stage = NULL;
}

/* --- copies ----------------------------------------------------------------------------------- */

static int under_way; /* copies */
static int64_t since; /* when one is, the first of them */

static void count(int more)
{
    if (under_way == 0 && nbc_timing_on)
        since = nbc_now();
    under_way += more;
    if (under_way == 0 && nbc_timing_on)
        nbc_stage_time += nbc_now() - since;
}

static int copy_failed(struct nbc_stage *s)
{
    s->lost = true;
    return nbc_error_text(NBC_ERROR_DEVICE, nbc_device_fault());
}

/* The parts of a buffer may be on several devices. */
static struct nbc_device *device_at(const struct nbc_run *run, int buf, uintptr_t at)
{
    struct nbc_device *device;
    bool waits;
    if (run->sched->staged->nparts[buf] > 1 &&
        nbc_device_find(at, at, &device, &waits) == NBC_MEMORY_DEVICE)
        return device;
    return run->stage->device[buf];
}

static int copy_begin(struct nbc_stage *s, struct nbc_device *device, bool store,
                      const struct nbc_elements *e, nbc_handle *h)
{
    struct nbc_device_copy *copy = nbc_device_start(device, store, e);
    *h = (nbc_handle)copy;
    if (!copy)
        return copy_failed(s);
    count(1);
    return 0;
}

/* Sets which bytes of an operation's elements are data. Returns an MPI error code. */
static int find_data(struct nbc_run *run, const struct nbc_op *op, struct nbc_elements *e,
                     struct nbc_bytes_run *all)
{
    struct nbc_datatype *t = run->handles.types[op->type];
    *all = (struct nbc_bytes_run){0, op->count * t->layout.size};
    *e = (struct nbc_elements){.runs = all, .nruns = 1, .count = 1, .extent = t->layout.extent};
    if (!t->layout.packed) {
        e->count = op->count;
        e->runs = nbc_datatype_runs(t, run->comm, &e->nruns);
    }
    return e->runs ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static bool is_on_device(const struct nbc_stage *s, int buf)
{
    return buf != NBC_BUF_TEMP && s->device[buf];
}

/* A copy of a direct run. */
static int move_begin(struct nbc_run *run, const struct nbc_op *op, nbc_handle *h)
{
    struct nbc_stage *s = run->stage;
    struct nbc_elements e;
    struct nbc_bytes_run all;
    int error = find_data(run, op, &e, &all);
    if (error)
        return error;
    uintptr_t to = run->exec.base[op->buf] + (uintptr_t)op->off;
    uintptr_t from = run->exec.base[op->b_buf] + (uintptr_t)op->b_off;
    bool store = is_on_device(s, op->buf);
    e.within = store && is_on_device(s, op->b_buf);
    e.on_device = store ? to : from;
    e.on_host = store ? from : to;
    if (!e.within)
        nbc_stage_bytes[store] += all.length;
    return copy_begin(s, s->direct, store, &e, h);
}

static int fetch_or_store(struct nbc_run *run, const struct nbc_op *op, nbc_handle *h)
{
    struct nbc_stage *s = run->stage;
    int buf = op->buf;
    int64_t first = op->off + run->handles.types[op->type]->layout.true_lb; /* of the bytes */
    int64_t shift = nbc_staged_shift(run->sched->staged, buf, first);
    bool store = op->kind == NBC_OP_STORE;
    struct nbc_elements e;
    struct nbc_bytes_run all;
    if (s->error[buf])
        return s->error[buf];
    int error = find_data(run, op, &e, &all);
    if (error)
        return error;
    e.on_device = s->base[buf] + (uintptr_t)op->off;
    e.on_host = run->exec.base[buf] + (uintptr_t)(op->off - shift);
    nbc_stage_bytes[store] += all.length;
    return copy_begin(s, device_at(run, buf, s->base[buf] + (uintptr_t)first), store, &e, h);
}

int nbc_stage_copy(void *self, const struct nbc_op *op, nbc_handle *h)
{
    struct nbc_run *run = self;
    struct nbc_stage *s = run->stage;
    if (op->kind == NBC_OP_MOVE)
        return move_begin(run, op, h);
    if (op->kind != NBC_OP_SETTLE)
        return fetch_or_store(run, op, h);
    /* Another operation may have made copies wait, and may not have seen the end of that yet. */
    return nbc_device_is_settled(s->direct)
               ? NBC_SENT
               : copy_begin(s, s->direct, false, &(struct nbc_elements){0}, h);
}

struct nbc_device *nbc_stage_enter(const struct nbc_run *run, void **before, int *error)
{
    struct nbc_device *d = run->stage->direct;
    if (!d || nbc_device_enter(d, before))
        return d;
    if (error)
        *error = nbc_error_text(NBC_ERROR_DEVICE, nbc_device_fault());
    return NULL;
}

struct nbc_device *nbc_stage_enter_pending(void **before)
{
    if (direct.n++ == 0)
        direct.device = NULL;
    return direct.device && nbc_device_enter(direct.device, before) ? direct.device : NULL;
}

void nbc_stage_leave_pending(struct nbc_device *entered, void *before)
{
    direct.n--;
    nbc_stage_leave(entered, before);
}

void nbc_stage_leave(struct nbc_device *entered, void *before)
{
    if (entered)
        nbc_device_leave(entered, before);
}

bool nbc_stage_is_copy(const struct nbc_run *run, int i)
{
    return run->exec.sched->ops[run->exec.inflight[i]].kind > NBC_OP_JOIN;
}

int nbc_stage_test(struct nbc_run *run, nbc_handle h, bool *over)
{
    bool ok = nbc_device_test((struct nbc_device_copy *)h, over);
    if (*over)
        count(-1);
    return ok ? MPI_SUCCESS : copy_failed(run->stage);
}

void nbc_stage_release(void *self)
{
    struct nbc_stage *s = ((struct nbc_run *)self)->stage;
    count_direct(s, false);
    if (!s->block)
        return;
    if (!s->lost) {
        block_give(s->block);
        return;
    }
    s->block->next = lost;
    lost = s->block;
}

void nbc_stage_cleanup(void)
{
    for (struct block *b; (b = pool);) {
        pool = b->next;
        block_free(b);
    }
    pool_bytes = 0;
    for (struct block *b = lost; b; b = b->next) {
        if (b->owner)
            nbc_device_memory_drop(b->owner, b->memory);
        b->owner = NULL;
    }
    nbc_device_cleanup();
}
