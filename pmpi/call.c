/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <string.h>

#include "args.h"
#include "check.h"
#include "env.h"
#include "hints.h"
#include "lock.h"
#include "plan.h"
#include "progress.h"
#include "state.h"
#include "stats.h"
#include "tag_space.h"
#include "tags.h"
#include "trace.h"
#include "tuning.h"

/* A request for what its plan says, or, where there is none, its run. */
static int equip(struct nbc_plan *plan, struct nbc_sched *sched,
                 const struct nbc_holdings *holdings, struct nbc_request **out)
{
    struct nbc_request *r = nbc_request_new();
    if (!r)
        return MPI_ERR_NO_MEM;
    r->plan = plan;
    if (plan)
        plan->refs++;
    else
        r->run = nbc_run_new(sched, holdings);
    if (!plan && !r->run) {
        nbc_request_free(r);
        return MPI_ERR_NO_MEM;
    }
    *out = r;
    return MPI_SUCCESS;
}

int nbc_call_equip(struct nbc_sched *sched, const struct nbc_holdings *holdings,
                   struct nbc_request **out)
{
    return equip(NULL, sched, holdings, out);
}

const struct nbc_alg *nbc_call_choose(struct nbc_shape *s, const struct nbc_alg *override,
                                      int64_t segment)
{
    const struct nbc_alg *alg = nbc_select(s, override, nbc_tuning, &s->segment);
    if (segment)
        s->segment = segment;
    return alg;
}

/* What the program has called, or needs: not what a check of it takes. */
static void count(const struct nbc_call *call, const struct nbc_alg *alg, int64_t bytes)
{
    if (call->purpose != NBC_FOR_CHECK)
        nbc_stats_count(alg, bytes);
}

/* Works out what a plan would have told, and keeps it. */
static int work_out(const struct nbc_call *call, struct nbc_context *c,
                    const struct nbc_alg *override, int64_t segment, struct nbc_request **out,
                    const struct nbc_alg **chosen)
{
    struct nbc_bound b;
    int error = nbc_args_bind(call, c, &b);
    if (error)
        return error;
    const struct nbc_alg *alg = *chosen = nbc_call_choose(&b.shape, override, segment);
    struct nbc_sched *sched = alg->build(&b.shape);
    error = MPI_ERR_NO_MEM;
    if (sched) {
        const struct nbc_holdings holdings = {b.types, b.shape.ntypes, b.reducer};
        struct nbc_plan *plan = nbc_plan_keep(&c->plans, call, &b, sched, alg, override, segment);
        error = equip(plan, sched, &holdings, out);
        nbc_sched_release(sched);
        count(call, alg, nbc_shape_bytes(&b.shape));
    }
    nbc_args_unbind(&b);
    return error;
}

static void prefer(const struct nbc_hints *hints, enum nbc_coll coll,
                   const struct nbc_alg **override, int64_t *segment)
{
    if (!*override)
        *override = hints->algorithm[coll];
    if (!*segment)
        *segment = hints->segment_size;
}

/* The environment goes before the info of the call, that before the communicator's. */
void nbc_call_overrides(const struct nbc_call *call, const struct nbc_context *c,
                        const struct nbc_alg **override, int64_t *segment)
{
    *override = nbc_settings.algorithm[call->coll];
    *segment = nbc_settings.segment_size;
    if (call->has_info) {
        struct nbc_hints hints = {0};
        nbc_hints_read(call->info, &hints);
        prefer(&hints, call->coll, override, segment);
    }
    if (c->hints)
        prefer(c->hints, call->coll, override, segment);
}

/* Sets the operation of a call up, but for its tag. */
static int make(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    const struct nbc_alg *override;
    int64_t segment;
    nbc_call_overrides(call, c, &override, &segment);
    struct nbc_plan *plan = nbc_plan_find(c->plans, call, override, segment);
    const struct nbc_alg *alg;
    int error;
    if (plan) {
        alg = plan->alg;
        count(call, alg, plan->bytes);
        error = equip(plan, NULL, NULL, out);
    } else {
        error = work_out(call, c, override, segment, out, &alg);
    }
    if (error)
        return error;
    struct nbc_request *r = *out;
    r->coll = (uint8_t)call->coll;
    r->alg = alg;
    r->send = call->send.buf;
    r->recv = call->recv.buf;
    nbc_request_hold(r, c);
    return MPI_SUCCESS;
}

/* Starts a nonblocking operation. It takes its number, hence its tag, even where the operation
 * cannot be set up for want of memory: the other ranks count this call too. What is checked is
 * `told`, NULL for nothing. */
static int launch(const struct nbc_call *call, struct nbc_context *c, const struct nbc_call *told,
                  enum nbc_kind kind, struct nbc_request **out)
{
    struct nbc_request *r;
    int error = make(call, c, &r);
    if (error && error != MPI_ERR_NO_MEM)
        return error;
    int64_t seq = c->next_seq++;
    if (!error && __builtin_expect(nbc_settings.check && told, 0)) {
        error = nbc_check_new(c, told, kind, seq, &r->check);
        if (error)
            nbc_request_free(r);
    }
    if (error) {
        nbc_context_miss_number(c, seq);
        return error;
    }
    r->persistent = false;
    r->seq = seq;
    r->tag = c->first_tag + (int)(seq % nbc_tag_ring);
    nbc_progress_start(r);
    *out = r;
    return MPI_SUCCESS;
}

int nbc_call_launch(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    return launch(call, c, NULL, NBC_KIND_NONBLOCKING, out);
}

static int start(const struct nbc_call *call, enum nbc_kind kind, struct nbc_request **out)
{
    struct nbc_context *c = nbc_context_find(call->comm);
    if (!c)
        return NBC_NOT_OURS;
    if (!nbc_context_good(c))
        return MPI_ERR_OTHER;
    return launch(call, c, call, kind, out);
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
    nbc_types_bury();
    nbc_lock();
    int error = request ? start(call, NBC_KIND_NONBLOCKING, &r) : MPI_ERR_ARG;
    if (!error)
        *request = r->handle;
    nbc_unlock();
    return raised(call, error);
}

void nbc_call_await(struct nbc_request *r)
{
    int spins = 0;
    while (r->state == NBC_ACTIVE) {
        nbc_progress(r);
        if (r->state != NBC_ACTIVE)
            return;
        nbc_unlock();
        nbc_pause(&spins);
        nbc_lock();
    }
}

/* Waits for an operation of which the program has no request; returns its error. */
static int finish(struct nbc_request *r)
{
    nbc_call_await(r);
    int error = r->error;
    nbc_request_free(r);
    return error;
}

/* Ends with the operation complete, or failed to start. */
static int run(const struct nbc_call *call)
{
    struct nbc_request *r;
    int error = start(call, NBC_KIND_BLOCKING, &r);
    return error ? error : finish(r);
}

int nbc_call_wait(const struct nbc_call *call)
{
    if (!nbc_enabled || nbc_inside || nbc_settings.blocking == NBC_BLOCKING_NATIVE)
        return NBC_NOT_OURS;
    return nbc_call_run(call);
}

int nbc_call_run(const struct nbc_call *call)
{
    nbc_lock();
    int error = run(call);
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
    return run(&call);
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
    if (c->remote_size) {
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
    int error = launch(&barrier, c, call, NBC_KIND_PERSISTENT, &r);
    return error ? error : finish(r);
}

/* What an init call does together with other ranks, also where it has failed for want of memory
 * here: they do not know. The tag is never used then, and never given back. */
static int in_step(const struct nbc_call *call, struct nbc_context *c, int error, int *tag)
{
    int differs = nbc_settings.check ? check_init(call, c) : MPI_SUCCESS;
    int none = differs ? MPI_SUCCESS : take_tag(c, tag);
    if (error || none == MPI_ERR_NO_MEM)
        nbc_context_miss(c);
    if (none == MPI_ERR_NO_MEM)
        c->lost = c->missed; /* the others have taken a tag */
    return error ? error : differs ? differs : none;
}

static int init(const struct nbc_call *call, struct nbc_request **out)
{
    struct nbc_context *c = nbc_context_find(call->comm);
    if (!c)
        return NBC_NOT_OURS;
    if (!nbc_context_good(c))
        return MPI_ERR_OTHER;
    int error = make(call, c, out), tag = -1;
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
    (*out)->persistent = true;
    (*out)->tag = tag;
    return MPI_SUCCESS;
}

int nbc_call_init(const struct nbc_call *call, MPI_Request *request)
{
    struct nbc_request *r;
    if (!nbc_enabled || nbc_inside)
        return NBC_NOT_OURS;
    nbc_lock();
    int error = request ? init(call, &r) : MPI_ERR_ARG;
    if (!error)
        *request = r->handle;
    nbc_unlock();
    return raised(call, error);
}

const char *nbcshim_algorithm(MPI_Request request, long long *segment)
{
    const char *name = NULL;
    if (!nbc_any_live())
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
