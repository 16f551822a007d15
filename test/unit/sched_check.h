/* SPDX-License-Identifier: MIT */
/* Static checks of the schedule of one rank. */
#ifndef NBC_TEST_SCHED_CHECK_H
#define NBC_TEST_SCHED_CHECK_H

#include "sched.h"

/* Checks that references stay inside the temporary buffer and the user's buffers as the shape
 * describes them, that peers are in range and are not this rank itself, that edges point forward
 * (so that the graph is acyclic), that operands of reductions are legal, and that the schedule has
 * no race: two operations that touch the same bytes, one of them writing, are ordered by the graph.
 *
 * Returns NULL if the schedule passes; otherwise `text`, which then holds a message of at most
 * `size` bytes that names the first violation. The time is quadratic in the number of operations.
 */
const char *sched_check(const struct nbc_sched *s, const struct nbc_shape *shape, char *text,
                        size_t size);

#endif
