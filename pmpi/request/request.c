/* SPDX-License-Identifier: MIT */
#include "request/request.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/state.h"
#include "base/table.h"
#include "below/next.h"
#include "below/quirks.h"
#include "op/plan.h"

int nbc_user_requests;

/* --- the objects of handles ------------------------------------------------------------------- */

struct entry {
    MPI_Request handle;
    struct nbc_request *r; /* NULL: free */
};

/* Every completion call searches here, possibly among tens of thousands of requests and in any
 * order. The table is therefore one array that contains the handles, with linear probing, and a
 * search costs one cache line. The number of entries is a power of two, and at most three of four
 * are taken. The table only grows, because handles are recycled with their objects. */
static struct entry *entries;
static size_t mask; /* number of entries − 1; 0: no table */
static size_t taken;

/* Held while the table changes, and by a thread that reads it without the lock; not during calls of
 * the MPI. It is taken inside the lock. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* The entry of a handle in a table with this mask, or the free entry where it belongs. */
static struct entry *entry_in(struct entry *table, size_t its_mask, MPI_Request handle)
{
    size_t i = nbc_hash_key(&handle, sizeof handle);
    while (table[i & its_mask].r && table[i & its_mask].handle != handle)
        i++;
    return &table[i & its_mask];
}

static struct entry *entry_of(MPI_Request handle)
{
    return entry_in(entries, mask, handle);
}

static bool handles_grow(void)
{
    enum { FIRST = 64 };
    struct entry *old = entries;
    size_t n = mask ? mask + 1 : 0, more = n ? 2 * n : FIRST;
    struct entry *wider = calloc(more, sizeof *wider);
    if (!wider)
        return false;
    for (size_t i = 0; i < n; i++)
        if (old[i].r)
            *entry_in(wider, more - 1, old[i].handle) = old[i];
    pthread_mutex_lock(&changing);
    entries = wider;
    mask = more - 1;
    pthread_mutex_unlock(&changing);
    free(old);
    return true;
}

static bool handles_add(MPI_Request handle, struct nbc_request *r)
{
    if (taken >= (mask + 1) / 4 * 3 && !handles_grow())
        return false;
    pthread_mutex_lock(&changing);
    *entry_of(handle) = (struct entry){handle, r};
    pthread_mutex_unlock(&changing);
    taken++;
    return true;
}

bool nbc_request_is_own(MPI_Request handle)
{
    pthread_mutex_lock(&changing);
    bool own = mask && entry_of(handle)->r;
    pthread_mutex_unlock(&changing);
    return own;
}

static void handles_clear(void)
{
    free(entries);
    entries = NULL;
    mask = taken = 0;
}

/* --- the pool --------------------------------------------------------------------------------- */

/* Requests are allocated in slabs, each of twice the size of the last up to a limit, and are not
 * freed before the end. Large slabs use huge pages: with small pages, accesses in random order
 * would miss the TLB each time. */
enum { SMALLEST = 16384, LARGEST = 4 << 20, HUGE_PAGE = 2 << 20 };

struct slab {
    struct slab *older;
    int size, used;
    struct nbc_request list[];
};

/* The pool. Under the lock. */
static struct nbc_request **pool; /* idle requests, the next one to be taken last; room for all */
static int npool, nmade;
static struct slab *slabs;           /* the newest slab */
static size_t slab_bytes = SMALLEST; /* size of the next slab */
static int source;                   /* of the receives whose handles the requests have */
static struct slab *abandoned_slabs; /* with requests that the program has never freed: no leak */

static struct nbc_request none; /* idle */
struct nbc_request *nbc_request_recent = &none;

struct nbc_request *nbc_request_find_other(MPI_Request handle)
{
    struct nbc_request *r = mask ? entry_of(handle)->r : NULL;
    if (!r || r->state == NBC_IDLE)
        return NULL;
    return nbc_request_recent = r;
}

static struct slab *slab_new(void)
{
    bool huge = slab_bytes >= HUGE_PAGE; /* mutants: > for >=: for speed */
    struct slab *slab = aligned_alloc(huge ? HUGE_PAGE : _Alignof(struct slab), slab_bytes);
    if (!slab)
        return NULL;
    if (huge)
        madvise(slab, slab_bytes, MADV_HUGEPAGE); /* mutants: leave a call out: for speed */
    slab->used = 0;
    slab->size = (int)((slab_bytes - sizeof *slab) / sizeof slab->list[0]);
    return slab;
}

static bool pool_grow(void)
{
    struct slab *slab = slab_new();
    if (!slab)
        return false;
    struct nbc_request **wider = realloc(pool, (size_t)(nmade + slab->size) * sizeof *pool);
    if (!wider) {
        free(slab); /* mutants: leave a call out: a slab without room in the pool */
        return false;
    }
    pool = wider;
    slab->older = slabs;
    slabs = slab;
    if (slab_bytes < LARGEST) /* mutants: <= for <: for speed */
        slab_bytes *= 2;
    return true;
}

/* MPI_Finalize of MPICH 5 frees the persistent requests of MPI_COMM_SELF before it deletes the
 * attributes of MPI_COMM_WORLD, whose callbacks may free the program's requests. */
static MPI_Comm handle_home(void)
{
    return nbc_handle_comm == MPI_COMM_SELF ? MPI_COMM_WORLD : nbc_handle_comm;
}

static __attribute__((cold, noinline)) struct nbc_request *request_create(void)
{
    if (!slabs || slabs->used == slabs->size)
        if (!pool_grow())
            return NULL;
    nbc_assert(slabs->used < slabs->size);
    if (nmade == 0)
        source = nbc_quirks_inactive_source(nbc_handle_comm);
    struct nbc_request *r = &slabs->list[slabs->used];
    if (NEXT(Recv_init)(NULL, 0, MPI_BYTE, source, 0, handle_home(), &r->handle))
        return NULL;
    if (!handles_add(r->handle, r)) {
        NEXT(Request_free)(&r->handle);
        return NULL;
    }
    r->state = NBC_IDLE;
    r->seen = false;
    r->claimed = false;
    slabs->used++;
    nmade++;
    return r;
}

static void count_user_requests(int change)
{
    /* mutants: - for +: for speed */
    __atomic_store_n(&nbc_user_requests, nbc_user_requests + change, __ATOMIC_RELAXED);
}

void nbc_request_let_waits_poll(bool poll)
{
    bool does = nbc_user_requests & NBC_WAITS_POLL;
    if (poll != does)
        count_user_requests(poll ? NBC_WAITS_POLL : -NBC_WAITS_POLL);
}

void nbc_request_hide(bool hide)
{
    count_user_requests(hide ? -1 : 1); /* mutants: leave a call out: for speed */
}

static struct nbc_request *pool_take(void)
{
    enum { AHEAD = 4 };
    if (npool == 0)
        return request_create();
    if (npool >= AHEAD)
        nbc_request_prefetch(pool[npool - AHEAD]); /* mutants: leave a call out: for speed */
    return pool[--npool];
}

static const struct nbc_handle_refs *request_handles(const struct nbc_request *r)
{
    return r->plan ? &r->plan->handles : &r->run->handles;
}

struct nbc_request *nbc_request_new(struct nbc_context *c, const struct nbc_call *call,
                                    const struct nbc_alg *alg, struct nbc_plan *plan,
                                    struct nbc_run *run)
{
    nbc_assert_locked();
    struct nbc_request *r = plan || run ? pool_take() : NULL;
    if (!r) {
        if (run)
            nbc_run_free(run); /* unreached: no memory */
        return NULL;
    }
    nbc_request_recent = r;
    nbc_request_set_state(r, NBC_INACTIVE);
    r->tag = -1;
    r->persistent = r->blocking = false;
    r->internal = call->purpose != NBC_FOR_PROGRAM;
    r->device = NBC_DEVICE_AUTO;
    r->coll = call->coll;
    r->plan = plan;
    r->run = run;
    r->send = call->send.buf;
    r->recv = call->recv.buf;
    r->alg = alg;
    r->start_condition = NULL;
    nbc_handles_hold(request_handles(r));
    if (plan)
        plan->refs++;
    r->context = c;
    nbc_context_hold(c);
    count_user_requests(1);
    return r;
}

int64_t nbc_request_call_number(const struct nbc_request *r)
{
    if (!r->persistent)
        return r->seq + 1;
    return nbc_tags_number(r->context->tags, r->tag) + 1;
}

void nbc_request_replace(struct nbc_request *r, struct nbc_run *run, const struct nbc_alg *alg)
{
    nbc_handles_hold(&run->handles);
    nbc_handles_release(request_handles(r));
    if (r->run)
        nbc_request_drop_run(r);
    if (r->plan)
        nbc_plan_release(r->plan);
    r->plan = NULL;
    r->run = run;
    r->alg = alg;
}

void nbc_request_free(struct nbc_request *r)
{
    struct nbc_context *context = r->context;
    nbc_assert_locked();
    nbc_handles_release(request_handles(r));
    if (r->persistent && r->tag >= 0) /* mutants: > for >=: persistent tags are above 0 */
        nbc_tags_give(context->tags, r->tag);
    if (r->run)
        nbc_request_drop_run(r);
    if (r->plan)
        nbc_plan_release(r->plan);
    nbc_request_set_state(r, NBC_IDLE);
    pool[npool++] = r;
    count_user_requests(-1);      /* mutants: leave a call out: for speed */
    nbc_context_release(context); /* may free the context and its plans */
}

/* A later session may create requests again. Slabs remain if the program still has a request. */
void nbc_request_cleanup(void)
{
    /* MPI_Request_free polls, and MPICH 4.0.2 crashes there in a program without MPI_Init whose
     * communicators have one process each. The end of the last session frees them too. */
    for (int i = 0; i < npool && nbc_handle_comm == MPI_COMM_SELF; i++)
        NEXT(Request_free)(&pool[i]->handle); /* mutants: leave a call out: left at MPI_Finalize */
    for (struct slab *slab = slabs, *older; slab; slab = older) {
        older = slab->older;
        slab->older = abandoned_slabs;
        if (npool == nmade) /* mutants: != for ==: a slab without room in the pool */
            free(slab);     /* mutants: leave a call out: left at MPI_Finalize */
        else
            abandoned_slabs = slab;
    }
    free(pool); /* mutants: leave a call out: left at MPI_Finalize */
    pool = NULL;
    slabs = NULL;
    nbc_request_recent = &none;
    npool = nmade = 0;
    slab_bytes = SMALLEST;
    nbc_ready_clear();
    handles_clear(); /* mutants: leave a call out: left at MPI_Finalize */
}

void nbc_own_find(struct nbc_own *own, int n, const MPI_Request *requests, bool remember)
{
    nbc_assert_locked();
    *own = (struct nbc_own){.ready = n, .pending = n};
    for (int i = 0; i < n; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        struct nbc_request *r = nbc_request_find(requests[i]);
        own->others += !r;
        if (!r || r->state == NBC_INACTIVE)
            continue;
        own->n++;
        if (remember)
            nbc_ready_see(r, &requests[i]);
        if (r->state == NBC_COMPLETE && own->ready == n)
            own->ready = i;
        if (r->state == NBC_ACTIVE && own->pending == n) {
            own->pending = i;
            own->active = r;
        }
    }
}
