/* SPDX-License-Identifier: MIT */
/* What all ranks have recorded in one file, which rank 0 writes, with the times of one clock: for
 * NBCSHIM_TRACE, and for libnbcprofile.so, which has this file too. Without the lock. */
#ifndef NBC_COLLECT_H
#define NBC_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "below/next.h"

/* A duplicate of MPI_COMM_WORLD, and rank 0's clock minus this rank's, in nanoseconds: 0 if the
 * difference is less than what can be measured. From nbc_collect_begin to nbc_collect_end. */
extern MPI_Comm nbc_collect_comm;
extern int64_t nbc_collect_offset;

/* Collective. Returns false if the MPI fails. */
bool nbc_collect_begin(void);
void nbc_collect_end(void);

/* Calls `write` on every rank, and appends to the file of rank 0 what it writes, in the order of
 * the ranks. The other ranks need no file; without one, rank 0 drops what they write. Collective.
 */
void nbc_collect(FILE *file, void (*write)(FILE *out, int rank));

#endif
