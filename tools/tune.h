/* SPDX-License-Identifier: MIT */
/* Tuning rules from measurements, in the form that NBCSHIM_TUNING reads. */
#ifndef NBC_TOOLS_TUNE_H
#define NBC_TOOLS_TUNE_H

/* Measures collectives on MPI_COMM_WORLD; rank 0 writes rules for this number of ranks to standard
 * output. `names` are the names of collectives, and ends with NULL; with no names, all are
 * measured. Returns the exit status. */
int tune_rules(int rank, int size, char **names);

#endif
