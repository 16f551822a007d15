/* SPDX-License-Identifier: MIT */
#ifndef NBCSIM_BUILDCOST_H
#define NBCSIM_BUILDCOST_H

#include "calls.h"

/* What one rank of `call` pays: to build its schedule (time, memory), to start it. One line. The
 * number of operations on fewer ranks tells whether it grows as P does. */
void buildcost_line(const struct call *call, const struct nbc_alg *alg, FILE *out);
void buildcost_head(FILE *out);

#endif
