/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "env.h"
#include "lock.h"
#include "progress.h"

enum rest { AWAKE, NAPS, SLEEPS };

/* Whether it rests, and whether it shall end: under `mutex`, which is taken inside the lock of
 * lock.h and never the other way round. `rests` may be read without. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t awake; /* on the monotonic clock */
static int rests;
static bool stop;

static pthread_t thread; /* written by the thread that starts it */
static bool running;     /* the thread that takes it back ends it */

/* So many polls with nothing under way before it goes to sleep: programs start the next operation
 * soon after the last, and waking costs microseconds. */
enum { IDLE_POLLS = 200 };

void nbc_thread_wake(bool much)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* what is active was written before, relaxed */
    if (__atomic_load_n(&rests, __ATOMIC_SEQ_CST) < (much ? NAPS : SLEEPS))
        return;
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&rests, AWAKE, __ATOMIC_SEQ_CST);
    pthread_cond_signal(&awake);
    pthread_mutex_unlock(&mutex);
}

/* `rests` is set before the last look at what is active, and whoever makes something active looks
 * at `rests` afterwards: one of the two sees the other. */
static void sleep_until_needed(void)
{
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&rests, SLEEPS, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&nbc_nactive, __ATOMIC_SEQ_CST) == 0)
        while (__atomic_load_n(&rests, __ATOMIC_SEQ_CST) && !stop)
            pthread_cond_wait(&awake, &mutex);
    __atomic_store_n(&rests, AWAKE, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&mutex);
}

static bool ends(void)
{
    pthread_mutex_lock(&mutex);
    bool end = stop;
    pthread_mutex_unlock(&mutex);
    return end;
}

/* Naps while the program waits, ns. It may leave its wait, start the next operation and compute: of
 * a long operation the thread is told, of others it learns at the end of its nap. So naps are short
 * where it has just done so. Where it starts and waits all the time each nap's end takes the
 * processor from it: so they get longer. */
enum { SHORT_NAP = 10000, LONG_NAP = 100000, SECOND = 1000000000 };

/* Returns whether it was woken. */
static bool nap(long length)
{
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += length;
    until.tv_sec += until.tv_nsec / SECOND;
    until.tv_nsec %= SECOND;
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&rests, NAPS, __ATOMIC_SEQ_CST);
    while (!error && __atomic_load_n(&rests, __ATOMIC_SEQ_CST) && !stop)
        error = pthread_cond_timedwait(&awake, &mutex, &until);
    __atomic_store_n(&rests, AWAKE, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&mutex);
    return !error;
}

static unsigned pauses_now(void)
{
    return __atomic_load_n(&nbc_pauses, __ATOMIC_RELAXED);
}

/* Something is under way. waits: a thread of the program does, and polls for itself. */
static void attend(bool waits, unsigned *pauses, long *length)
{
    if (!waits) {
        nbc_progress_all();
        *length = *length / 2 > SHORT_NAP ? *length / 2 : SHORT_NAP;
    } else if (nap(*length)) {
        *pauses = pauses_now(); /* it may wait again, and may not */
    } else {
        *length = 2 * *length < LONG_NAP ? 2 * *length : LONG_NAP;
    }
}

static void *work(void *unused)
{
    unsigned pauses = 0;
    int idle = 0;
    long length = SHORT_NAP;
    (void)unused;
    prctl(PR_SET_TIMERSLACK, 1000UL); /* else a nap is 50 us longer */
    while (!ends()) {
        unsigned now = pauses_now();
        bool waits = now != pauses;
        pauses = now;
        if (nbc_any_active()) {
            idle = 0;
            attend(waits, &pauses, &length);
        } else if (++idle > IDLE_POLLS) {
            sleep_until_needed();
            pauses = pauses_now();
            idle = 0;
        }
        sched_yield();
    }
    return NULL;
}

static void pin(void)
{
    cpu_set_t set;
    if (nbc_settings.progress_cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((int)nbc_settings.progress_cpu, &set);
    if (pthread_setaffinity_np(thread, sizeof set, &set))
        fprintf(stderr, "nbcshim: NBCSHIM_PROGRESS_CPU: processor %d is not to be had\n",
                (int)nbc_settings.progress_cpu);
}

static bool make_condition(void)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic))
        return false;
    bool made = !pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) &&
                !pthread_cond_init(&awake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return made;
}

bool nbc_thread_start(void)
{
    stop = false;
    running = make_condition() && pthread_create(&thread, NULL, work, NULL) == 0;
    if (running)
        pin();
    return running;
}

void nbc_thread_stop(void)
{
    if (!__atomic_exchange_n(&running, false, __ATOMIC_SEQ_CST))
        return;
    pthread_mutex_lock(&mutex);
    stop = true;
    pthread_cond_signal(&awake);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&awake);
}
