/* SPDX-License-Identifier: MIT */
/* A request of the MPI below that stays pending. In an array that is handed to MPI_Testall below it
 * stands for one of ours that is pending: all others are moved on, and none is completed. */
#ifndef NBC_PENDING_DUMMY_H
#define NBC_PENDING_DUMMY_H

#include "below/next.h"

/* MPI_REQUEST_NULL where the MPI has none to give. Under the lock. */
MPI_Request nbc_pending_dummy(void);

/* At finalize. */
void nbc_pending_dummy_cleanup(void);

#endif
