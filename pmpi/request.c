/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <stdlib.h>

#include "init.h"
#include "plan.h"
#include "tags.h"

int nbc_live;

static struct nbc_request *requests; /* all, by handle; under the lock, like pool */
static struct nbc_request *pool;     /* idle ones, linked by next */

struct nbc_request *nbc_request_find(MPI_Request handle)
{
    struct nbc_request *r;
    HASH_FIND(hh, requests, &handle, sizeof handle, r);
    return r && r->state != NBC_IDLE ? r : NULL;
}

static struct nbc_request *make(void)
{
    struct nbc_request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    int error = NEXT(Recv_init)(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, nbc_home, &r->handle);
    if (error) {
        free(r);
        return NULL;
    }
    HASH_ADD(hh, requests, handle, sizeof r->handle, r);
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

void nbc_request_revive(struct nbc_request *r)
{
    r->state = NBC_INACTIVE;
    r->prev = r->next = NULL;
    count_live(1);
}

struct nbc_request *nbc_request_new(void)
{
    struct nbc_request *r = pool;
    if (r)
        pool = r->next;
    else if (!(r = make()))
        return NULL;
    nbc_request_revive(r);
    return r;
}

bool nbc_request_reserve(struct nbc_request *r, size_t size)
{
    if (size <= r->room)
        return true;
    size = (size + 63) / 64 * 64;
    void *more = aligned_alloc(64, size);
    if (!more)
        return false;
    free(r->memory);
    r->memory = more;
    r->room = size;
    return true;
}

/* Memory above this is given back instead of being kept with an idle request. */
enum { KEEP = 16384 };

void nbc_request_strip(struct nbc_request *r)
{
    if (r->sched && --r->sched->refs == 0)
        nbc_sched_free(r->sched);
    r->sched = NULL;
    r->plan = NULL;
    r->ntypes = 0;
    if (r->room > KEEP) {
        free(r->memory);
        r->memory = NULL;
        r->room = 0;
    }
    r->next = pool;
    pool = r;
}

static void let_go(struct nbc_request *r)
{
    for (int i = 0; i < r->ntypes; i++)
        nbc_datatype_release(r->types[i]);
    if (r->reducer)
        nbc_operator_release(r->reducer);
    if (r->persistent && r->tag >= 0)
        nbc_tags_give(r->context->tags, r->tag);
    r->reducer = NULL;
    r->persistent = r->orphan = false;
}

void nbc_request_free(struct nbc_request *r)
{
    struct nbc_context *context = r->context;
    struct nbc_plan *plan = r->plan;
    if (context)
        let_go(r);
    r->context = NULL;
    r->poll = NULL;
    r->state = NBC_IDLE;
    count_live(-1);
    if (!plan || !nbc_plan_give(plan, r))
        nbc_request_strip(r);
    if (plan)
        nbc_plan_release(plan);
    if (context)
        nbc_context_release(context); /* may end it, and its plans */
}

void nbc_request_cleanup(void)
{
    while (pool) {
        struct nbc_request *r = pool;
        pool = r->next;
        HASH_DEL(requests, r);
        NEXT(Request_free)(&r->handle);
        free(r->memory);
        free(r);
    }
}
