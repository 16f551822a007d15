/* SPDX-License-Identifier: MIT */
/* Preloaded into the ranks of bench/hosts, of which there are more than processors: an idle rank
 * sleeps where it would yield. One that yields waits until all others have had a time slice of some
 * milliseconds, also those of programs that are none of the measurement's; one that sleeps is woken
 * in time. That costs a message up to the following time, little beside the network's delay. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

enum { NAP = 30000 }; /* nanoseconds */

int sched_yield(void)
{
    static _Thread_local int exact;
    if (!exact)
        exact = !prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    return nanosleep(&(struct timespec){0, NAP}, NULL);
}
