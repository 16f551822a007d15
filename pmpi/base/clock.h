/* SPDX-License-Identifier: MIT */
#ifndef NBC_CLOCK_H
#define NBC_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of a clock that never goes back. */
int64_t nbc_now(void);

/* Whether operations are stamped with the time of their start: for statistics, a trace, or reports
 * of hangs. Set at init, read only afterwards. */
extern bool nbc_timing_on;

#endif
