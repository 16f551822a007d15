/* SPDX-License-Identifier: MIT */
/* Tuning rules from measurements, in the form that NBCSHIM_TUNING reads. */
#ifndef NBC_BENCH_TUNE_H
#define NBC_BENCH_TUNE_H

/* Measures the collectives on MPI_COMM_WORLD; rank 0 writes rules for this number of ranks to
 * standard output. Returns the exit status. */
int tune_rules(int rank, int size);

#endif
