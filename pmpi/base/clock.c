/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

bool nbc_timing_on;

int64_t nbc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
