/* SPDX-License-Identifier: MIT */
/* What NBCSHIM_STATS prints, of this rank: how often which algorithm ran, how long it took, and how
 * much of that the program did not wait. Under the lock. */
#ifndef NBC_STATS_H
#define NBC_STATS_H

#include "select.h"

/* One more operation set up. bytes: as nbc_shape_bytes says, −1 unknown. */
void nbc_stats_count(const struct nbc_alg *alg, int64_t bytes);

/* One has completed, so many nanoseconds after its start, of which the program spent so many in
 * calls that wait. */
void nbc_stats_complete(const struct nbc_alg *alg, int64_t took, int64_t waited);

void nbc_stats_print(void);

#endif
