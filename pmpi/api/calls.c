/* SPDX-License-Identifier: MIT */
#include "api/calls.h"

#include "nbcshim.h"

#include "base/errors.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/tag_space.h"
#include "below/next.h"
#include "comm/context.h"
#include "comm/tags.h"
#include "engine/launch.h"
#include "engine/progress.h"
#include "op/plan.h"
#include "op/run.h"
#include "op/types.h"
#include "request/request.h"

#include "coll.h"
#include "sched.h"

static int call_start(const struct nbc_call *call, enum nbc_kind kind, struct nbc_request **out)
{
    struct nbc_context *c = nbc_context_find(call->comm);
    if (!c)
        return NBC_NOT_OURS;
    if (!nbc_context_usable(c))
        return MPI_ERR_OTHER;
    return nbc_launch_checked(call, c, call, kind, out);
}

static int raised(const struct nbc_call *call, int error)
{
    return error && error != NBC_NOT_OURS ? nbc_raise(call->comm, error) : error;
}

int nbc_call_start(const struct nbc_call *call, MPI_Request *request)
{
    struct nbc_request *r;
    if (__builtin_expect(!nbc_enabled || nbc_inside, 0))
        return NBC_NOT_OURS;
    nbc_types_reclaim();
    nbc_lock();
    int error = request ? call_start(call, NBC_KIND_NONBLOCKING, &r) : MPI_ERR_ARG;
    if (!error)
        *request = r->handle;
    nbc_unlock();
    return raised(call, error);
}

/* Waits for an operation of which the program has no request; returns its error. */
static int finish(struct nbc_request *r)
{
    nbc_request_wait(r);
    int error = r->error;
    nbc_request_free(r);
    return error;
}

/* Ends with the operation complete, or failed to start. */
static int call_and_wait(const struct nbc_call *call)
{
    struct nbc_request *r;
    int error = call_start(call, NBC_KIND_BLOCKING, &r);
    return error ? error : finish(r);
}

int nbc_call_blocking(const struct nbc_call *call)
{
    if (!nbc_enabled || nbc_inside || nbc_settings.blocking == NBC_BLOCKING_NATIVE)
        return NBC_NOT_OURS;
    return nbc_call_forced(call);
}

int nbc_call_forced(const struct nbc_call *call)
{
    nbc_lock();
    int error = call_and_wait(call);
    nbc_unlock();
    return raised(call, error);
}

/* The AND of a set over the local group, or the remote one, by an operation of our own, so that
 * all else goes on meanwhile: a rank that comes late may first have to complete something. */
static int and_over(MPI_Comm comm, const uint64_t *mine, uint64_t *all, int words)
{
    const struct nbc_call call = {
        .coll = NBC_ALLREDUCE,
        .purpose = NBC_FOR_TAGS,
        .comm = comm,
        .send = {.buf = mine, .count = words, .type = MPI_UNSIGNED_LONG_LONG},
        .recv = {.buf = all, .count = words, .type = MPI_UNSIGNED_LONG_LONG},
        .op = MPI_BAND,
    };
    return call_and_wait(&call);
}

static int agree(struct nbc_context *c)
{
    enum { MOST = 65536 / NBC_TAG_WORD };
    uint64_t mine[MOST], all[MOST];
    int words = nbc_tags_words(c->tags);
    nbc_tags_offer(c->tags, mine);
    int error = and_over(c->user, mine, all, words);
    if (error)
        return error;
    if (c->members.remote_size) {
        /* `all` is the remote group's; from there comes back what the local group offered. */
        uint64_t local[MOST];
        error = and_over(c->user, all, local, words);
        if (error)
            return error;
        for (int i = 0; i < words; i++)
            all[i] &= local[i];
    }
    nbc_tags_agree(c->tags, all);
    return MPI_SUCCESS;
}

/* The same tag on every rank. */
static int take_tag(struct nbc_context *c, int *tag)
{
    if (!c->tags)
        c->tags = nbc_tags_new(nbc_tag_ring, nbc_tag_ub - nbc_tag_ring + 1);
    if (!c->tags)
        return MPI_ERR_NO_MEM;
    *tag = nbc_tags_take(c->tags);
    if (*tag >= 0)
        return MPI_SUCCESS;
    int error = agree(c);
    if (error)
        return error;
    *tag = nbc_tags_take(c->tags);
    return *tag >= 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* An init call may wait for other ranks: for a barrier that starts when the check has passed. */
static int check_init(const struct nbc_call *call, struct nbc_context *c)
{
    const struct nbc_call barrier = {.coll = NBC_BARRIER, .comm = call->comm};
    struct nbc_request *r;
    int error = nbc_launch_checked(&barrier, c, call, NBC_KIND_PERSISTENT, &r);
    return error ? error : finish(r);
}

/* What an init call does together with other ranks, also where it has failed for want of memory
 * here: they do not know. The tag is never used then, and never given back. */
static int in_step(const struct nbc_call *call, struct nbc_context *c, int error, int *tag)
{
    int differs = nbc_settings.check ? check_init(call, c) : MPI_SUCCESS;
    int none = differs ? MPI_SUCCESS : take_tag(c, tag);
    if (error || none == MPI_ERR_NO_MEM)
        nbc_context_mark_undeliverable(c);
    if (none == MPI_ERR_NO_MEM && c->delivery != NBC_DELIVERY_SOUND)
        nbc_context_mark_lost(c); /* the others have taken a tag */
    return error ? error : differs ? differs : none;
}

static int call_init(const struct nbc_call *call, struct nbc_request **out)
{
    struct nbc_context *c = nbc_context_find(call->comm);
    if (!c)
        return NBC_NOT_OURS;
    if (!nbc_context_usable(c))
        return MPI_ERR_OTHER;
    int error = nbc_launch_make(call, c, out), tag = -1;
    if (error && error != MPI_ERR_NO_MEM)
        return error;
    bool made = !error;
    if (made && !nbc_request_ready(*out))
        error = MPI_ERR_NO_MEM;
    error = in_step(call, c, error, &tag);
    if (error) {
        if (made)
            nbc_request_free(*out);
        return error;
    }
    nbc_request_make_persistent(*out, tag);
    return MPI_SUCCESS;
}

int nbc_call_init(const struct nbc_call *call, MPI_Request *request)
{
    struct nbc_request *r;
    if (!nbc_enabled || nbc_inside)
        return NBC_NOT_OURS;
    nbc_lock();
    int error = request ? call_init(call, &r) : MPI_ERR_ARG;
    if (!error)
        *request = r->handle;
    nbc_unlock();
    return raised(call, error);
}

const char *nbcshim_algorithm(MPI_Request request, long long *segment)
{
    const char *name = NULL;
    if (!nbc_any_user_requests())
        return NULL;
    nbc_lock();
    const struct nbc_request *r = nbc_request_find(request);
    const struct nbc_sched *s = r && r->plan ? r->plan->sched : r && r->run ? r->run->sched : NULL;
    if (s && r->alg) {
        name = r->alg->name;
        if (segment)
            *segment = s->segment;
    }
    nbc_unlock();
    return name;
}
