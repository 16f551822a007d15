/* SPDX-License-Identifier: MIT */
#include "engine/progress.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/in_mpi.h"
#include "base/lock.h"
#include "base/settings.h"
#include "below/hook.h"
#include "below/next.h"
#include "below/quirks.h"
#include "comm/context.h"
#include "op/message.h"
#include "op/mpi_transport.h"
#include "op/nodemap.h"
#include "op/run.h"
#include "op/trace_transport.h"

#include "coll.h"
#include "exec.h"
#include "select.h"

int nbc_nactive;
unsigned nbc_ncompleted;
void (*nbc_progress_wake)(bool much);

/* The active list: the runs of started operations, oldest first. `cursor` is the next one to be
 * polled. Under the lock. */
static struct nbc_run *active, *cursor;

/* The largest number of polls of other operations, without a completion, in one call of
 * nbc_progress. */
enum { WINDOW = 8 };

static void count_completed(void)
{
    /* mutants: - for +: only whether it changes counts */
    __atomic_store_n(&nbc_ncompleted, nbc_ncompleted + 1, __ATOMIC_RELAXED);
}

static void count_active(int change)
{
    /* mutants: - for +: only whether it is 0 counts */
    __atomic_store_n(&nbc_nactive, nbc_nactive + change, __ATOMIC_RELAXED);
}

/* Whether nbc_nactive is the length of the active list. */
/* unreached: only with NBC_CHECKED */
static bool active_is_counted(void)
{
    const struct nbc_run *run;
    int n;
    DL_COUNT(active, run, n);
    return n == nbc_nactive;
}

static inline void active_leave(struct nbc_run *run)
{
    nbc_assert(active_is_counted());
    if (cursor == run)
        cursor = run->next;
    DL_DELETE(active, run);
    count_active(-1);
}

static inline void active_enter(struct nbc_request *r)
{
    struct nbc_run *run = r->run;
    nbc_assert(active_is_counted());
    run->request = r;
    DL_APPEND(active, run);
    count_active(1);
    if (nbc_progress_wake)
        nbc_progress_wake(run->lengthy);
}

static int32_t operation_comm(const struct nbc_request *r)
{
    const struct nbc_context *c = r->context;
    return nbc_trace_comm_of(c->key, c->user, c->members.size);
}

static void operation_trace(const struct nbc_request *r)
{
    struct nbc_trace_event *e = nbc_trace_add(NBC_TRACE_OPERATION, r->began.now, nbc_now());
    if (!e)
        return;
    e->id = r->run->trace_id;
    e->peer = r->run->last_peer;
    e->coll = (int16_t)r->coll;
    e->alg = (int16_t)(r->alg - nbc_algs);
    e->persistent = r->persistent;
    e->number = nbc_request_call_number(r);
    e->bytes = nbc_request_bytes(r);
    e->comm = operation_comm(r);
}

struct nbc_stats *nbc_progress_stats(int alg)
{
    static struct nbc_stats *all, nobody_reads; /* indexed by row of nbc_algs */
    if (!all && nbc_settings.stats)
        all = calloc(nbc_nalgs, sizeof *all);
    return all ? &all[alg] : &nobody_reads;
}

/* The statistics of an operation that the program called: not of those of nbcshim, nor of
 * operations without an algorithm; or NULL. */
static struct nbc_stats *operation_stats(const struct nbc_request *r)
{
    return r->alg && !r->internal ? nbc_progress_stats((int)(r->alg - nbc_algs)) : NULL;
}

void nbc_progress_measure_end(const struct nbc_request *r, bool blocks)
{
    const struct nbc_moment now = nbc_in_mpi_moment();
    struct nbc_stats *s = operation_stats(r);
    if (s)
        nbc_stats_end(s, blocks, &r->began, &now);
}

void (*nbc_progress_late_end)(const struct nbc_request *r);

static void operation_measure(const struct nbc_request *r)
{
    struct nbc_stats *s = operation_stats(r);
    if (r->lateness_reported)
        nbc_progress_late_end(r);
    if (s)
        nbc_stats_complete(s, nbc_now() - r->began.now);
    if (nbc_tracing)
        operation_trace(r);
}

static inline void operation_complete(struct nbc_request *r)
{
    active_leave(r->run);
    count_completed();
    if (__builtin_expect(nbc_timing_on, 0))
        operation_measure(r);
    r->error = r->run->exec.error;
    if (__builtin_expect(r->run->exec.lost, 0))
        nbc_context_mark_lost(r->context);
    if (!r->persistent) {
        struct nbc_queue *queue = nbc_request_queue(r);
        queue->nstarted--;
        DL_DELETE2(queue->pending, r, older, newer);
        if (r->plan)
            nbc_request_drop_run(r);
    }
    nbc_request_set_state(r, NBC_COMPLETE);
}

static __attribute__((cold)) void trace_begin(struct nbc_request *r)
{
    static int32_t nstarted; /* under the lock */
    r->run->trace_id = ++nstarted;
    r->run->trace_key = r->context->key;
    r->run->last_peer = -1;
}

/* Starts the execution of an operation that has its run. */
static inline __attribute__((always_inline)) void operation_begin(struct nbc_request *r)
{
    active_enter(r);
    if (__builtin_expect(nbc_tracing, 0))
        trace_begin(r);
    if (nbc_progress_run(r->run, r->context, r->tag, r->send, r->recv, true, r->device))
        operation_complete(r);
}

/* The largest number of operations of a queue that are started at once. The MPI
 * below gets slow with the number of its messages: Open MPI 4 walks over all unfinished sends in
 * each poll, and both MPIs search the unexpected messages one by one. */
enum { STARTED_MOST = 64 };

/* The operations of a queue use tags in turn. If the tag of an operation may still be in use, the
 * operation waits until all operations that are one turn older are complete on this rank. Messages
 * of the two cannot be confused then, because those of the older one have all been posted before,
 * on both sides.
 *
 * Neither this condition nor the limit above can deadlock. Operations start in order, so the oldest
 * one that is not complete on all ranks has started on every rank that has called it, and it
 * depends only on calls that every rank makes before any newer one. */
static bool operation_may_begin(const struct nbc_queue *queue, const struct nbc_request *r)
{
    return queue->nstarted < STARTED_MOST && r->seq - queue->pending->seq < queue->ring;
}

/* Completes an operation that has not started, with an error. */
static __attribute__((cold)) void operation_refuse(struct nbc_request *r, int error)
{
    count_completed();
    r->error = error;
    DL_DELETE2(nbc_request_queue(r)->pending, r, older, newer);
    nbc_request_set_state(r, NBC_COMPLETE);
}

static inline __attribute__((always_inline)) void start_deferred(struct nbc_queue *queue)
{
    while (queue->deferred && operation_may_begin(queue, queue->deferred)) {
        struct nbc_request *r = queue->deferred;
        int error = MPI_SUCCESS;
        if (r->start_condition) {
            if (!r->start_condition->over(r->start_condition, &error))
                return;
            if (!error && r->context->delivery == NBC_DELIVERY_LOST)
                error = MPI_ERR_OTHER; /* an earlier one is not over on other ranks */
        }
        if (nbc_context_is_revoked(r->context))
            error = nbc_error_revoked;
        r->start_condition = NULL;
        queue->deferred = r->newer;
        if (queue->deferred)
            nbc_request_prefetch(queue->deferred); /* mutants: leave a call out: for speed */
        if (!error && !nbc_request_ready(r)) {
            nbc_context_mark_number_undeliverable(r->context, queue, r->seq);
            error = MPI_ERR_NO_MEM;
        }
        if (error) {
            operation_refuse(r, error);
            continue;
        }
        queue->nstarted++; /* mutants: leave a count out: for speed */
        operation_begin(r);
    }
}

static __attribute__((noinline)) void queue_start_deferred(struct nbc_queue *queue)
{
    start_deferred(queue);
}

void nbc_progress_adopt(struct nbc_request *r)
{
    struct nbc_queue *queue = nbc_request_queue(r);
    nbc_assert_locked();
    nbc_request_set_state(r, NBC_ACTIVE);
    DL_APPEND2(queue->pending, r, older, newer);
    queue->nstarted++; /* mutants: leave a count out: for speed */
    active_enter(r);
}

static bool is_deferred(const struct nbc_request *r)
{
    const struct nbc_request *first = nbc_request_queue(r)->deferred;
    return !r->persistent && first && r->seq >= first->seq;
}

struct nbc_run *nbc_progress_first(void)
{
    return active;
}

static void operation_poll(struct nbc_request *r);

/* Starts one without a schedule. */
static __attribute__((cold, noinline)) void operation_start_other(struct nbc_request *r)
{
    active_enter(r);
    if (!r->alg)
        return;
    /* the algorithm mpi, which starts at once */
    r->context->nby_mpi += NBC_ENDS_WITH_COMM;
    if (nbc_tracing)
        trace_begin(r);
    operation_poll(r);
}

static __attribute__((noinline)) void operation_enqueue(struct nbc_request *r)
{
    struct nbc_queue *queue = nbc_request_queue(r);
    DL_APPEND2(queue->pending, r, older, newer);
    if (!queue->deferred)
        queue->deferred = r;
    start_deferred(queue);
    /* The program may make no other call for long, so complete older operations. */
    if (queue->deferred)
        operation_poll(queue->pending); /* mutants: leave a call out: for speed */
}

static inline __attribute__((always_inline)) void operation_start(struct nbc_request *r)
{
    struct nbc_context *c = r->context;
    bool disconnected = c->life == NBC_CONTEXT_DISCONNECTED;
    if (disconnected || c->delivery == NBC_DELIVERY_LOST) {
        r->error = disconnected                ? MPI_ERR_COMM
                   : nbc_context_is_revoked(c) ? nbc_error_revoked /* maybe since the call asked */
                                               : MPI_ERR_OTHER;
        nbc_request_set_state(r, NBC_COMPLETE);
        return;
    }
    nbc_request_set_state(r, NBC_ACTIVE);
    if (r->run && r->run->poll)
        operation_start_other(r);
    else if (r->persistent)
        operation_begin(r);
    else
        operation_enqueue(r);
}

/* The operation that must progress so that r does: r itself, or, if r is deferred, the oldest of
 * its queue, or that one's start condition. */
static struct nbc_request *operation_awaited(struct nbc_request *r)
{
    while (is_deferred(r)) {
        r = nbc_request_queue(r)->pending;
        if (is_deferred(r))
            r = r->start_condition->request;
    }
    return r;
}

/* operation_start, with the times for NBCSHIM_TRACE, NBCSHIM_STATS and NBCSHIM_TIMEOUT. */
static __attribute__((cold)) void operation_start_timed(struct nbc_request *r)
{
    const int64_t begin = nbc_now();
    struct nbc_stats *s = operation_stats(r);
    r->began = nbc_in_mpi_moment();
    r->lateness_reported = false;
    if (nbc_tracing)
        operation_comm(r); /* asks for its name, while it has one */
    if (s)
        nbc_stats_start(s, nbc_request_bytes(r));
    operation_start(r);
    if (nbc_tracing)
        nbc_trace_inside(begin, 0, true);
}

void nbc_progress_start(struct nbc_request *r)
{
    nbc_assert_locked();
    if (__builtin_expect(nbc_timing_on, 0))
        operation_start_timed(r);
    else
        operation_start(r);
}

/* After its schedule has been executed. Checks of calls are among the blocking ones, and calls wait
 * for them: those come first, since one that starts may be complete at once. */
static void operation_end(struct nbc_request *r)
{
    struct nbc_context *c = r->context;
    operation_complete(r);
    if (c->blocking.deferred)
        queue_start_deferred(&c->blocking);
    if (c->queue.deferred)
        queue_start_deferred(&c->queue);
}

/* Ends the run of an operation whose communicator has been revoked. Inside of the progress loop of
 * the MPI nothing can be cancelled. */
static __attribute__((cold, noinline)) bool operation_give_up(struct nbc_request *r)
{
    if (nbc_inside_mpi_loop || !nbc_context_is_revoked(r->context))
        return false;
    nbc_exec_give_up(&r->run->exec, nbc_error_revoked);
    return true;
}

/* Polls an operation without a schedule. It may run callbacks of the program, without the lock
 * (MPI_Comm_idup): they may wait for operations, and enter the MPI's loop again. */
static bool operation_poll_other(struct nbc_request *r)
{
    const bool before = nbc_is_below, looks = nbc_inside_mpi_loop;
    nbc_is_below = nbc_inside_mpi_loop = false;
    const bool over = r->run->poll(r->run, &r->error);
    nbc_is_below = before;
    nbc_inside_mpi_loop = looks;
    return over;
}

/* Progresses an active operation. Afterwards only the state of r may be read, which remains valid
 * until the completion of r is reported to the program. */
static void operation_poll(struct nbc_request *r)
{
    if (r->run && r->run->poll) {
        if ((nbc_is_below && r->alg) || !operation_poll_other(r))
            return;
        if (nbc_timing_on && r->alg)
            operation_measure(r);
        if (NBC_ENDS_WITH_COMM && r->alg)
            r->context->nby_mpi--;
        count_completed();
        active_leave(r->run);
        nbc_request_set_state(r, NBC_COMPLETE);
        return;
    }
    r = operation_awaited(r);
    if (nbc_transport_poll(&r->run->exec) ||
        (__builtin_expect(nbc_may_be_revoked, 0) && operation_give_up(r)))
        operation_end(r);
}

static void progress_window(struct nbc_request *r, int window)
{
    if (r && r->state == NBC_ACTIVE)
        operation_poll(r);
    for (int idle = 0; idle < window && active;) { /* mutants: <= for <: how long to poll */
        struct nbc_run *other = cursor ? cursor : active;
        unsigned before = nbc_ncompleted;
        cursor = other->next;
        if (other->request == r && !other->next && other == active)
            return; /* the only one, which was polled above */
        if (other->request != r)
            operation_poll(other->request);
        idle += nbc_ncompleted == before; /* mutants: != for ==: how long to poll */
        if (!cursor)
            return; /* every operation has been polled */
    }
}

static void progress(struct nbc_request *r, int window)
{
    nbc_assert_locked();
    const bool traces = __builtin_expect(nbc_tracing, 0);
    const int64_t begin = traces ? nbc_now() : 0, seen = traces ? nbc_trace_seen : 0;
    if (nbc_shared_is_asked())
        nbc_shared_receive_all();
    progress_window(r, window);
    if (traces)
        nbc_trace_inside(begin, seen, false);
}

void nbc_progress(struct nbc_request *r)
{
    progress(r, WINDOW);
}

static bool is_the_only_one(const struct nbc_request *r)
{
    return active && active == r->run && !active->next && !active->poll;
}

/* Short waits are common and should not make a system call: a loop that waits keeps the processor
 * for this many polls, if they do not take longer than 100 us. A message that begins with a
 * handshake takes 5 us within a node, some 100 polls; while another rank may need the processor, a
 * wait is not that patient. */
enum { SPINS = 512, SPINS_OVERSUBSCRIBED = 64 };

/* Whether the polls of a wait take so long that it gives up the processor before SPINS of them:
 * many operations may be pending, or another thread may hold the lock each time. */
static bool polls_take_long(int spins)
{
    enum { READ_CLOCK = 64, SPIN_TIME = 100000 }; /* polls, ns */
    static NBC_PER_THREAD int64_t first;
    if ((unsigned)spins % READ_CLOCK > 0)
        return false;
    int64_t now = nbc_now();
    if (spins == READ_CLOCK)
        first = now;
    return now - first > SPIN_TIME;
}

/* Counts a poll of a loop that waits, and returns whether the loop keeps the processor. */
static bool spins_on(int *spins)
{
    if (*spins >= (nbc_oversubscribed ? SPINS_OVERSUBSCRIBED : SPINS))
        return false;
    ++*spins;
    if (polls_take_long(*spins))
        *spins = SPINS;
    return true;
}

/* A step of a wait, if no other operation is pending. */
static bool advance(struct nbc_exec *exec)
{
    return NBC_BLOCKS_TO_WAIT ? nbc_exec_wait(exec) : nbc_transport_await(exec);
}

inline bool nbc_progress_alone(struct nbc_exec *exec, int *spins)
{
    do
        if (advance(exec))
            return true;
    while (!nbc_threaded && spins_on(spins) && !nbc_report_asked);
    return false;
}

/* One step of a wait for r. */
static void wait_step(struct nbc_request *r)
{
    if (!NBC_BLOCKS_TO_WAIT || !is_the_only_one(r))
        nbc_progress(r);
    else if (advance(&r->run->exec))
        operation_end(r);
}

unsigned nbc_pauses;
int nbc_waiting;

void nbc_count_waiting(int change)
{
    if (nbc_settings.progress == NBC_PROGRESS_THREAD)
        __atomic_fetch_add(&nbc_waiting, change, __ATOMIC_RELAXED);
}

void nbc_request_wait(struct nbc_request *r, int spins)
{
    if (r->state != NBC_ACTIVE)
        return;
    if (!nbc_timing_on && is_the_only_one(r) && nbc_progress_alone(&r->run->exec, &spins)) {
        operation_end(r);
        return;
    }
    nbc_count_waiting(1);
    while (r->state == NBC_ACTIVE) {
        wait_step(r);
        if (r->state == NBC_ACTIVE)
            nbc_progress_yield(&spins);
    }
    nbc_count_waiting(-1); /* mutants: leave a call out: for speed */
}

void nbc_progress_all(void)
{
    if (!nbc_progress_is_wanted())
        return;
    nbc_lock();
    nbc_progress(NULL);
    nbc_unlock();
}

void nbc_progress_below(void)
{
    if (nbc_threaded)
        __atomic_fetch_add(&nbc_pauses, 1, __ATOMIC_RELAXED);
    nbc_is_below = true;
    nbc_inside_mpi_loop = nbc_hook_has(NBC_HOOK_LOOKS);
    progress(NULL, 1);
    nbc_is_below = nbc_inside_mpi_loop = false;
}

void nbc_pause(int *spins)
{
    nbc_report_poll();
    if (nbc_threaded)
        __atomic_fetch_add(&nbc_pauses, 1, __ATOMIC_RELAXED);
    if (!spins_on(spins) && !NBC_BLOCKS_TO_WAIT)
        sched_yield();
}

void nbc_progress_yield(int *spins)
{
    nbc_unlock();
    nbc_pause(spins);
    nbc_lock();
}

NBC_PER_THREAD const struct nbc_making *nbc_making;

int64_t nbc_progress_duplicates_of(const struct nbc_context *c)
{
    int64_t n = c->nduplicates - c->nduplicated;
    for (const struct nbc_making *m = nbc_making; m; m = m->outer)
        n -= m->parent == c ? m->n : 0;
    return n;
}

void nbc_progress_duplicates(MPI_Comm comm)
{
    int spins = 0;
    if (!nbc_any_active())
        return;
    nbc_lock();
    const struct nbc_context *c = nbc_context_find(comm);
    while (c && (nbc_progress_duplicates_of(c) > 0 || c->nby_mpi > 0)) {
        nbc_progress(NULL);
        nbc_progress_yield(&spins);
    }
    nbc_unlock();
}
