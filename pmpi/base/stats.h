/* SPDX-License-Identifier: MIT */
/* NBCSHIM_STATS: statistics of this rank. For each algorithm, how often it ran, how long it took,
 * and for how much of that time the program did not wait. Under the lock. Local. */
#ifndef NBC_STATS_H
#define NBC_STATS_H

#include "select.h"

/* Called at init on the rank that writes the statistics: if it cannot write the file, reports that
 * and takes NBCSHIM_STATS as not set. Without the lock. */
void nbc_stats_setup(void);

/* Counts an operation that is started. bytes: the result of nbc_shape_bytes, −1 if unknown. */
void nbc_stats_count(const struct nbc_alg *alg, int64_t bytes);

/* Counts a completed operation. took: nanoseconds from its start to its completion; waited: how
 * many of them the program spent in calls that wait. */
void nbc_stats_complete(const struct nbc_alg *alg, int64_t took, int64_t waited);

/* Writes the statistics as NBCSHIM_STATS says: a table on standard error, or a file. Only if
 * NBCSHIM_STATS is set. */
void nbc_stats_print(void);

#endif
