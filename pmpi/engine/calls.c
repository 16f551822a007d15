/* SPDX-License-Identifier: MIT */
#include "engine/calls.h"

#include <stdio.h>
#include <string.h>

#include "nbcshim.h"

#include "base/in_mpi.h"
#include "base/errors.h"
#include "base/hints.h"
#include "base/lock.h"
#include "base/state.h"
#include "base/tag_space.h"
#include "below/next.h"
#include "comm/context.h"
#include "engine/launch.h"
#include "engine/progress.h"
#include "op/bind.h"
#include "op/by_mpi.h"
#include "op/types.h"
#include "request/request.h"

#include "coll.h"
#include "hash.h"
#include "sched.h"

const struct nbc_call nbc_no_call;

/* MPI_Ibcast, MPI_Bcast_init, MPI_Bcast, MPI_Ibcast_c */
static int call_name(const struct nbc_call *call, char *name, size_t room)
{
    const char *suffix = call->kind == NBC_KIND_PERSISTENT ? call->large ? "_init_c" : "_init"
                         : call->large                     ? "_c"
                                                           : "";
    return nbc_coll_function(nbc_coll_name(call->coll), call->kind == NBC_KIND_NONBLOCKING, suffix,
                             name, room);
}

/* Takes the class of the error in a call and returns an error code whose text names the function,
 * the argument with its value, the rank and the communicator. */
static __attribute__((cold)) int call_explain(const struct nbc_call *call, int class,
                                              const char *fault)
{
    char name[MPI_MAX_OBJECT_NAME + 1] = "", text[MPI_MAX_ERROR_STRING + MPI_MAX_OBJECT_NAME + 1];
    int length;
    if (call->purpose != NBC_FOR_PROGRAM || !*fault)
        return class;
    size_t used = (size_t)call_name(call, text, sizeof text);
    used += (size_t)snprintf(text + used, sizeof text - used, ": %s", fault);
    const struct nbc_context *c = nbc_context_find(call->comm);
    if (c && used < sizeof text) {
        NEXT(Comm_get_name)(call->comm, name, &length);
        snprintf(text + used, sizeof text - used, " (rank %d of %d in %s)", c->members.rank,
                 c->members.size, *name ? name : "a communicator without a name");
    }
    text[MPI_MAX_ERROR_STRING - 1] = '\0';
    return nbc_error_text_of_call(class, text);
}

/* Some functions of Open MPI 4.1.4 crash with MPI_COMM_NULL. */
static inline int call_find_context(const struct nbc_call *call, struct nbc_context **c)
{
    *c = nbc_context_find(call->comm);
    if (!*c && call->comm == MPI_COMM_NULL)
        return call_explain(call, MPI_ERR_COMM, "comm is MPI_COMM_NULL");
    if (!*c)
        return NBC_CALL_BELOW;
    if (nbc_context_is_revoked(*c))
        return nbc_error_revoked;
    return nbc_context_usable(*c) ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int call_launch(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out)
{
    int error = nbc_launch_checked(call, c, call, out);
    return error ? call_explain(call, error, nbc_bind_fault()) : MPI_SUCCESS;
}

static int call_start(const struct nbc_call *call, struct nbc_request **out)
{
    struct nbc_context *c;
    int error = call_find_context(call, &c);
    return error ? error : call_launch(call, c, out);
}

/* A blocking call, without the lock: the MPI raises its errors. */
static __attribute__((cold)) int call_by_mpi(const struct nbc_call *call)
{
    if (!nbc_timing_on)
        return nbc_by_mpi_call(call, NULL);
    const struct nbc_moment before = nbc_in_mpi_moment();
    int error = nbc_by_mpi_call(call, NULL);
    nbc_lock();
    const struct nbc_moment now = nbc_in_mpi_moment();
    struct nbc_stats *s = nbc_progress_stats((int)(nbc_alg_by_name(call->coll, "mpi") - nbc_algs));
    nbc_stats_complete(s, now.now - before.now);
    nbc_stats_end(s, true, &before, &now);
    nbc_unlock();
    return error;
}

static int call_raise(const struct nbc_call *call, int error)
{
    if (!error || error == NBC_CALL_BELOW)
        return error;
    return error == NBC_LAUNCH_BY_MPI ? call_by_mpi(call) : nbc_raise(call->comm, error);
}

typedef int makes(const struct nbc_call *call, struct nbc_request **out);

static inline __attribute__((always_inline)) int call_make(const struct nbc_call *call, makes *make,
                                                           MPI_Request *request)
{
    struct nbc_request *r;
    nbc_lock();
    int error = request ? make(call, &r) : call_explain(call, MPI_ERR_ARG, "request is NULL");
    if (!error)
        *request = r->handle;
    nbc_unlock();
    return call_raise(call, error);
}

int nbc_call_start(const struct nbc_call *call, MPI_Request *request)
{
    if (__builtin_expect(!nbc_enabled || nbc_inside, 0))
        return NBC_CALL_BELOW;
    nbc_types_reclaim();
    return call_make(call, call_start, request);
}

/* Returns when the operation is complete, or has failed to start. */
static int call_and_wait(const struct nbc_call *call)
{
    struct nbc_context *c;
    struct nbc_request *r;
    int error = call_find_context(call, &c);
    if (error || nbc_run_blocking(call, c, &error))
        return error;
    error = call_launch(call, c, &r);
    return error ? error : nbc_launch_finish(r);
}

int nbc_call_blocking(const struct nbc_call *call)
{
    /* mutants: && for ||: only slower */
    if (!nbc_enabled || nbc_inside || nbc_native_blocking >> call->coll & 1)
        return NBC_CALL_BELOW;
    return nbc_call_forced(call);
}

int nbc_call_forced(const struct nbc_call *call)
{
    nbc_lock();
    int error = call_and_wait(call);
    nbc_unlock();
    return call_raise(call, error);
}

/* The bitwise AND of the ranks' words over the group (with an intercommunicator: over the remote
 * group), by an operation of nbcshim. All operations progress meanwhile: a rank that is late may
 * have to complete one of them first. */
static int words_and(MPI_Comm comm, enum nbc_purpose purpose, const uint64_t *mine, uint64_t *all,
                     int words)
{
    const struct nbc_call call = {
        .coll = NBC_ALLREDUCE,
        .purpose = purpose,
        .comm = comm,
        .send = {.buf = mine, .count = words, .type = MPI_UNSIGNED_LONG_LONG},
        .recv = {.buf = all, .count = words, .type = MPI_UNSIGNED_LONG_LONG},
        .op = MPI_BAND,
    };
    return call_and_wait(&call);
}

enum { MOST_TAGS = 65536, MOST_WORDS = MOST_TAGS / NBC_TAG_WORD };

int nbc_call_and(struct nbc_context *c, enum nbc_purpose purpose, const uint64_t *mine,
                 uint64_t *all, int words)
{
    uint64_t local[MOST_WORDS];
    const struct nbc_members *m = &c->members;
    if (m->size == 1 && !m->remote_size) {
        memcpy(all, mine, (size_t)words * sizeof *all);
        return MPI_SUCCESS;
    }
    int error = words_and(c->user, purpose, mine, all, words);
    if (error || !m->remote_size)
        return error;
    /* `all` is the AND of the remote group, which sends back that of the local group. */
    error = words_and(c->user, purpose, all, local, words);
    for (int i = 0; i < words && !error; i++)
        all[i] &= local[i];
    return error;
}

static int ranges_and(void *context, const uint64_t *mine, uint64_t *all, int words)
{
    return nbc_call_and(context, NBC_FOR_TAGS, mine, all, words);
}

/* Adds the tags of a further range, if there is one. */
static int tags_widen(struct nbc_context *c)
{
    int range;
    uint64_t key = nbc_hash_pair(c->key, ++c->nsearches);
    int error = nbc_ranges_search(&nbc_ranges, key, ranges_and, c, NULL, &range);
    if (error || range < 0)
        return error; /* unreached: the MPI fails */
    return nbc_tags_add(c->tags, nbc_range_tag(range), nbc_range_size) ? MPI_SUCCESS
                                                                       : MPI_ERR_NO_MEM;
}

/* With few tags left in a range, the ranks would have to agree soon again. */
static bool tags_are_few(const struct nbc_context *c)
{
    return c->range >= 0 && nbc_ranges_on(&nbc_ranges) &&
           c->tags->n + nbc_range_size <= MOST_TAGS && nbc_tags_left(c->tags) < c->tags->n / 4;
}

static int tags_agree(struct nbc_context *c)
{
    uint64_t mine[MOST_WORDS], all[MOST_WORDS];
    int words = nbc_tags_words(c->tags);
    nbc_tags_offer(c->tags, mine);
    int error = nbc_call_and(c, NBC_FOR_TAGS, mine, all, words);
    if (error)
        return error;
    nbc_tags_agree(c->tags, all);
    return tags_are_few(c) ? tags_widen(c) : MPI_SUCCESS;
}

/* Takes a tag, the same on every rank. Collective. */
static int tags_take(struct nbc_context *c, int *tag)
{
    if (!c->tags)
        c->tags =
            nbc_tags_new(c->queue.first_tag + c->tag_space->signal + 1, c->tag_space->npersistent);
    if (!c->tags)
        return MPI_ERR_NO_MEM;
    *tag = nbc_tags_take(c->tags);
    if (*tag >= 0) /* mutants: > for >=: persistent tags are above 0 */
        return MPI_SUCCESS;
    int error = tags_agree(c);
    if (error)
        return error; /* unreached: the MPI fails */
    *tag = nbc_tags_take(c->tags);
    return *tag >= 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* NBCSHIM_CHECK: checks an init call, which may wait for other ranks, by a barrier that starts when
 * the check has passed. */
static int call_check_init(const struct nbc_call *call, struct nbc_context *c)
{
    const struct nbc_call barrier = {
        .coll = NBC_BARRIER, .purpose = NBC_FOR_TAGS, .comm = call->comm};
    struct nbc_request *r;
    int error = nbc_launch_checked(&barrier, c, call, &r);
    return error ? error : nbc_launch_finish(r);
}

/* The collective part of an init call: the check, the algorithm and the tag. A rank that is out of
 * memory takes part as well, since the other ranks do not know that it has failed. Its tag is then
 * neither used nor given back. */
static int call_init_together(const struct nbc_call *call, struct nbc_context *c,
                              struct nbc_request *r, int error, int *tag)
{
    int differs = nbc_launch_start_condition ? call_check_init(call, c) : MPI_SUCCESS;
    int disagreed = differs ? MPI_SUCCESS : nbc_locality_agree(call, c, error ? NULL : r);
    error = error ? error : disagreed;
    int no_tag = differs ? MPI_SUCCESS : tags_take(c, tag);
    if (error || no_tag == MPI_ERR_NO_MEM)
        nbc_context_mark_undeliverable(c);
    if (no_tag == MPI_ERR_NO_MEM && c->delivery != NBC_DELIVERY_SOUND)
        nbc_context_mark_lost(c); /* the others have taken a tag */
    return error ? error : differs ? differs : no_tag;
}

static int call_init(const struct nbc_call *call, struct nbc_request **out)
{
    struct nbc_context *c;
    int tag = -1, error = call_find_context(call, &c);
    if (error)
        return error;
    if (call->has_info && nbc_hints_check(call->info))
        return call_explain(call, MPI_ERR_INFO, "info is not an info object");
    error = nbc_launch_make(call, c, out);
    if (error && error != MPI_ERR_NO_MEM)
        return call_explain(call, error, nbc_bind_fault());
    bool made = !error;
    if (made && !nbc_request_ready(*out))
        error = MPI_ERR_NO_MEM; /* unreached: no memory */
    error = call_init_together(call, c, made ? *out : NULL, error, &tag);
    if (error) {
        if (made)
            nbc_request_free(*out);
        return error;
    }
    (*out)->persistent = true;
    (*out)->tag = tag;
    if (call->has_info) {
        struct nbc_hints hints = {0};
        nbc_hints_read(call->info, &hints);
        (*out)->device = hints.device & 3;
    }
    return MPI_SUCCESS;
}

int nbc_call_init(const struct nbc_call *call, MPI_Request *request)
{
    if (!nbc_enabled || nbc_inside)
        return NBC_CALL_BELOW;
    return call_make(call, call_init, request);
}

const char *nbcshim_algorithm(MPI_Request request, long long *segment)
{
    const char *name = NULL;
    if (!nbc_any_user_requests())
        return NULL;
    nbc_lock();
    const struct nbc_request *r = nbc_request_find(request);
    const struct nbc_sched *s = r && r->plan ? r->plan->sched : r && r->run ? r->run->sched : NULL;
    if (r && r->alg) {
        name = r->alg->name;
        if (segment)
            *segment = s ? s->segment : 0;
    }
    nbc_unlock();
    return name;
}
