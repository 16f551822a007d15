/* SPDX-License-Identifier: MIT */
#include "engine/progress.h"

#include <sched.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/stats.h"
#include "base/tag_space.h"
#include "below/next.h"
#include "comm/context.h"
#include "engine/drain_op.h"
#include "engine/wake.h"
#include "op/run.h"
#include "op/trace_transport.h"

#include "coll.h"
#include "exec.h"
#include "select.h"

int nbc_nactive;
unsigned nbc_ncompleted;

/* Operations under way, oldest first, and the next of them to be looked at. Under the lock. */
static struct nbc_run *active, *cursor;

/* How many others a call that waits for one operation moves on. */
enum { WINDOW = 8 };

static void count_active(int change)
{
    __atomic_store_n(&nbc_nactive, nbc_nactive + change, __ATOMIC_RELAXED);
}

/* Whether the count is that of the list. */
static bool agrees(void)
{
    const struct nbc_run *run;
    int n;
    DL_COUNT(active, run, n);
    return n == nbc_nactive;
}

static void leave(struct nbc_run *run)
{
    nbc_assert(agrees());
    if (cursor == run)
        cursor = run->next;
    DL_DELETE(active, run);
    count_active(-1);
}

static void enter(struct nbc_request *r)
{
    struct nbc_run *run = r->run;
    nbc_assert(agrees());
    nbc_request_set_state(r, NBC_ACTIVE);
    run->request = r;
    DL_APPEND(active, run);
    count_active(1);
    if (nbc_settings.progress == NBC_PROGRESS_THREAD)
        nbc_wake(run->lengthy);
}

static void begin(struct nbc_request *r);

/* The orphan takes the place of a failed operation, and its tag. Where there can be none the
 * communicator is lost: a later operation might be given the messages of this one. */
static bool leave_orphan(struct nbc_request *r)
{
    int error;
    struct nbc_request *orphan = nbc_drain_op_new(r, &error);
    if (error)
        nbc_context_mark_lost(r->context);
    if (!orphan)
        return false;
    if (r->persistent)
        r->tag = -1;
    else
        DL_REPLACE_ELEM2(r->context->queue.pending, r, orphan, older, newer);
    begin(orphan);
    return true;
}

/* Nanoseconds that threads of the program have spent waiting, where nbc_timing_on. */
static int64_t waited;

static void record(const struct nbc_request *r)
{
    struct nbc_trace_event *e = nbc_trace_add(NBC_TRACE_OPERATION, r->started, nbc_now());
    if (!e)
        return;
    e->id = r->trace_id;
    e->peer = r->run->last_peer;
    e->coll = (int16_t)r->coll;
    e->alg = r->alg ? (int16_t)(r->alg - nbc_algs) : -1;
    e->persistent = r->persistent;
    e->number = r->persistent ? r->tag - nbc_tag_ring + 1 : r->seq + 1;
}

static void measure(const struct nbc_request *r)
{
    int64_t now = __atomic_load_n(&waited, __ATOMIC_RELAXED);
    if (r->drains)
        return;
    if (r->alg && !r->context->guarded)
        nbc_stats_complete(r->alg, nbc_now() - r->started, now - r->waited_before);
    if (nbc_tracing)
        record(r);
}

/* Returns with r complete, or gone if it is an orphan. */
static void complete(struct nbc_request *r)
{
    struct nbc_context *c = r->context;
    leave(r->run);
    nbc_ncompleted++;
    if (__builtin_expect(nbc_timing_on, 0))
        measure(r);
    r->error = r->run->exec.error;
    nbc_request_set_state(r, NBC_COMPLETE);
    if (r->drains && r->error)
        nbc_context_mark_lost(c);
    bool replaced = r->error && !r->drains && leave_orphan(r);
    c->queue.nstarted -= !r->persistent && !r->drains;
    if (!r->persistent && !replaced)
        DL_DELETE2(c->queue.pending, r, older, newer);
    if (r->drains)
        nbc_request_free(r);
    else if (r->plan && !r->persistent)
        nbc_request_drop_run(r);
}

/* It has its run. */
static void begin(struct nbc_request *r)
{
    struct nbc_run *run = r->run;
    enter(r);
    run->comm = r->context->hidden;
    run->tag = r->tag;
    run->cursor = 0;
    run->trace_id = r->trace_id;
    run->last_peer = -1;
    run->exec.base[NBC_BUF_SEND] = (uintptr_t)r->send;
    run->exec.base[NBC_BUF_RECV] = (uintptr_t)r->recv;
    if (nbc_exec_start(&run->exec))
        complete(r);
}

/* How many nonblocking operations of a communicator are under way at once. The MPI below gets slow
 * with the number of messages it holds: Open MPI 4 walks over all its unfinished sends in each
 * poll, and both search the messages that came early one by one. */
enum { STARTED_MOST = 64 };

/* Nonblocking operations take tags in turn. One whose tag may still be in use waits until all that
 * are a whole turn older are complete here: messages of the two cannot be confused, since those of
 * the older one are all posted before, on both sides.
 *
 * Neither this nor the limit above can deadlock: they are started in order, so the oldest that is
 * not complete everywhere is under way on every rank that has called it, and it depends only on
 * calls that every rank makes before any newer one. */
static bool can_begin(const struct nbc_request *r)
{
    const struct nbc_context *c = r->context;
    return c->queue.nstarted < STARTED_MOST && r->seq - c->queue.pending->seq < nbc_tag_ring;
}

/* It ends without having begun. */
static void refuse(struct nbc_request *r, int error)
{
    nbc_ncompleted++;
    r->error = error;
    nbc_request_set_state(r, NBC_COMPLETE);
    DL_DELETE2(r->context->queue.pending, r, older, newer);
}

static void start_deferred(struct nbc_context *c)
{
    while (c->queue.deferred && can_begin(c->queue.deferred)) {
        struct nbc_request *r = c->queue.deferred;
        int error = MPI_SUCCESS;
        if (r->prerequisite && !r->prerequisite->over(r->prerequisite, &error))
            return;
        r->prerequisite = NULL;
        c->queue.deferred = r->newer;
        if (c->queue.deferred)
            nbc_request_prefetch(c->queue.deferred);
        if (!error && !nbc_request_ready(r)) {
            nbc_context_mark_number_undeliverable(c, r->seq);
            error = MPI_ERR_NO_MEM;
        }
        if (error) {
            refuse(r, error);
            continue;
        }
        c->queue.nstarted++;
        begin(r);
    }
}

static bool is_deferred(const struct nbc_request *r)
{
    const struct nbc_request *first = r->context->queue.deferred;
    return !r->persistent && first && r->seq >= first->seq;
}

struct nbc_run *nbc_progress_first(void)
{
    return active;
}

static void poll_one(struct nbc_request *r);

static void start(struct nbc_request *r)
{
    struct nbc_context *c = r->context;
    if (c->life == NBC_CONTEXT_DISCONNECTED) {
        r->error = MPI_ERR_COMM; /* it was disconnected */
        nbc_request_set_state(r, NBC_COMPLETE);
        return;
    }
    if (r->persistent && r->tag < 0) {
        r->error = MPI_ERR_OTHER; /* it failed, and its orphan has its tag */
        nbc_context_mark_undeliverable(c);
        nbc_request_set_state(r, NBC_COMPLETE);
        return;
    }
    if (r->run && r->run->poll) {
        enter(r);
        return;
    }
    if (r->persistent) {
        begin(r);
        return;
    }
    nbc_request_set_state(r, NBC_ACTIVE);
    DL_APPEND2(c->queue.pending, r, older, newer);
    if (!c->queue.deferred)
        c->queue.deferred = r;
    start_deferred(c);
    /* The program may call nothing else for long: make room. (Guards are called from
     * start_deferred, which must not come to the same context again.) */
    if (c->queue.deferred && !c->guarded)
        poll_one(c->queue.pending);
}

/* What has to be moved on for r: of a deferred one the oldest of its context, or that one's check.
 */
static struct nbc_request *awaited(struct nbc_request *r)
{
    while (is_deferred(r)) {
        r = r->context->queue.pending;
        if (is_deferred(r))
            r = r->prerequisite->request;
    }
    return r;
}

/* The same for NBCSHIM_TRACE, NBCSHIM_STATS and NBCSHIM_TIMEOUT. */
static void start_stamped(struct nbc_request *r)
{
    r->started = nbc_now();
    r->lateness_reported = false;
    r->waited_before = __atomic_load_n(&waited, __ATOMIC_RELAXED);
    if (nbc_tracing)
        r->trace_id = nbc_trace_next_id();
    int64_t begin = r->started;
    start(r);
    if (nbc_tracing)
        nbc_trace_inside(begin, 0, true);
}

void nbc_progress_start(struct nbc_request *r)
{
    nbc_assert_locked();
    if (__builtin_expect(nbc_timing_on, 0))
        start_stamped(r);
    else
        start(r);
}

/* Nothing of r may be touched afterwards but its state: it has not been told to the program. */
static void poll_one(struct nbc_request *r)
{
    if (r->run && r->run->poll) {
        if (!r->run->poll(r->run, &r->error))
            return;
        leave(r->run);
        nbc_request_set_state(r, NBC_COMPLETE);
        return;
    }
    r = awaited(r);
    struct nbc_context *c = r->context;
    if (!nbc_exec_poll(&r->run->exec))
        return;
    complete(r);
    if (c->queue.deferred)
        start_deferred(c);
    if (c->guarded && c->guarded->queue.deferred)
        start_deferred(c->guarded);
}

static void progress(struct nbc_request *r)
{
    if (r && r->state == NBC_ACTIVE)
        poll_one(r);
    for (int idle = 0; idle < WINDOW && active;) {
        struct nbc_run *other = cursor ? cursor : active;
        unsigned before = nbc_ncompleted;
        cursor = other->next;
        if (other->request == r && !other->next && other == active)
            return; /* the only one, polled above */
        if (other->request != r)
            poll_one(other->request);
        idle += nbc_ncompleted == before;
        if (!cursor)
            return; /* once round is enough */
    }
}

static void progress_traced(struct nbc_request *r)
{
    int64_t begin = nbc_now(), seen = nbc_trace_seen();
    progress(r);
    nbc_trace_inside(begin, seen, false);
}

void nbc_progress(struct nbc_request *r)
{
    nbc_assert_locked();
    if (__builtin_expect(nbc_tracing, 0))
        progress_traced(r);
    else
        progress(r);
}

struct nbc_request *nbc_progress_pending(const struct nbc_context *c)
{
    struct nbc_run *run;
    if (c->queue.pending)
        return c->queue.pending;
    DL_FOREACH (active, run) {
        const struct nbc_context *at = run->request->context;
        if (at == c || (at && at->guarded == c))
            return run->request;
    }
    return NULL;
}

void nbc_request_wait(struct nbc_request *r)
{
    int spins = 0;
    while (r->state == NBC_ACTIVE) {
        nbc_progress(r);
        if (r->state == NBC_ACTIVE)
            nbc_progress_yield(&spins);
    }
}

void nbc_progress_all(void)
{
    if (!nbc_any_active())
        return;
    nbc_lock();
    nbc_progress(NULL);
    nbc_unlock();
}

unsigned nbc_pauses;

/* The time from one pause of a loop to the next is time that the program waits. */
static void count_waiting(bool first)
{
    static _Thread_local int64_t last;
    int64_t now = nbc_now();
    if (!first)
        __atomic_fetch_add(&waited, now - last, __ATOMIC_RELAXED);
    last = now;
}

void nbc_pause(int *spins)
{
    nbc_report_poll();
    if (__builtin_expect(nbc_timing_on, 0))
        count_waiting(*spins == 0);
    if (nbc_threaded)
        __atomic_fetch_add(&nbc_pauses, 1, __ATOMIC_RELAXED);
    /* Short waits are common and must not pay for a system call. */
    if (++*spins > 64)
        sched_yield();
}

void nbc_progress_yield(int *spins)
{
    nbc_unlock();
    nbc_pause(spins);
    nbc_lock();
}

void nbc_progress_pause(int *spins)
{
    nbc_progress_all();
    nbc_pause(spins);
}
