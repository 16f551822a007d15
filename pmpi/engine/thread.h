/* SPDX-License-Identifier: MIT */
/* The optional progress thread (NBCSHIM_PROGRESS=thread): progresses operations while the program
 * computes. It sleeps while no operation is active, and leaves the polling to threads of the
 * program that wait. */
#ifndef NBC_THREAD_H
#define NBC_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Starts the progress thread. Requires that the MPI below provides MPI_THREAD_MULTIPLE and that the
 * lock is in use (nbc_threaded). Returns false if the system cannot start a thread. Local. */
bool nbc_thread_start(void);

/* From now on the progress thread calls nothing of the MPI, until each call with 1 has been
 * followed by one with -1. Under the lock. */
void nbc_thread_rest(int change);

/* Ends the progress thread, if it runs, before the MPI is finalized or no longer permits it.
 * Without the lock. Local. */
void nbc_thread_stop(void);

/* --- wake.c --- */

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
