/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "engine/thread.h"

#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/settings.h"
#include "base/system_thread.h"
#include "engine/progress.h"
#include "engine/wake.h"

static pthread_t thread; /* written by the thread that starts it */
static bool running;     /* the thread that takes it back ends it */

/* So many polls with nothing under way before it goes to sleep: programs start the next operation
 * soon after the last, and waking costs microseconds. */
enum { IDLE_POLLS = 200 };

/* Naps while the program waits, ns. It may leave its wait, start the next operation and compute: of
 * a long operation the thread is told, of others it learns at the end of its nap. So naps are short
 * where it has just done so. Where it starts and waits all the time each nap's end takes the
 * processor from it: so they get longer. */
enum { SHORT_NAP = 10000, LONG_NAP = 100000 };

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
    } else if (nbc_rest_nap(*length)) {
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
    while (!nbc_rest_ends()) {
        unsigned now = pauses_now();
        bool waits = now != pauses;
        pauses = now;
        if (nbc_any_active()) {
            idle = 0;
            attend(waits, &pauses, &length);
        } else if (++idle > IDLE_POLLS) {
            nbc_rest_sleep(&nbc_nactive);
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
        fprintf(stderr, "nbcshim: NBCSHIM_PROGRESS_CPU=%d ignored: the thread cannot run there\n",
                (int)nbc_settings.progress_cpu);
}

bool nbc_thread_start(void)
{
    running = nbc_rest_setup() && nbc_system_thread_start(&thread, work, NULL);
    if (running)
        pin();
    return running;
}

void nbc_thread_stop(void)
{
    if (!__atomic_exchange_n(&running, false, __ATOMIC_SEQ_CST))
        return;
    nbc_rest_end();
    pthread_join(thread, NULL);
    nbc_rest_cleanup();
}
