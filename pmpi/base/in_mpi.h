/* SPDX-License-Identifier: MIT */
/* The clock, and the time that each thread spends in calls of MPI. nbcshim counts it if
 * nbc_timing_on; libnbcprofile.so, which has this file too, always. */
#ifndef NBC_IN_MPI_H
#define NBC_IN_MPI_H

#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

/* The time of a monotonic clock in nanoseconds. */
int64_t nbc_now(void);

/* Whether operations record the time of their start, for statistics, a trace or hang reports. Set
 * at init, afterwards only read. */
extern NBC_HIDDEN bool nbc_timing_on;

/* Around a call of the program. Calls within it are part of it. */
void nbc_in_mpi_enter(void);

/* Returns the duration of the call, 0 if it was within another one. leave_at: the call has ended at
 * that time. */
int64_t nbc_in_mpi_leave(void);
int64_t nbc_in_mpi_leave_at(int64_t now);

/* Whether this thread is in a call. */
bool nbc_in_mpi(void);

/* A moment of a thread: the difference of two tells how long the thread was in calls. */
struct nbc_moment {
    int64_t now;    /* nbc_now */
    int64_t inside; /* the time in calls so far */
    int32_t thread;
};
struct nbc_moment nbc_in_mpi_moment(void);

/* That at which this thread has entered the call in which it is. */
struct nbc_moment nbc_in_mpi_entered(void);

/* How much of the time from `before` until `after` the rank was in calls. If they are of two
 * threads, counts the time that `after` has spent in its call. */
int64_t nbc_in_mpi_between(const struct nbc_moment *before, const struct nbc_moment *after);

#endif
