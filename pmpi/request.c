/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "handles.h"
#include "lock.h"
#include "plan.h"
#include "state.h"
#include "tags.h"

int nbc_live;

/* They are made many at a time, each time twice as many, and never freed before the end. Large
 * slabs are huge pages: look-ups in random order would miss the table of small ones each time. */
enum { SMALLEST = 16384, LARGEST = 4 << 20, HUGE_PAGE = 2 << 20 };

struct slab {
    struct slab *older;
    int size, used;
    struct nbc_request list[];
};

/* Under the lock. */
static struct nbc_request **pool; /* idle ones, the last to be taken first; room for all */
static int npool, nmade;
static struct slab *slabs;           /* the newest */
static size_t slab_bytes = SMALLEST; /* of the next */
static struct slab *left;            /* with what programs have never freed: no leak of ours */

struct nbc_request *nbc_request_find(MPI_Request handle)
{
    nbc_must_lock();
    struct nbc_request *r = nbc_handles_find(handle);
    return r && r->state != NBC_IDLE ? r : NULL;
}

static struct slab *slab_new(void)
{
    bool huge = slab_bytes >= HUGE_PAGE;
    struct slab *slab = aligned_alloc(huge ? HUGE_PAGE : _Alignof(struct slab), slab_bytes);
    if (!slab)
        return NULL;
    if (huge)
        madvise(slab, slab_bytes, MADV_HUGEPAGE);
    slab->used = 0;
    slab->size = (int)((slab_bytes - sizeof *slab) / sizeof slab->list[0]);
    return slab;
}

static bool grow(void)
{
    struct slab *slab = slab_new();
    if (!slab)
        return false;
    struct nbc_request **wider = realloc(pool, (size_t)(nmade + slab->size) * sizeof *pool);
    if (!wider) {
        free(slab);
        return false;
    }
    pool = wider;
    slab->older = slabs;
    slabs = slab;
    if (slab_bytes < LARGEST)
        slab_bytes *= 2;
    return true;
}

static struct nbc_request *make(void)
{
    if (!slabs || slabs->used == slabs->size)
        if (!grow())
            return NULL;
    nbc_must(slabs->used < slabs->size);
    struct nbc_request *r = &slabs->list[slabs->used];
    if (NEXT(Recv_init)(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, nbc_home, &r->handle))
        return NULL;
    if (!nbc_handles_add(r->handle, r)) {
        NEXT(Request_free)(&r->handle);
        return NULL;
    }
    slabs->used++;
    nmade++;
    return r;
}

static void count_live(int change)
{
    __atomic_store_n(&nbc_live, nbc_live + change, __ATOMIC_RELAXED);
}

void nbc_request_hide(bool hide)
{
    count_live(hide ? -1 : 1);
}

static struct nbc_request *take(void)
{
    enum { AHEAD = 4 };
    if (npool == 0)
        return make();
    if (npool >= AHEAD)
        nbc_request_prefetch(pool[npool - AHEAD]);
    return pool[--npool];
}

struct nbc_request *nbc_request_new(void)
{
    nbc_must_lock();
    struct nbc_request *r = take();
    if (!r)
        return NULL;
    r->state = NBC_INACTIVE;
    r->persistent = r->orphan = false;
    r->context = NULL;
    r->plan = NULL;
    r->run = NULL;
    r->check = NULL;
    count_live(1);
    return r;
}

static const struct nbc_holdings *holdings(const struct nbc_request *r)
{
    return r->plan ? &r->plan->holdings : &r->run->holdings;
}

void nbc_request_hold(struct nbc_request *r, struct nbc_context *c)
{
    const struct nbc_holdings *h = holdings(r);
    for (int i = 0; i < h->ntypes; i++)
        nbc_datatype_hold(h->types[i]);
    if (h->reducer)
        nbc_operator_hold(h->reducer);
    r->context = c;
    nbc_context_hold(c);
}

static void let_go(const struct nbc_request *r)
{
    const struct nbc_holdings *h = holdings(r);
    for (int i = 0; i < h->ntypes; i++)
        nbc_datatype_release(h->types[i]);
    if (h->reducer)
        nbc_operator_release(h->reducer);
    if (r->persistent && r->tag >= 0)
        nbc_tags_give(r->context->tags, r->tag);
}

bool nbc_request_ready(struct nbc_request *r)
{
    if (!r->run)
        r->run = nbc_plan_take(r->plan);
    return r->run;
}

void nbc_request_drop_run(struct nbc_request *r)
{
    if (r->plan)
        nbc_plan_give(r->plan, r->run);
    else
        nbc_run_free(r->run);
    r->run = NULL;
}

void nbc_request_free(struct nbc_request *r)
{
    struct nbc_context *context = r->context;
    nbc_must_lock();
    if (context)
        let_go(r);
    if (r->run)
        nbc_request_drop_run(r);
    if (r->plan)
        nbc_plan_release(r->plan);
    r->state = NBC_IDLE;
    pool[npool++] = r;
    count_live(-1);
    if (context)
        nbc_context_release(context); /* may end it, and its plans */
}

/* Before a later session all of this may begin anew; a request that the program still has then is
 * left alone. */
void nbc_request_cleanup(void)
{
    for (int i = 0; i < npool; i++)
        NEXT(Request_free)(&pool[i]->handle);
    while (slabs && npool == nmade) {
        struct slab *slab = slabs;
        slabs = slab->older;
        free(slab);
    }
    for (struct slab *slab = slabs, *older; slab; slab = older) {
        older = slab->older;
        slab->older = left;
        left = slab;
    }
    free(pool);
    pool = NULL;
    slabs = NULL;
    npool = nmade = 0;
    slab_bytes = SMALLEST;
    nbc_handles_clear();
}
