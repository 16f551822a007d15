/* SPDX-License-Identifier: MIT */
/* MPI_Comm_idup and the other constructors of the same communicator. */
#ifndef NBC_IDUP_H
#define NBC_IDUP_H

#include "below/next.h"

/* Before a constructor of the communicator: waits until the MPI has made the duplicates of it that
 * are pending. All its ranks have called for them, in the same order, and a constructor may wait
 * for all its ranks. Open MPI agrees on the number of each new communicator by messages on the
 * parent; it hangs if two of these agreements overlap and the ranks progress them in different
 * orders. Without the lock. */
void nbc_idup_settle(MPI_Comm parent);

#endif
