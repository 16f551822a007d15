/* SPDX-License-Identifier: MIT */
/* Agreement of all ranks of a communicator before nbcshim may run its collectives. It uses the
 * blocking collectives of the MPI below. Without the lock. */
#ifndef NBC_AGREE_H
#define NBC_AGREE_H

#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

/* Sets *any to whether `mine` is true on any rank, of either group of an intercommunicator.
 * Collective over comm, right after the call that has created it. Returns an MPI error code. */
int nbc_agree_any(MPI_Comm comm, bool mine, bool *any);

/* Sets all[] to the bitwise AND of the words of all ranks, of both groups of an
 * intercommunicator; at most NBC_RANGE_WORDS (ranges.h). */
int nbc_agree_and(MPI_Comm comm, const uint64_t *mine, uint64_t *all, int words);

#endif
