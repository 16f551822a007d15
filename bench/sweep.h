/* SPDX-License-Identifier: MIT */
/* Every algorithm that applies to a call, measured against each other. */
#ifndef NBC_BENCH_SWEEP_H
#define NBC_BENCH_SWEEP_H

#include "cases.h"
#include "select.h"

enum { SWEEP_MOST = 16 };

struct contender {
    const struct nbc_alg *alg;
    double median; /* seconds from start to completion, of the slowest rank */
};

/* Measures all of them in turns, as persistent operations of the shim, `samples` of each.
 * Collective over o->comm; the same on every rank. Returns how many there are, the rows of algs.def
 * in their order. */
int sweep(struct operands *o, int samples, struct contender contenders[SWEEP_MOST]);

/* The bytes by which rules choose, −1 where no rank knows those of the others. */
int64_t sweep_bytes(const struct operands *o);

#endif
