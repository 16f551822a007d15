/* SPDX-License-Identifier: MIT */
/* The lock: one mutex guards all state of pmpi/. It is taken only if the program may call MPI from
 * several threads, or if the progress thread runs. The thread that holds the lock may call the MPI
 * below. It runs no code of the program except reduction operators, and it does not wait. */
#ifndef NBC_LOCK_H
#define NBC_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "below/next.h"

/* Assertions of builds that look for faults (--enable-sanitize, test/mutate); they cost nothing in
 * others. */
#ifdef NBC_CHECKED
#define nbc_assert(condition) assert(condition)
#else
#define nbc_assert(condition) ((void)(true || (condition)))
#endif

/* Whether the lock is in use. Set at init, before a second thread can enter nbcshim. */
extern NBC_HIDDEN bool nbc_threaded;

/* Where this thread is. MPI libraries call their own PMPI_Wait and other functions, which nbcshim
 * replaces; such a call from below must go straight to the MPI. */
enum {
    NBC_OUTSIDE = 0, /* in the program */
    NBC_LOCKED = 1,  /* in nbcshim, with the lock */
    NBC_BELOW = 2    /* in a call of the MPI that calls others (files.c); with NBC_LOCKED: in a
                      * callback of the program, or of nbcshim, that such a call runs */
};
extern NBC_HIDDEN NBC_PER_THREAD unsigned char nbc_inside;

static inline bool nbc_has_lock(void)
{
    return nbc_inside & NBC_LOCKED;
}

/* Asserts that the calling thread holds the lock. */
#define nbc_assert_locked() nbc_assert(nbc_has_lock())

/* A signal handler that interrupts a thread which holds the lock cannot read the state. It sets
 * nbc_report_asked, and the thread that next releases the lock, or waits without it, calls
 * nbc_report. nbc_report is set before the handler is installed. */
extern NBC_HIDDEN volatile sig_atomic_t nbc_report_asked;
extern void (*nbc_report)(void);

/* Writes a hang report if a signal has asked for one. */
static inline void nbc_report_poll(void)
{
    if (__builtin_expect(nbc_report_asked, 0))
        nbc_report();
}

extern pthread_mutex_t nbc_mutex;

/* Take and release the lock. nbc_unlock also writes a hang report if a signal has asked for one. */
static inline void nbc_lock(void)
{
    if (nbc_threaded)
        pthread_mutex_lock(&nbc_mutex);
    nbc_inside |= NBC_LOCKED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a signal handler reads nbc_inside */
}

static inline void nbc_unlock(void)
{
    nbc_assert_locked();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nbc_inside &= NBC_BELOW;
    if (nbc_threaded)
        pthread_mutex_unlock(&nbc_mutex);
    nbc_report_poll();
}

/* For a function that the MPI calls in any of its own calls: takes the lock if it is free and this
 * thread does not hold it, and returns whether it has. */
static inline bool nbc_lock_if_free(void)
{
    if (nbc_has_lock() || (nbc_threaded && pthread_mutex_trylock(&nbc_mutex) != 0))
        return false;
    nbc_inside |= NBC_LOCKED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

/* A thread that cannot have the lock leaves an element in a list, linked by its member next, for a
 * holder, who takes the whole list. Both are atomic. */
#define NBC_LEAVE(list, element)                                                                 \
    do                                                                                           \
        (element)->next = __atomic_load_n(&(list), __ATOMIC_RELAXED);                            \
    while (!__atomic_compare_exchange_n(&(list), &(element)->next, element, 1, __ATOMIC_RELEASE, \
                                        __ATOMIC_RELAXED))
#define NBC_TAKE(list) __atomic_exchange_n(&(list), NULL, __ATOMIC_ACQUIRE)

#endif
