/* SPDX-License-Identifier: MIT */
/* Agreement of all ranks of a communicator before nbcshim may run its collectives. It uses the
 * blocking collectives of the MPI below. Without the lock. */
#ifndef NBC_AGREE_H
#define NBC_AGREE_H

#include <stdbool.h>

#include "below/next.h"

/* Sets *any to whether `mine` is true on any rank, of either group of an intercommunicator.
 * Collective over comm, right after the call that has created it. Returns an MPI error code. */
int nbc_agree_any(MPI_Comm comm, bool mine, bool *any);

#endif
