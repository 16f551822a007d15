/* SPDX-License-Identifier: MIT */
/* Rules for the choice of algorithms, measured: what NBCSHIM_TUNING reads. */
#ifndef NBC_BENCH_TUNE_H
#define NBC_BENCH_TUNE_H

/* Measures the collectives of MPI_COMM_WORLD and writes rules for this number of ranks to standard
 * output, from rank 0. Returns the exit status. */
int tune_rules(int rank, int size);

#endif
