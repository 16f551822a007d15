/* SPDX-License-Identifier: MIT */
/* Sums over calls: how many, how long they took, and for how much of that time the program was in
 * MPI. For each algorithm NBCSHIM_STATS reports them (diag/statistics.c), for each call site
 * libnbcprofile.so. The caller guards them. */
#ifndef NBC_STATS_H
#define NBC_STATS_H

#include <stdbool.h>

#include "base/in_mpi.h"

/* The histogram has one class per power of two: class i counts times from 2^i to 2^(i + 1) − 1 ns.
 * The first and the last class also count shorter and longer times. */
enum { NBC_STATS_CLASSES = 40 };

struct nbc_stats {
    int64_t started, bytes;
    bool unknown; /* the bytes of some operations are unknown */
    int64_t completed, took;
    int64_t waited; /* in calls of MPI, from the start of an operation until a call completes it */
    int64_t flight, inside; /* of those that do not block: all of that time, and that in calls */
    int64_t histogram[NBC_STATS_CLASSES];
};

/* An operation is started. bytes: negative if unknown. */
static inline void nbc_stats_start(struct nbc_stats *s, int64_t bytes)
{
    s->started++;
    s->bytes += bytes > 0 ? bytes : 0;
    s->unknown = s->unknown || bytes < 0;
}

/* An operation is complete, so many nanoseconds after its start. */
static inline void nbc_stats_complete(struct nbc_stats *s, int64_t took)
{
    int class = took < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)took);
    s->completed++;
    s->took += took;
    s->histogram[class < NBC_STATS_CLASSES ? class : NBC_STATS_CLASSES - 1]++;
}

/* The program learns that an operation is complete that was started `before`. */
static inline void nbc_stats_end(struct nbc_stats *s, bool blocks, const struct nbc_moment *before,
                                 const struct nbc_moment *now)
{
    int64_t inside = nbc_in_mpi_between(before, now);
    s->waited += inside;
    s->flight += blocks ? 0 : now->now - before->now;
    s->inside += blocks ? 0 : inside;
}

#endif
