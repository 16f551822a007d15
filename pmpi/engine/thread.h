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

#endif
