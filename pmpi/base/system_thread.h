/* SPDX-License-Identifier: MIT */
/* Threads that nbcshim starts beside those of the program. */
#ifndef NBC_SYSTEM_THREAD_H
#define NBC_SYSTEM_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts a thread with every signal blocked: signals are for the threads of the program. Returns
 * false when the system has no thread to give. */
bool nbc_system_thread_start(pthread_t *thread, void *(*work)(void *), void *arg);

/* Makes a condition variable for nbc_wait_until. Returns false when the system has no memory for
 * it.
 */
bool nbc_condition_init(pthread_cond_t *condition);

/* pthread_cond_wait until nbc_now() is `deadline`. Returns false when it is. */
bool nbc_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline);

#endif
