/* SPDX-License-Identifier: MIT */
/* What all ranks of a communicator must know alike before it is ours: asked by the MPI's own
 * collectives. */
#ifndef NBC_AGREE_H
#define NBC_AGREE_H

#include <stdbool.h>

#include "below/next.h"

/* Whether it is so on any rank, of either group of an intercommunicator. Collective over it, right
 * after the call that has made it. Returns an MPI error code. */
int nbc_agree_any(MPI_Comm comm, bool mine, bool *any);

#endif
