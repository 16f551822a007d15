/* SPDX-License-Identifier: MIT */
/* The threads that nbcshim starts. Without the lock. */
#ifndef NBC_SYSTEM_THREAD_H
#define NBC_SYSTEM_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts a thread in which every signal is blocked: signals are for the threads of the program.
 * Returns false if the system cannot start a thread. */
bool nbc_system_thread_start(pthread_t *thread, void *(*work)(void *), void *arg);

/* Initializes a condition variable for nbc_wait_until. Returns false if the system lacks memory. */
bool nbc_condition_init(pthread_cond_t *condition);

/* pthread_cond_wait with a deadline on the clock of nbc_now. Returns false if the deadline has
 * passed. */
bool nbc_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline);

/* A thread that calls a function every so many nanoseconds, until that returns false. */
struct nbc_timer {
    bool runs, stops;
    int64_t period;
    bool (*call)(void);
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

/* Starts it; the struct is zero. Returns `runs`: false if the system cannot start a thread. */
bool nbc_timer_start(struct nbc_timer *t, int64_t period, bool (*call)(void));

/* Ends it, if it runs. */
void nbc_timer_stop(struct nbc_timer *t);

#endif
