/* SPDX-License-Identifier: MIT */
/* The optional progress thread (NBCSHIM_PROGRESS=thread): progresses operations while the program
 * computes. It sleeps while no operation is active, and leaves the polling to threads of the
 * program that wait. */
#include "engine/progress.h"

#include <sched.h>
#include <sys/prctl.h>

#include "base/in_mpi.h"
#include "base/lock.h"
#include "base/state.h"
#include "base/system_thread.h"
#include "op/stage.h"
#include "request/request.h"

static pthread_t thread; /* written by the thread that starts it */
static bool running;     /* changes at init, and when the thread is stopped */
static int rests;        /* see nbc_thread_rest; written under the lock */

/* The number of polls without an active operation before the thread sleeps: programs start the next
 * operation soon after the last, and waking the thread takes microseconds. */
enum { IDLE_POLLS = 200 };

/* The length of naps while the program waits, in ns. The program may end its wait, start the next
 * operation and compute. It wakes the thread for a long operation; of a short one the thread learns
 * only at the end of its nap. Naps are therefore short if this has just happened. If the program
 * starts operations and waits all the time, each end of a nap takes the processor from it, so naps
 * get longer. */
enum { SHORT_NAP = 10000, LONG_NAP = 100000 };

/* A program that waits for an operation that it has just started pauses within this time, in ns. */
enum { SOON = 3000 };

/* The thread polls again after this many naps in which a waiting program has not paused. */
enum { SILENT_NAPS = 16 };

/* --- its rest --------------------------------------------------------------------------------- */

enum rest { AWAKE, NAPS, SLEEPS };

/* Whether the progress thread rests, and whether it must end. Written under `mutex`, atomically.
 * The mutex is taken inside the lock of lock.h, and never the other way round. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t awake;
static int rest;
static bool ends;

/* The number of long operations that became active, and how many of them the progress thread has
 * seen, which writes the second one. */
static unsigned lengthy, lengthy_seen;

static unsigned lengthy_now(void)
{
    return __atomic_load_n(&lengthy, __ATOMIC_SEQ_CST);
}

static int rest_now(void)
{
    return __atomic_load_n(&rest, __ATOMIC_SEQ_CST);
}

static void set_rest(enum rest now)
{
    __atomic_store_n(&rest, now, __ATOMIC_SEQ_CST);
}

/* Called when an operation has become active, under the lock: wakes the thread from its sleep, and
 * also from a nap if `much`. */
static void wake(bool much)
{
    if (much)
        __atomic_fetch_add(&lengthy, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* nbc_nactive was written before, relaxed */
    if (rest_now() < (much ? NAPS : SLEEPS))
        return;
    pthread_mutex_lock(&mutex);
    set_rest(AWAKE);
    pthread_cond_signal(&awake);
    pthread_mutex_unlock(&mutex);
}

/* `rest` is written before the last read of nbc_nactive, and a thread that makes an operation
 * active reads `rest` afterwards: at least one of the two sees the other's write. */
static void rest_sleep(void)
{
    pthread_mutex_lock(&mutex);
    set_rest(SLEEPS);
    if (__atomic_load_n(&nbc_nactive, __ATOMIC_SEQ_CST) == 0)
        while (rest_now() && !ends)
            pthread_cond_wait(&awake, &mutex);
    set_rest(AWAKE);
    pthread_mutex_unlock(&mutex);
}

/* Whether a long operation has become active since the last call. */
static bool rest_is_wanted(void)
{
    unsigned before = lengthy_seen;
    lengthy_seen = lengthy_now();
    return lengthy_seen != before;
}

/* Sleeps so many nanoseconds, or until a long operation becomes active that rest_is_wanted has not
 * reported. As in rest_sleep, a start sees that the thread naps, or the thread sees the start.
 * Returns false if the time has passed. */
static bool rest_nap(int64_t length)
{
    int64_t deadline = nbc_now() + length;
    bool woken = true;
    pthread_mutex_lock(&mutex);
    set_rest(NAPS);
    while (woken && rest_now() && !ends && lengthy_now() == lengthy_seen)
        woken = nbc_wait_until(&awake, &mutex, deadline);
    set_rest(AWAKE);
    pthread_mutex_unlock(&mutex);
    return woken;
}

/* --- its work --------------------------------------------------------------------------------- */

void nbc_thread_rest(int change)
{
    nbc_assert_locked();
    __atomic_store_n(&rests, rests + change, __ATOMIC_RELAXED);
}

static bool has_to_rest(void)
{
    return __atomic_load_n(&rests, __ATOMIC_RELAXED) > 0;
}

static unsigned pauses_now(void)
{
    return __atomic_load_n(&nbc_pauses, __ATOMIC_RELAXED);
}

/* Whether a thread of the program is in a wait, or in a poll of a wait that takes long. */
static bool is_waiting(void)
{
    return __atomic_load_n(&nbc_waiting, __ATOMIC_RELAXED) > 0;
}

/* Whether the program waits after the start of a long operation. Pauses before that belong to a
 * wait that has ended. */
static bool begins_to_wait(unsigned pauses)
{
    int64_t end = nbc_now() + SOON;
    while (pauses_now() == pauses && !is_waiting())
        if (nbc_now() >= end)
            return false;
    return true;
}

static void thread_poll(void)
{
    void *before;
    nbc_lock();
    if (!has_to_rest()) {
        struct nbc_device *entered = nbc_stage_enter_pending(&before);
        nbc_progress(NULL);
        nbc_stage_leave_pending(entered, before);
    }
    nbc_unlock();
}

/* Operations are active. waits: a thread of the program waits, and polls them itself. */
static void thread_attend(bool waits, unsigned *pauses, long *length)
{
    if (!waits && !has_to_rest()) {
        thread_poll();
        *length = *length / 2 > SHORT_NAP ? *length / 2 : SHORT_NAP;
    } else if (rest_nap(*length)) {
        *pauses = pauses_now(); /* the program may have ended its wait */
    } else {
        *length = 2 * *length < LONG_NAP ? 2 * *length : LONG_NAP;
    }
}

static void *progress_thread(void *unused)
{
    unsigned pauses = 0;
    int idle = 0, silent = 0;
    long length = SHORT_NAP;
    (void)unused;
    prctl(PR_SET_TIMERSLACK, 1000UL); /* otherwise a nap is 50 us longer */
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
        unsigned now = pauses_now();
        silent = now == pauses && is_waiting() ? silent + 1 : 0;
        bool waits = rest_is_wanted() ? begins_to_wait(now)
                                      : now != pauses || (silent > 0 && silent <= SILENT_NAPS);
        pauses = now;
        if (nbc_any_active()) {
            idle = 0;
            thread_attend(waits, &pauses, &length);
        } else if (++idle > IDLE_POLLS) {
            rest_sleep();
            pauses = pauses_now();
            idle = 0;
        }
        sched_yield();
    }
    return NULL;
}

bool nbc_thread_start(void)
{
    ends = false;
    running = nbc_condition_init(&awake) && nbc_system_thread_start(&thread, progress_thread, NULL);
    if (running)
        nbc_progress_wake = wake;
    __atomic_store_n(&nbc_by_thread, running, __ATOMIC_RELAXED);
    return running;
}

/* From now on the calls that wait progress what other threads of the program start. */
static void thread_end(void)
{
    running = false;
    nbc_lock(); /* an operation whose start has left it sends is active now */
    __atomic_store_n(&nbc_by_thread, false, __ATOMIC_RELAXED);
    nbc_request_let_waits_poll(!nbc_hooked);
    nbc_unlock();
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_cond_signal(&awake);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&awake);
    int left = __atomic_load_n(&nbc_nactive, __ATOMIC_RELAXED);
    while (left-- > 0) /* posts the messages that it did not come to; each call polls one or more */
        nbc_progress_all();
}

void nbc_thread_stop(void)
{
    static pthread_mutex_t stopping = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&stopping); /* whoever comes second waits for the end of the thread, too */
    if (running)
        thread_end();
    pthread_mutex_unlock(&stopping);
}
