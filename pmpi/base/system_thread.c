/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/system_thread.h"

#include <signal.h>
#include <time.h>

#include "below/quirks.h"

bool nbc_system_thread_start(pthread_t *thread, void *(*work)(void *), void *arg)
{
    sigset_t all, before;
    if (!NBC_MAY_START_THREADS)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, work, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool nbc_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic))
        return false; /* unreached: no memory */
    bool made = !pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) &&
                !pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return made;
}

bool nbc_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline)
{
    const int64_t second = 1000000000;
    const struct timespec until = {.tv_sec = deadline / second, .tv_nsec = deadline % second};
    return pthread_cond_timedwait(condition, mutex, &until) == 0;
}
