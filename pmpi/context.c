/* SPDX-License-Identifier: MIT */
#include "context.h"

#include <limits.h>
#include <stdlib.h>

#include "check.h"
#include "export.h"
#include "hints.h"
#include "lock.h"
#include "nbcshim.h"
#include "nodemap.h"
#include "plan.h"
#include "progress.h"
#include "sessions.h"
#include "state.h"
#include "tag_space.h"
#include "tags.h"
#include "token.h"
#include "topology.h"

int nbcshim_icoll_max_outstanding = MPI_KEYVAL_INVALID;

static struct nbc_context *contexts; /* by handle of the user's communicator; under the lock */

static struct nbc_context *last; /* the one found last; under the lock */

/* Contexts that nobody needs any more. Their communicators are freed without our lock: the MPI may
 * hold locks of its own around attribute callbacks, and take the two in the other order. */
static struct nbc_context *doomed; /* linked by next; under the lock */

static void doom(struct nbc_context *c)
{
    nbc_plans_free(c->plans);
    c->plans = NULL;
    nbc_check_forget(c);
    c->next = doomed;
    doomed = c;
}

/* With messages in it that nobody receives it is left behind: the MPI would use its number again.
 */
static void end_hidden(struct nbc_context *c)
{
    if (!c->lost && !c->missed && c->hidden != MPI_COMM_NULL)
        NEXT(Comm_free)(&c->hidden);
}

void nbc_context_bury(void)
{
    nbc_lock();
    struct nbc_context *c = doomed, *next;
    doomed = NULL;
    nbc_unlock();
    for (; c; c = next) {
        next = c->next;
        end_hidden(c);
        if (c->has_handler && !c->keeps_handler)
            NEXT(Errhandler_free)(&c->handler);
        nbc_token_forget(c->mail);
        nbc_tags_free(c->tags);
        nbc_topology_free(c->topology);
        nbc_nodemap_free(c->nodes);
        free(c->hints);
        free(c);
    }
}

void nbc_context_hold(struct nbc_context *c)
{
    c->uses++;
}

void nbc_context_release(struct nbc_context *c)
{
    if (--c->uses == 0 && c->user == MPI_COMM_NULL)
        doom(c);
}

struct nbc_place nbc_context_place(struct nbc_context *c)
{
    struct nbc_place place = {.comm = c->user};
    if (!c->has_handler)
        return place;
    /* It is used without the lock: one reference is never given back. */
    place.handler = c->handler;
    place.freed = true;
    c->keeps_handler = true;
    return place;
}

void nbc_context_miss(struct nbc_context *c)
{
    c->missed |= c->size > 1 || c->remote_size;
}

void nbc_context_miss_number(struct nbc_context *c, int64_t seq)
{
    nbc_context_miss(c);
    if (c->missed && c->end_seq > seq + nbc_tag_ring)
        c->end_seq = seq + nbc_tag_ring;
}

bool nbc_context_good(const struct nbc_context *c)
{
    return !c->lost && c->next_seq < c->end_seq;
}

/* Nobody finds it by its handle any more. */
static void take_out(struct nbc_context *c)
{
    nbc_must_lock();
    if (!c->out)
        HASH_DEL(contexts, c);
    c->out = true;
    last = NULL;
}

/* The user's communicator is gone. Operations that still run take its error handler: then *handler
 * is null. */
static void detach(struct nbc_context *c, MPI_Errhandler *handler)
{
    take_out(c);
    c->user = MPI_COMM_NULL;
    if (c->uses == 0) {
        doom(c);
        return;
    }
    c->has_handler = *handler != MPI_ERRHANDLER_NULL;
    c->handler = *handler;
    *handler = MPI_ERRHANDLER_NULL;
}

/* The user's communicator is being freed: the attribute tells, whoever frees it. */
static int on_free(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)extra;
    struct nbc_context *c = value;
    MPI_Errhandler handler;
    if (NEXT(Comm_get_errhandler)(comm, &handler))
        handler = MPI_ERRHANDLER_NULL;
    if (c->ending) {
        c->handler = handler;
        c->ended = true;
        return MPI_SUCCESS;
    }
    bool locked = nbc_lock_outside();
    detach(c, &handler);
    if (locked) {
        nbc_unlock();
        nbc_context_bury();
    }
    if (handler != MPI_ERRHANDLER_NULL)
        NEXT(Errhandler_free)(&handler);
    if (nbc_world_initialized && comm == MPI_COMM_SELF)
        nbc_sessions_end_world();
    return MPI_SUCCESS;
}

void nbc_context_cleanup(void)
{
    struct nbc_context *c, *later;
    HASH_ITER(hh, contexts, c, later)
    NEXT(Comm_delete_attr)(c->user, nbcshim_icoll_max_outstanding);
    nbc_context_bury();
    NEXT(Comm_free_keyval)(&nbcshim_icoll_max_outstanding);
}

int nbc_context_setup(void)
{
    return NEXT(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, on_free, &nbcshim_icoll_max_outstanding,
                                    NULL);
}

static int fill(struct nbc_context *c)
{
    int inter;
    NEXT(Comm_rank)(c->user, &c->rank);
    NEXT(Comm_size)(c->user, &c->size);
    NEXT(Comm_test_inter)(c->user, &inter);
    if (inter)
        NEXT(Comm_remote_size)(c->user, &c->remote_size);
    c->max_outstanding = INT_MAX;
    c->end_seq = INT64_MAX;
    int error = nbc_nodemap_place(c);
    if (!error)
        error = NEXT(Comm_set_errhandler)(c->hidden, MPI_ERRORS_RETURN);
    return error ? error : NEXT(Comm_set_attr)(c->user, nbcshim_icoll_max_outstanding, c);
}

/* What nobody has met yet. */
static void forget(struct nbc_context *c)
{
    nbc_lock();
    HASH_DEL(contexts, c);
    nbc_unlock();
    free(c);
}

/* One that another thread has just freed, and not told yet, may have had the same handle. */
static void give_way(MPI_Comm comm)
{
    struct nbc_context *c;
    HASH_FIND(hh, contexts, &comm, sizeof comm, c);
    if (c)
        take_out(c);
}

int nbc_context_adopt(MPI_Comm comm, MPI_Comm hidden)
{
    struct nbc_context *c = calloc(1, sizeof *c);
    if (!c)
        return MPI_ERR_NO_MEM;
    c->user = comm;
    c->hidden = hidden;
    nbc_lock();
    give_way(comm);
    HASH_ADD(hh, contexts, user, sizeof comm, c);
    nbc_unlock();
    if (!nbc_added(c)) {
        free(c);
        return MPI_ERR_NO_MEM;
    }
    int error = fill(c);
    if (error)
        forget(c);
    return error;
}

/* MPI_Comm_create does not run the user's attribute callbacks, as MPI_Comm_dup would. */
static int duplicate(MPI_Comm comm, MPI_Comm *hidden)
{
    MPI_Group group;
    int error = NEXT(Comm_group)(comm, &group);
    if (error)
        return error;
    error = NEXT(Comm_create)(comm, group, hidden);
    NEXT(Group_free)(&group);
    return error;
}

int nbc_context_attach(MPI_Comm comm)
{
    MPI_Comm hidden;
    if (comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    nbc_context_bury();
    int error = duplicate(comm, &hidden);
    if (error)
        return error;
    error = nbc_context_adopt(comm, hidden);
    if (error)
        NEXT(Comm_free)(&hidden);
    return error;
}

struct nbc_context *nbc_context_find(MPI_Comm comm)
{
    struct nbc_context *c = last;
    nbc_must_lock();
    if (c && c->user == comm)
        return c;
    HASH_FIND(hh, contexts, &comm, sizeof comm, c);
    if (c)
        last = c;
    return c;
}

struct nbc_context *nbc_context_ending(MPI_Comm comm)
{
    nbc_lock();
    struct nbc_context *c = nbc_context_find(comm);
    if (c)
        c->ending = true;
    nbc_unlock();
    return c;
}

/* All ranks are in MPI_Comm_disconnect. Later it would be a collective call out of place, and some
 * would wait in it for others that hold a request. Those cannot start any more; windows and files
 * go on. Under the lock, but for the waiting. */
static void disconnect_hidden(struct nbc_context *c)
{
    if (c->ngates > 0)
        return;
    nbc_progress_drain(c);
    if (c->lost || c->missed)
        return;
    MPI_Comm hidden = c->hidden;
    c->hidden = MPI_COMM_NULL;
    nbc_unlock();
    NEXT(Comm_disconnect)(&hidden);
    nbc_lock();
}

void nbc_context_end(struct nbc_context *c, bool disconnect)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    nbc_lock();
    c->ending = false;
    if (c->ended) {
        handler = c->handler;
        nbc_context_hold(c);
        detach(c, &handler);
        if (disconnect)
            disconnect_hidden(c);
        nbc_context_release(c);
    }
    nbc_unlock();
    nbc_context_bury();
    if (handler != MPI_ERRHANDLER_NULL)
        NEXT(Errhandler_free)(&handler);
}

int nbc_context_hint(MPI_Comm comm, MPI_Info info)
{
    int error = MPI_SUCCESS;
    nbc_lock();
    struct nbc_context *c = nbc_context_find(comm);
    if (c && !c->hints && !(c->hints = calloc(1, sizeof *c->hints)))
        error = MPI_ERR_NO_MEM;
    else if (c)
        nbc_hints_read(info, c->hints);
    nbc_unlock();
    return error;
}

#ifdef HAVE_MPI_COMM_SET_INFO
EXPORT(int, Comm_set_info, (MPI_Comm comm, MPI_Info info), (comm, info))
{
    int error = NEXT(Comm_set_info)(comm, info);
    return error || !nbc_enabled || nbc_inside ? error : nbc_context_hint(comm, info);
}
#endif
