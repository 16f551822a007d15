/* SPDX-License-Identifier: MIT */
/* NBCSHIM_STATS, the reporting part: what nbcshim does in this job, at init, and the statistics of
 * base/stats.h at the end. Without the lock, at init and finalize. */
#ifndef NBC_STATISTICS_H
#define NBC_STATISTICS_H

#include <stdbool.h>

/* At init, when the ranks have agreed: the wall time begins. of_all: NBCSHIM_STATS is set on all
 * ranks of MPI_COMM_WORLD, so that the report can be about all of them. */
void nbc_statistics_begin(bool of_all);

/* Called at the set-up: a rank that leads and cannot write the file reports that, and takes
 * NBCSHIM_STATS as not set. */
void nbc_statistics_setup(bool leads);

/* If NBCSHIM_STATS=verbose, prints some lines on standard error: versions, whether nbcshim is
 * active and why, ranks, nodes, progress, rules. If another variable asks for output that an
 * inactive nbcshim does not write, prints why it is inactive. For one rank, at the end of init. */
void nbc_statistics_introduce(void);

/* Gathers the figures of all ranks, if nbc_statistics_begin said so. Collective over
 * MPI_COMM_WORLD, while MPI_Finalize still allows it. */
void nbc_statistics_collect(void);

/* Writes the statistics as NBCSHIM_STATS says, on the rank that leads. */
void nbc_statistics_print(void);

#endif
