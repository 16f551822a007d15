/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "engine/thread.h"

#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/system_thread.h"
#include "engine/progress.h"
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
    } else if (nbc_rest_nap(*length)) {
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
    while (!nbc_rest_ends()) {
        unsigned now = pauses_now();
        silent = now == pauses && is_waiting() ? silent + 1 : 0;
        bool waits = nbc_rest_wanted() ? begins_to_wait(now)
                                       : now != pauses || (silent > 0 && silent <= SILENT_NAPS);
        pauses = now;
        if (nbc_any_active()) {
            idle = 0;
            thread_attend(waits, &pauses, &length);
        } else if (++idle > IDLE_POLLS) {
            nbc_rest_sleep(&nbc_nactive);
            pauses = pauses_now();
            idle = 0;
        }
        sched_yield();
    }
    return NULL;
}

static void thread_pin(void)
{
    cpu_set_t set;
    if (nbc_settings.progress_cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((int)nbc_settings.progress_cpu, &set);
    if (pthread_setaffinity_np(thread, sizeof set, &set))
        fprintf(stderr, "nbcshim: NBCSHIM_PROGRESS_CPU=%d ignored: the thread cannot run there\n",
                (int)nbc_settings.progress_cpu);
}

bool nbc_thread_start(void)
{
    running = nbc_rest_setup() && nbc_system_thread_start(&thread, progress_thread, NULL);
    if (running)
        thread_pin();
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
    nbc_rest_end();
    pthread_join(thread, NULL);
    nbc_rest_cleanup();
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
