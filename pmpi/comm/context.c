/* SPDX-License-Identifier: MIT */
#include "comm/context.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "nbcshim.h"

#include "base/hints.h"
#include "base/lock.h"
#include "base/state.h"
#include "below/quirks.h"
#include "op/nodemap.h"
#include "op/plan.h"

#include "hash.h"

/* The attribute MPI_ICOLL_MAX_OUTSTANDING of a communicator that has a context, and its value. */
int nbcshim_icoll_max_outstanding = MPI_KEYVAL_INVALID;
static int max_outstanding = INT_MAX;

/* Another attribute, which the program does not know: the context. (As the value of the first it
 * would cost 230 instructions less, but Fortran programs can change and delete that.) */
static int context_keyval = MPI_KEYVAL_INVALID;

static struct nbc_context *contexts; /* by handle of the program's communicator; under the lock */

struct nbc_ranges nbc_ranges;

static struct nbc_context *world; /* of MPI_COMM_WORLD, while ranges are in use; under the lock */

static struct nbc_context *last_found; /* by the last successful search; under the lock */

/* Contexts that no operation needs. Their communicators are freed without the lock: the MPI may
 * hold locks of its own while it runs attribute callbacks, and the two would be taken in both
 * orders. */
static struct nbc_context *dead; /* linked by next; under the lock */

/* Contexts whose communicators were freed while the lock was taken. NBC_LEAVE, NBC_TAKE. */
static struct nbc_context *gone;

static void delivery_worsen(struct nbc_context *c, enum nbc_delivery to)
{
    if (c->delivery < to)
        c->delivery = to;
}

static void context_give_range(int range)
{
    nbc_assert_locked();
    nbc_assert(nbc_range_is_used(&nbc_ranges, range));
    nbc_range_give(&nbc_ranges, range);
}

/* Leaves the hidden communicator of another context. */
static void context_leave_host(struct nbc_context *c)
{
    if (!c->host)
        return;
    bool sound = c->delivery == NBC_DELIVERY_SOUND;
    if (sound)
        context_give_range(c->range);
    for (int i = 1; sound && c->tags && i < c->tags->nspans; i++)
        context_give_range(c->tags->span[i].first / nbc_range_size);
    if (!sound)
        delivery_worsen(c->host, NBC_DELIVERY_LEAKS);
    nbc_context_release(c->host);
}

void nbc_context_retire(struct nbc_context *c)
{
    context_leave_host(c);
    nbc_spare_give(&nbc_ranges, &c->spare);
    nbc_world_ranks_release(c->members.world);
    nbc_plans_free(c->plans);
    c->plans = NULL;
    c->next = dead;
    dead = c;
}

static void errhandler_free(MPI_Errhandler handler)
{
    if (handler != MPI_ERRHANDLER_NULL)
        NEXT(Errhandler_free)(&handler);
}

/* MPICH from 4.2 on fails, and raises the error on MPI_COMM_SELF, if there is a message that has
 * not been received: of a collective that this rank has not called. */
static void hidden_free(MPI_Comm *hidden)
{
    const bool mutes = NBC_IS_MPICH && nbc_world_initialized;
    MPI_Errhandler kept[2];
    if (mutes)
        nbc_quirks_mute(kept);
    NEXT(Comm_free)(hidden);
    if (mutes)
        nbc_quirks_unmute(kept);
}

static void context_free(struct nbc_context *c)
{
    struct nbc_mail *mail, *later;
    /* With messages that no rank receives it stays: the MPI would use its context id again. */
    if (c->hidden == nbc_shared_comm && !c->host)
        nbc_rings_begin(MPI_COMM_NULL);
    if (!c->host && c->delivery == NBC_DELIVERY_SOUND && c->hidden != MPI_COMM_NULL)
        hidden_free(&c->hidden);
    if (!c->keeps_handler)
        errhandler_free(c->handler);
    DL_FOREACH_SAFE (c->mail, mail, later)
        free(mail); /* unreached: no memory */
    nbc_tags_free(c->tags);
    free(c->members.topology);
    nbc_nodemap_free(c->members.nodes);
    free(c->hints);
    free(c->name);
    free(c);
}

/* Removes a context from the table: its handle no longer finds it. */
static void context_take_out(struct nbc_context *c)
{
    nbc_assert_locked();
    if (c->found)
        HASH_DEL(contexts, c);
    c->found = false;
    last_found = NULL;
}

/* Separates a context from the program's communicator, which no longer exists. */
static void context_detach(struct nbc_context *c)
{
    context_take_out(c);
    if (c == world) { /* those that have a range keep the hidden communicator */
        nbc_ranges_end(&nbc_ranges);
        world = NULL;
    }
    c->life = NBC_CONTEXT_FREED;
    c->user = MPI_COMM_NULL;
    if (c->uses == 0)
        nbc_context_retire(c);
}

/* Detaches the contexts whose communicators were freed while the lock was taken. A caller that
 * looks for a handle comes first: the MPI may have returned that of a freed communicator again. */
static void contexts_settle_slow(void)
{
    struct nbc_context *c = NBC_TAKE(gone), *next;
    for (; c; c = next) {
        next = c->next;
        context_detach(c);
    }
}

static inline void contexts_settle(void)
{
    nbc_assert_locked();
    if (__builtin_expect(__atomic_load_n(&gone, __ATOMIC_RELAXED) != NULL, 0))
        contexts_settle_slow();
}

void nbc_context_reclaim(void)
{
    nbc_lock();
    contexts_settle();
    struct nbc_context *c = dead, *next;
    dead = NULL;
    nbc_unlock();
    for (; c; c = next) {
        next = c->next;
        context_free(c);
    }
}

struct nbc_error_scope nbc_context_scope(struct nbc_context *c)
{
    contexts_settle();
    struct nbc_error_scope scope = {.comm = c->user};
    if (c->life < NBC_CONTEXT_FREED || c->handler == MPI_ERRHANDLER_NULL)
        return scope;
    /* The scope is used without the lock, so a reference to the handler is never dropped. */
    scope.handler = c->handler;
    scope.freed = true;
    c->keeps_handler = true;
    return scope;
}

void nbc_context_mark_undeliverable(struct nbc_context *c)
{
    if (c->members.size > 1 || c->members.remote_size)
        delivery_worsen(c, NBC_DELIVERY_LEAKS);
}

void nbc_context_mark_number_undeliverable(struct nbc_context *c, struct nbc_queue *queue,
                                           int64_t seq)
{
    nbc_context_mark_undeliverable(c);
    if (c->delivery != NBC_DELIVERY_SOUND && queue->end_seq > seq + queue->ring)
        queue->end_seq = seq + queue->ring;
}

void nbc_context_mark_lost(struct nbc_context *c)
{
    delivery_worsen(c, NBC_DELIVERY_LOST);
}

/* Messages of operations that were given up may be left over. */
bool nbc_context_ask_revoked(struct nbc_context *c)
{
    if (!c->revoked && c->user != MPI_COMM_NULL && nbc_revoked_ask(c->user)) {
        c->revoked = true;
        nbc_context_mark_lost(c);
    }
    return c->revoked;
}

/* Callback of the attribute, which the MPI calls when the program's communicator is freed, by
 * whichever call. It does not wait for the lock: the MPI may hold locks of its own, for which the
 * holder of ours waits. Then the context is left to the next thread that takes the lock and looks
 * for a context. */
static int context_on_free(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)extra;
    struct nbc_context *c = value;
    if (NEXT(Comm_get_errhandler)(comm, &c->handler))
        c->handler = MPI_ERRHANDLER_NULL; /* unreached: the MPI fails */
    c->has_attribute = false;
    if (c->life == NBC_CONTEXT_FREEING)
        return MPI_SUCCESS;
    bool locked = nbc_lock_if_free();
    if (nbc_has_lock())
        context_detach(c);
    else
        NBC_LEAVE(gone, c);
    if (locked)
        nbc_unlock();
    if (locked && !nbc_inside)
        nbc_context_reclaim();
    return MPI_SUCCESS;
}

/* Without the attribute, after an error, the MPI has nothing to delete. */
static void context_end(struct nbc_context *c)
{
    if (c->has_attribute) {
        /* mutants: leave a call out: at the end of the process */
        NEXT(Comm_delete_attr)(c->user, context_keyval);
        return;
    }
    nbc_lock(); /* unreached: the MPI fails */
    /* unreached below: the MPI fails */
    context_detach(c);
    nbc_unlock();
}

void nbc_context_end_early(MPI_Comm comm)
{
    struct nbc_context *c = nbc_context_of(comm);
    if (c)
        context_end(c);
}

void nbc_context_cleanup(void)
{
    struct nbc_context *c, *later;
    nbc_context_reclaim();
    HASH_ITER (hh, contexts, c, later)
        context_end(c);
    nbc_context_reclaim();
    NEXT(Comm_free_keyval)(&context_keyval);
    /* mutants: leave a call out: left at MPI_Finalize */
    NEXT(Comm_free_keyval)(&nbcshim_icoll_max_outstanding);
}

int nbc_context_setup(void)
{
    int error = NEXT(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
                                         &nbcshim_icoll_max_outstanding, NULL);
    if (error)
        return error; /* unreached: the MPI fails */
    error = NEXT(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, context_on_free, &context_keyval, NULL);
    if (error)
        /* mutants: leave a call out: left at MPI_Finalize */
        NEXT(Comm_free_keyval)(&nbcshim_icoll_max_outstanding); /* unreached: the MPI fails */
    return error;
}

static int members_query(struct nbc_context *c)
{
    struct nbc_members *m = &c->members;
    int inter;
    NEXT(Comm_rank)(c->user, &m->rank);
    NEXT(Comm_size)(c->user, &m->size);
    NEXT(Comm_test_inter)(c->user, &inter);
    if (inter)
        NEXT(Comm_remote_size)(c->user, &m->remote_size);
    if (nbc_world_initialized || m->size + m->remote_size > 1)
        __atomic_store_n(&nbc_has_peers, true, __ATOMIC_RELAXED);
    m->later = c->host;
    return m->later ? MPI_SUCCESS : nbc_nodemap_place(m, c->user, c->spans_jobs);
}

/* The members of a duplicate are those of its parent. */
static void members_share(struct nbc_context *c, const struct nbc_members *parent)
{
    struct nbc_members *m = &c->members;
    nbc_lock();
    *m = *parent;
    m->topology = NULL;
    m->nodes = NULL;
    m->later = parent->later || (c->host && !parent->in_world);
    m->in_world = c->host && parent->in_world;
    m->world = m->in_world ? parent->world : NULL;
    if (m->world)
        m->world->refs++;
    nbc_unlock();
}

int nbc_context_complete_slow(struct nbc_context *c)
{
    struct nbc_members *m = &c->members;
    int inter = m->remote_size > 0, n = inter ? m->remote_size : m->size;
    int error = c->host ? nbc_world_ranks_new(c->user, inter, n, &m->world) : MPI_SUCCESS;
    m->in_world = c->host && !error;
    if (!error)
        error = nbc_nodemap_place(m, c->user, c->spans_jobs);
    m->later = error;
    return error;
}

static int attribute_set(struct nbc_context *c)
{
    int error = NEXT(Comm_set_attr)(c->user, context_keyval, c);
    c->has_attribute = !error;
    return error;
}

static int context_fill(struct nbc_context *c, const struct nbc_origin *origin)
{
    int error = MPI_SUCCESS;
    if (origin->duplicate)
        members_share(c, &origin->parent->members);
    else
        error = members_query(c);
    if (!error && !c->host)
        error = NEXT(Comm_set_errhandler)(c->hidden, MPI_ERRORS_RETURN);
    if (!error)
        error = NEXT(Comm_set_attr)(c->user, nbcshim_icoll_max_outstanding, &max_outstanding);
    return error ? error : attribute_set(c);
}

/* Discards a context that was never published. */
/* unreached: no memory, or the MPI fails */
static void context_discard(struct nbc_context *c)
{
    nbc_lock();
    HASH_DEL(contexts, c);
    if (c->host)
        nbc_context_release(c->host);
    nbc_world_ranks_release(c->members.world);
    nbc_unlock();
    free(c);
}

static void context_set_tags(struct nbc_context *c, int range, int first,
                             const struct nbc_tag_space *space)
{
    c->range = range;
    c->queue.first_tag = first;
    c->tag_space = space;
    c->blocking.first_tag = first + space->ring;
    c->queue.ring = c->blocking.ring = space->ring;
}

/* Under the lock. */
static void context_set_hidden(struct nbc_context *c, const struct nbc_origin *origin)
{
    c->hidden = origin->hidden;
    context_set_tags(c, NBC_NO_RANGE, 0, &nbc_tags_whole);
    if (origin->range < 0)
        return;
    c->hidden = world->hidden;
    c->host = world;
    nbc_context_hold(world);
    context_set_tags(c, origin->range, nbc_range_tag(origin->range), &nbc_tags_range);
}

struct nbc_origin nbc_origin_of(struct nbc_context *parent, bool duplicate)
{
    nbc_assert_locked();
    return (struct nbc_origin){
        .parent = parent,
        .duplicate = duplicate,
        .key = nbc_hash_pair(parent->key, ++parent->nsearches),
        .range = nbc_ranges_on(&nbc_ranges) ? nbc_spare_take(&parent->spare) : NBC_NO_RANGE,
    };
}

void nbc_origin_drop(const struct nbc_origin *origin)
{
    if (origin->range < 0)
        return;
    nbc_lock();
    context_give_range(origin->range);
    nbc_unlock();
}

static int context_adopt(MPI_Comm comm, const struct nbc_origin *origin)
{
    struct nbc_context *c = malloc(sizeof *c); /* calloc takes no block from glibc's cache */
    struct nbc_context *stale;
    if (!c)
        return MPI_ERR_NO_MEM;
    memset(c, 0, offsetof(struct nbc_context, recent));
    c->life = NBC_CONTEXT_LIVE;
    c->handler = MPI_ERRHANDLER_NULL;
    c->user = comm;
    c->found = true;
    c->key = origin->key;
    c->spans_jobs = comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF &&
                    (!origin->parent || origin->parent->spans_jobs);
    c->queue.end_seq = c->blocking.end_seq = INT64_MAX;
    nbc_lock();
    contexts_settle();
    /* The MPI may return the handle of a communicator that another thread has freed, before that
     * thread has removed its context. */
    HASH_FIND(hh, contexts, &comm, sizeof comm, stale);
    if (stale)
        context_take_out(stale);
    HASH_ADD(hh, contexts, user, sizeof comm, c);
    bool added = nbc_added(c);
    if (added)
        context_set_hidden(c, origin);
    nbc_unlock();
    if (!added) {
        /* unreached below: no memory */
        free(c);
        return MPI_ERR_NO_MEM;
    }
    int error = context_fill(c, origin);
    if (error)
        context_discard(c); /* unreached: no memory */
    return error;
}

int nbc_context_adopt(MPI_Comm comm, const struct nbc_origin *origin)
{
    int error = context_adopt(comm, origin);
    if (error)
        nbc_origin_drop(origin);
    return error;
}

/* Neither MPI_Comm_create nor MPI_Comm_split runs the program's attribute callbacks, unlike
 * MPI_Comm_dup. MPICH 4.0.2 crashes in MPI_Comm_create if MPI_COMM_WORLD is not initialized. On
 * MPICH 5.0.2 a grid or graph of fewer ranks than its parent has the group of its parent. */
static int comm_duplicate(MPI_Comm comm, MPI_Comm *hidden)
{
    MPI_Group group;
    int rank, size, group_size, inter;
    NEXT(Comm_test_inter)(comm, &inter);
    NEXT(Comm_rank)(comm, &rank);
    NEXT(Comm_size)(comm, &size);
    int error = NEXT(Comm_group)(comm, &group);
    if (error)
        return error; /* unreached: the MPI fails */
    NEXT(Group_size)(group, &group_size);
    if (!inter && (!nbc_world_initialized || group_size != size))
        error = NEXT(Comm_split)(comm, 0, rank, hidden);
    else
        error = NEXT(Comm_create)(comm, group, hidden);
    NEXT(Group_free)(&group);
    return error;
}

int nbc_context_attach(MPI_Comm comm, struct nbc_origin *origin)
{
    if (comm == MPI_COMM_NULL) {
        nbc_origin_drop(origin);
        return MPI_SUCCESS;
    }
    nbc_context_reclaim();
    bool duplicates = origin->range < 0;
    int error = duplicates ? comm_duplicate(comm, &origin->hidden) : MPI_SUCCESS;
    if (error)
        return error;
    error = nbc_context_adopt(comm, origin);
    if (error && duplicates)
        NEXT(Comm_free)(&origin->hidden);
    return error;
}

/* Makes the duplicate of MPI_COMM_WORLD the one that has the ranges. */
static void world_begins(struct nbc_context *c)
{
    if (nbc_nranges == 0)
        return;
    nbc_ranges_begin(&nbc_ranges, nbc_nranges);
    world = c;
    c->members.in_world = true;
    context_set_tags(c, NBC_WORLD_RANGE, nbc_range_tag(NBC_WORLD_RANGE), &nbc_tags_range);
}

int nbc_context_attach_world(void)
{
    struct nbc_origin self = {.key = 1, .range = NBC_NO_RANGE}, all = {.range = NBC_NO_RANGE};
    int error = nbc_context_attach(MPI_COMM_SELF, &self);
    if (!error)
        error = nbc_context_attach(MPI_COMM_WORLD, &all);
    if (error)
        return error;
    nbc_lock();
    struct nbc_context *c = nbc_context_find(MPI_COMM_WORLD);
    world_begins(c);
    nbc_rings_begin(c->hidden);
    nbc_unlock();
    return MPI_SUCCESS;
}

struct nbc_context *nbc_context_find(MPI_Comm comm)
{
    contexts_settle();
    struct nbc_context *c = last_found;
    if (c && c->user == comm)
        return c;
    HASH_FIND(hh, contexts, &comm, sizeof comm, c);
    if (c)
        last_found = c;
    return c;
}

const struct nbc_context *nbc_context_after(const struct nbc_context *c)
{
    if (c || !contexts)
        return c ? c->hh.prev : NULL;
    return ELMT_FROM_HH(contexts->hh.tbl, contexts->hh.tbl->tail);
}

struct nbc_context *nbc_context_ending(MPI_Comm comm)
{
    nbc_lock();
    struct nbc_context *c = nbc_context_find(comm);
    if (c) {
        nbc_context_is_revoked(c); /* later there is no handle to ask for */
        c->life = NBC_CONTEXT_FREEING;
        c->ends = true;
    }
    nbc_unlock();
    /* The communicators that nobody can free keep their attribute: its place among those of the
     * program decides when MPI_Finalize deletes it. */
    if (c && nbc_threaded && c->has_attribute && comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF)
        NEXT(Comm_delete_attr)(comm, context_keyval);
    return c;
}

/* The MPI will delete the attribute later, or the communicator stays. */
static void context_stay(struct nbc_context *c, bool ends)
{
    MPI_Errhandler handler = c->handler;
    nbc_lock();
    c->handler = MPI_ERRHANDLER_NULL;
    c->life = NBC_CONTEXT_LIVE;
    c->ends = ends;
    nbc_unlock();
    errhandler_free(handler);
    if (!c->has_attribute)
        attribute_set(c);
}

bool nbc_context_ended(struct nbc_context *c, MPI_Comm comm)
{
    if (comm != MPI_COMM_NULL || c->has_attribute) {
        context_stay(c, comm == MPI_COMM_NULL);
        return false;
    }
    nbc_lock();
    nbc_context_hold(c);
    context_detach(c);
    nbc_unlock();
    return true;
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

enum nbc_device_use nbc_context_device_use(const struct nbc_context *c, enum nbc_device_use of_call)
{
    if (nbc_settings.device)
        return nbc_settings.device;
    return of_call || !c->hints ? of_call : c->hints->device;
}

struct nbc_context *nbc_context_of(MPI_Comm comm)
{
    if (!nbc_enabled || nbc_inside)
        return NULL;
    nbc_lock();
    struct nbc_context *c = nbc_context_find(comm);
    nbc_unlock();
    return c;
}
