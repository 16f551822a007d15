/* SPDX-License-Identifier: MIT */
/* Progress: starts operations, and polls the active ones until they complete. All is local. */
#ifndef NBC_PROGRESS_H
#define NBC_PROGRESS_H

#include "base/stats.h"
#include "op/shared.h"
#include "request/request.h"

/* The number of started and incomplete operations. Deferred ones are not counted: if there are any,
 * there are started ones too. May be read without the lock. */
extern NBC_HIDDEN int nbc_nactive;

/* The number of operations that have completed so far. Written under the lock. */
extern NBC_HIDDEN unsigned nbc_ncompleted;

/* The statistics of a row of nbc_algs. Without NBCSHIM_STATS they mean nothing. Under the lock. */
struct nbc_stats *nbc_progress_stats(int alg);

/* Set if there has been a progress thread: called when an operation has become active, `much` if it
 * is worth waking the thread from a nap. Under the lock. */
extern NBC_HIDDEN void (*nbc_progress_wake)(bool much);

/* Called when an operation completes that has been reported as late. Under the lock. */
extern void (*nbc_progress_late_end)(const struct nbc_request *r);

/* Adds an operation to the statistics whose completion the program learns. If nbc_timing_on. */
void nbc_progress_measure_end(const struct nbc_request *r, bool blocks);

static inline bool nbc_any_active(void)
{
    return __builtin_expect(__atomic_load_n(&nbc_nactive, __ATOMIC_RELAXED) != 0, 0);
}

/* Whether there is something to progress: also what other ranks ask this one to receive. */
static inline bool nbc_progress_is_wanted(void)
{
    return nbc_any_active() || nbc_shared_is_asked();
}

/* The run of the oldest started operation; `next` links the others. NULL if there is none. Under
 * the lock. */
struct nbc_run *nbc_progress_first(void);

/* Starts or defers an inactive operation. Its state is ACTIVE or COMPLETE afterwards. Under the
 * lock. */
void nbc_progress_start(struct nbc_request *r);

/* Progresses r if it is active (r may be NULL), then a bounded number of other operations,
 * different ones each time. Under the lock. */
void nbc_progress(struct nbc_request *r);

/* For the progress loop of the MPI below, in which this thread waits: polls one operation, another
 * one each time; more if some complete. Under the lock. */
void nbc_progress_below(void);

/* nbc_progress without the lock and without a request, for loops that wait for something else. */
void nbc_progress_all(void);

/* Before a constructor of the communicator, and before its end: waits until the MPI has made the
 * duplicates of it that are pending (MPI_Comm_idup). All its ranks have called for them, in the
 * same order, and a constructor may wait for all its ranks. Open MPI agrees on the number of each
 * new communicator by messages on the parent; it hangs if two of these agreements overlap and the
 * ranks progress them in different orders. If NBC_ENDS_WITH_COMM, waits likewise for the operations
 * of the algorithm mpi. Without the lock. */
void nbc_progress_duplicates(MPI_Comm comm);

/* The duplicates of a communicator that are pending, but for those of which this thread is making
 * the first (nbc_making): a callback that it calls meanwhile does not wait for them. Under the
 * lock. */
int64_t nbc_progress_duplicates_of(const struct nbc_context *c);

/* While this thread makes a duplicate that has waited for earlier ones: of its parent so many are
 * pending from this one on. */
struct nbc_making {
    const struct nbc_context *parent;
    int64_t n;
    const struct nbc_making *outer; /* which it has begun before, or NULL */
};
extern NBC_PER_THREAD const struct nbc_making *nbc_making;

/* Makes r the request of an operation whose run, with r->run, has been started without one and is
 * not complete. The queue has no other operation. Under the lock. */
void nbc_progress_adopt(struct nbc_request *r);

/* Starts the run of an operation of a communicator. If it `outlives` the call, the run has a copy
 * of what it must not read later (nbc_run_input). device: of the operation. Returns as
 * nbc_exec_start does. */
static inline bool nbc_progress_run(struct nbc_run *run, const struct nbc_context *c, int tag,
                                    const void *send, const void *recv, bool outlives,
                                    enum nbc_device_use device)
{
    if (nbc_device_may_be()) /* asked once: another thread may unload a library meanwhile */
        return nbc_run_start_with_devices(run, c->hidden, nbc_context_ranks(c), tag, send, recv,
                                          outlives, nbc_context_device_use(c, device));
    return nbc_run_start(run, c->hidden, nbc_context_ranks(c), tag,
                         outlives ? nbc_run_input(run, send) : send, recv);
}

/* Polls the only operation that is pending until it is complete, or for as long as a loop that
 * waits keeps the processor: once at least, and only once if other threads may want the lock.
 * Returns whether it is complete. spins: the number of polls of this wait, zero before the first.
 * Under the lock. */
bool nbc_progress_alone(struct nbc_exec *exec, int *spins);

/* Progresses operations until r is not active. spins: the number of polls that the caller has made
 * before. Under the lock, which it releases between polls. */
void nbc_request_wait(struct nbc_request *r, int spins);

/* Grows while a thread waits: that thread polls, so the progress thread need not. May be read
 * without the lock. */
extern NBC_HIDDEN unsigned nbc_pauses;

/* If there is a progress thread, the number of threads that wait in nbc_request_wait or
 * MPI_Waitall. A poll of theirs may be longer than a nap of that thread, which sees no pause then.
 * May be read without the lock. */
extern NBC_HIDDEN int nbc_waiting;

/* To be called where such a wait begins, with 1, and where it ends, with -1. In between the caller
 * progresses operations all the time. */
void nbc_count_waiting(int change);

/* To be called between two polls of a loop that waits: yields the processor once the wait gets
 * long. spins: as in nbc_progress_alone. Without the lock. */
void nbc_pause(int *spins);

/* The same under the lock, which it releases for the pause. */
void nbc_progress_yield(int *spins);

/* --- thread.c: the optional progress thread (NBCSHIM_PROGRESS=thread) --- */

/* Starts the progress thread. Requires that the MPI below provides MPI_THREAD_MULTIPLE and that the
 * lock is in use (nbc_threaded). Returns false if the system cannot start a thread. Local. */
bool nbc_thread_start(void);

/* From now on the progress thread calls nothing of the MPI, until each call with 1 has been
 * followed by one with -1. Under the lock. */
void nbc_thread_rest(int change);

/* Ends the progress thread, if it runs, before the MPI is finalized or no longer permits it.
 * Without the lock. Local. */
void nbc_thread_stop(void);

/* --- callback.c: what the MPI below calls in its progress loop, where it can (below/hook.h) --- */

/* Hooks nbcshim into the progress loop of the MPI: returns the way as nbc_hook_install does, and
 * nbc_hook_remove ends it. level: the thread level of the MPI. To be called at init, without the
 * lock. Local. */
int nbc_callback_start(int level, bool any_version);

/* The number of calls that have polled operations. May be read without the lock. */
extern unsigned nbc_callback_polls;

#endif
