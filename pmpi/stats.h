/* SPDX-License-Identifier: MIT */
/* What NBCSHIM_STATS prints: one line a collective and algorithm, of this rank. Under the lock. */
#ifndef NBC_STATS_H
#define NBC_STATS_H

#include "select.h"

/* One more operation set up. bytes: as nbc_shape_bytes says, −1 unknown. */
void nbc_stats_count(const struct nbc_alg *alg, int64_t bytes);

void nbc_stats_print(void);

#endif
