/* SPDX-License-Identifier: MIT */
/* The rest of the progress thread: how it sleeps, and how a thread that starts an operation wakes
 * it. A mutex of its own guards this state. The mutex is taken inside the lock of lock.h, and never
 * the other way round. */
#ifndef NBC_WAKE_H
#define NBC_WAKE_H

#include <stdbool.h>
#include <stdint.h>

/* Wakes the progress thread from its sleep, and also from a nap if `much`, because an operation has
 * become active. Under the lock, or after another write that the thread reads before it sleeps. */
void nbc_wake(bool much);

/* Initializes and destroys the condition variable, before the thread starts and after its end.
 * Returns false if the system lacks memory. */
bool nbc_rest_setup(void);
void nbc_rest_cleanup(void);

/* For the progress thread: sleeps until nbc_wake or nbc_rest_end if *active is 0. Without the
 * lock. */
void nbc_rest_sleep(const int *active);

/* For the progress thread: whether nbc_wake(true) has been called since the last call. */
bool nbc_rest_wanted(void);

/* For the progress thread: sleeps for this many nanoseconds, or until a call of nbc_wake(true) that
 * nbc_rest_wanted has not reported. Returns false if the time has passed. Without the lock. */
bool nbc_rest_nap(int64_t length);

/* Asks the thread to end. */
void nbc_rest_end(void);

/* Whether nbc_rest_end has been called since the setup. */
bool nbc_rest_ends(void);

#endif
