/* SPDX-License-Identifier: MIT */
/* NBCSHIM_STATS: statistics of this rank. For each algorithm, how often it ran, how long it took,
 * and for how much of that time the program did not wait. diag/statistics.h reports them. Under the
 * lock. Local. */
#ifndef NBC_STATS_H
#define NBC_STATS_H

#include "select.h"

/* The histogram has one class per power of two: class i counts times from 2^i to 2^(i + 1) − 1 ns.
 * The first and the last class also count shorter and longer times. */
enum { NBC_STATS_CLASSES = 40 };

struct nbc_stats {
    int64_t started, bytes;
    bool unknown; /* the bytes of some operations are unknown */
    int64_t completed, took, waited;
    int64_t histogram[NBC_STATS_CLASSES];
};

/* Counts an operation that is started. bytes: the result of nbc_shape_bytes, −1 if unknown. */
void nbc_stats_count(const struct nbc_alg *alg, int64_t bytes);

/* Counts a completed operation. took: nanoseconds from its start to its completion; waited: how
 * many of them the program spent in calls that wait. */
void nbc_stats_complete(const struct nbc_alg *alg, int64_t took, int64_t waited);

/* The statistics of a row of nbc_algs. */
struct nbc_stats nbc_stats_of(int alg);

#endif
