/* SPDX-License-Identifier: MIT */
/* The rest of the progress thread: how it sleeps, and how whoever starts an operation wakes it. Its
 * state has a mutex of its own, which is taken inside the lock of lock.h and never the other way
 * round. */
#ifndef NBC_WAKE_H
#define NBC_WAKE_H

#include <stdbool.h>
#include <stdint.h>

/* There is something to do: ends the sleep of the thread, and a nap if that is `much`. Under the
 * lock, or after any other write that the thread looks at before it sleeps. */
void nbc_wake(bool much);

/* For the thread and those who start and stop it. Returns false when the system has no memory. */
bool nbc_rest_setup(void);
void nbc_rest_cleanup(void);

/* Sleeps until nbc_wake or nbc_rest_end, but not while *active is other than 0. */
void nbc_rest_sleep(const int *active);

/* Sleeps for that many nanoseconds. Returns whether it was woken. */
bool nbc_rest_nap(int64_t length);

/* Asks the thread to end, and tells whether somebody has. */
void nbc_rest_end(void);
bool nbc_rest_ends(void);

#endif
