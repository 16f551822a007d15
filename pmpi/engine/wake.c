/* SPDX-License-Identifier: MIT */
/* The rest of the progress thread: how it sleeps, and how a thread that starts an operation wakes
 * it. A mutex of its own guards this state. The mutex is taken inside the lock of lock.h, and never
 * the other way round. */
#include "engine/thread.h"

#include "base/clock.h"
#include "base/system_thread.h"

enum rest { AWAKE, NAPS, SLEEPS };

/* Whether the progress thread rests, and whether it must end. Written under `mutex`; `rest` may be
 * read without it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t awake;
static int rest;
static bool end;

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

void nbc_wake(bool much)
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

bool nbc_rest_setup(void)
{
    end = false;
    return nbc_condition_init(&awake);
}

void nbc_rest_cleanup(void)
{
    pthread_cond_destroy(&awake);
}

/* `rest` is written before the last read of *active, and a thread that makes an operation active
 * reads `rest` afterwards: at least one of the two sees the other's write. */
void nbc_rest_sleep(const int *active)
{
    pthread_mutex_lock(&mutex);
    set_rest(SLEEPS);
    if (__atomic_load_n(active, __ATOMIC_SEQ_CST) == 0)
        while (rest_now() && !end)
            pthread_cond_wait(&awake, &mutex);
    set_rest(AWAKE);
    pthread_mutex_unlock(&mutex);
}

bool nbc_rest_wanted(void)
{
    unsigned before = lengthy_seen;
    lengthy_seen = lengthy_now();
    return lengthy_seen != before;
}

/* As in nbc_rest_sleep, a start sees that the thread naps, or the thread sees the start. */
bool nbc_rest_nap(int64_t length)
{
    int64_t deadline = nbc_now() + length;
    bool woken = true;
    pthread_mutex_lock(&mutex);
    set_rest(NAPS);
    while (woken && rest_now() && !end && lengthy_now() == lengthy_seen)
        woken = nbc_wait_until(&awake, &mutex, deadline);
    set_rest(AWAKE);
    pthread_mutex_unlock(&mutex);
    return woken;
}

void nbc_rest_end(void)
{
    pthread_mutex_lock(&mutex);
    end = true;
    pthread_cond_signal(&awake);
    pthread_mutex_unlock(&mutex);
}

bool nbc_rest_ends(void)
{
    pthread_mutex_lock(&mutex);
    bool now = end;
    pthread_mutex_unlock(&mutex);
    return now;
}
