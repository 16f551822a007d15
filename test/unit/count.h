/* SPDX-License-Identifier: MIT */
/* The costs of a call, counted in its schedules. */
#ifndef NBC_TEST_COUNT_H
#define NBC_TEST_COUNT_H

#include "cases.h"

/* Consecutive messages (the factor of α), messages and bytes in all, and the largest number of
 * bytes that a rank sends or receives (the factor of nβ). */
struct cost {
    int64_t rounds, messages, bytes, most;
};

/* Counts them over all ranks, whose schedules have been built. */
struct cost count(struct world *w);

/* Returns the bytes that leave a group of `group` successive ranks; the first group has `cut`
 * fewer. */
int64_t count_between(const struct world *w, int group, int cut);

#endif
