/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/system_thread.h"

#include <signal.h>
#include <time.h>

#include "base/in_mpi.h"
#include "below/quirks.h"

bool nbc_system_thread_start(pthread_t *thread, void *(*work)(void *), void *arg)
{
    sigset_t all, before;
    if (!NBC_MAY_START_THREADS)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, work, arg) == 0;
    if (started) /* for people, in debuggers, and for test/mpi/sessions.c */
        pthread_setname_np(*thread, "nbcshim");
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

static void *timer_run(void *timer)
{
    struct nbc_timer *t = timer;
    bool again = true;
    pthread_mutex_lock(&t->mutex);
    while (again && !t->stops) {
        bool due = !nbc_wait_until(&t->wake, &t->mutex, nbc_now() + t->period);
        pthread_mutex_unlock(&t->mutex);
        again = !due || t->call();
        pthread_mutex_lock(&t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

bool nbc_timer_start(struct nbc_timer *t, int64_t period, bool (*call)(void))
{
    t->stops = false;
    t->period = period;
    t->call = call;
    pthread_mutex_init(&t->mutex, NULL);
    t->runs = nbc_condition_init(&t->wake) && nbc_system_thread_start(&t->thread, timer_run, t);
    return t->runs;
}

void nbc_timer_stop(struct nbc_timer *t)
{
    if (!t->runs)
        return;
    pthread_mutex_lock(&t->mutex);
    t->stops = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->mutex);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->wake);
    t->runs = false;
}
