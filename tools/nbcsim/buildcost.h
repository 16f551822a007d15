/* SPDX-License-Identifier: MIT */
/* The time and memory that schedules take to build (nbcsim --build-cost). */
#ifndef NBCSIM_BUILDCOST_H
#define NBCSIM_BUILDCOST_H

#include "calls.h"

/* Writes a line with the time and memory that one rank of `call` takes to build its schedule and
 * the time to start it. The number of operations on fewer ranks shows whether it grows linearly in
 * P. */
void buildcost_line(const struct call *call, const struct nbc_alg *alg, FILE *out);
void buildcost_head(FILE *out);

#endif
