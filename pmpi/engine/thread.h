/* SPDX-License-Identifier: MIT */
/* The optional progress thread (NBCSHIM_PROGRESS=thread): moves operations on while the program
 * computes. It sleeps when nothing is under way, and keeps out of the way of threads of the program
 * that wait, since these poll themselves. */
#ifndef NBC_THREAD_H
#define NBC_THREAD_H

#include <stdbool.h>

/* Starts it. The MPI below gives MPI_THREAD_MULTIPLE, and the lock is in use (nbc_threaded). False
 * where the system has no thread to give. */
bool nbc_thread_start(void);

/* Ends it, before the MPI is finalized or does not bear it any more. Nothing happens where there is
 * none. Without the lock. */
void nbc_thread_stop(void);

#endif
