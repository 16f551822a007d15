/* SPDX-License-Identifier: MIT */
/* Measurements of all algorithms that apply to a call. */
#ifndef NBC_BENCH_SWEEP_H
#define NBC_BENCH_SWEEP_H

#include "runner.h"
#include "select.h"

enum { SWEEP_MOST = 16 };

struct contender {
    const struct nbc_alg *alg; /* NULL: what nbcshim selects, with the segment size of the rule */
    double median;             /* seconds from start to completion, of the slowest rank */
};

/* Measures all of them alternately, by a variant of the shim, with `samples` samples each; `mpi`
 * only if that is nonblocking. Collective over o->comm; the results are the same on every rank.
 * Returns their number; they are in the order of algs.def, after what nbcshim selects, if that is
 * asked for. */
int sweep(struct operands *o, int samples, enum variant v, bool selected,
          struct contender contenders[SWEEP_MOST]);

/* Returns the bytes by which rules select, −1 if ranks do not know those of each other. */
int64_t sweep_bytes(const struct operands *o);

#endif
