/* SPDX-License-Identifier: MIT */
/* The clock, and whether operations are timed. */
#ifndef NBC_CLOCK_H
#define NBC_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The time of a monotonic clock in nanoseconds. */
int64_t nbc_now(void);

/* Whether operations record the time of their start, for statistics, a trace or hang reports. Set
 * at init, afterwards only read. */
extern bool nbc_timing_on;

#endif
