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

/* Whether it sleeps, and whether it shall end: under `mutex`, which is taken inside the lock of
 * lock.h and never the other way round. `sleeps` may be read without. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t awake = PTHREAD_COND_INITIALIZER;
static int sleeps;
static bool stop;

static pthread_t thread; /* written by the thread that starts and ends it */
static bool running;

/* So many polls with nothing under way before it goes to sleep: programs start the next operation
 * soon after the last, and waking costs microseconds. */
enum { IDLE_POLLS = 200 };

void nbc_thread_wake(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* what is active was written before, relaxed */
    if (!__atomic_load_n(&sleeps, __ATOMIC_SEQ_CST))
        return;
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&sleeps, 0, __ATOMIC_SEQ_CST);
    pthread_cond_signal(&awake);
    pthread_mutex_unlock(&mutex);
}

/* `sleeps` is set before the last look at what is active, and whoever makes something active looks
 * at `sleeps` afterwards: one of the two sees the other. */
static void sleep_until_needed(void)
{
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&sleeps, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&nbc_nactive, __ATOMIC_SEQ_CST) == 0)
        while (__atomic_load_n(&sleeps, __ATOMIC_SEQ_CST) && !stop)
            pthread_cond_wait(&awake, &mutex);
    __atomic_store_n(&sleeps, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&mutex);
}

static bool ends(void)
{
    pthread_mutex_lock(&mutex);
    bool end = stop;
    pthread_mutex_unlock(&mutex);
    return end;
}

/* Naps while the program waits, ns. It may leave its wait, start the next operation and compute,
 * which nobody tells this thread: so they are short where it has just done so. Where it starts and
 * waits all the time each nap's end takes the processor from it: so they get longer. */
enum { SHORT_NAP = 10000, LONG_NAP = 100000 };

static void nap(long length)
{
    nanosleep(&(struct timespec){.tv_nsec = length}, NULL);
}

static void *work(void *unused)
{
    unsigned pauses = 0;
    int idle = 0;
    long length = SHORT_NAP;
    (void)unused;
    prctl(PR_SET_TIMERSLACK, 1000UL); /* else a nap is 50 us longer */
    while (!ends()) {
        unsigned now = __atomic_load_n(&nbc_pauses, __ATOMIC_RELAXED);
        bool waits = now != pauses; /* a thread of the program does, and polls for itself */
        pauses = now;
        if (nbc_any_active()) {
            idle = 0;
            if (waits)
                nap(length);
            else
                nbc_progress_all();
            length = waits ? 2 * length : length / 2;
            length = length < SHORT_NAP ? SHORT_NAP : length > LONG_NAP ? LONG_NAP : length;
        } else if (++idle > IDLE_POLLS) {
            sleep_until_needed();
            pauses = __atomic_load_n(&nbc_pauses, __ATOMIC_RELAXED);
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

bool nbc_thread_start(void)
{
    stop = false;
    running = pthread_create(&thread, NULL, work, NULL) == 0;
    if (running)
        pin();
    return running;
}

void nbc_thread_stop(void)
{
    if (!running)
        return;
    pthread_mutex_lock(&mutex);
    stop = true;
    pthread_cond_signal(&awake);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    running = false;
}
