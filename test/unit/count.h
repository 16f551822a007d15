/* SPDX-License-Identifier: MIT */
/* What the schedules of a call cost, counted. */
#ifndef NBC_TEST_COUNT_H
#define NBC_TEST_COUNT_H

#include "cases.h"

/* Messages one after the other (the factor of α), messages and bytes in all, and most bytes that
 * one rank sends or receives (the factor of nβ). */
struct cost {
    int64_t rounds, messages, bytes, most;
};

/* Of all ranks; their schedules have been built. */
struct cost count(struct world *w);

#endif
