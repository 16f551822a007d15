/* SPDX-License-Identifier: MIT */
/* A request of the MPI below that stays pending. In an array that is handed to MPI_Testall below it
 * stands for one of ours that is pending: all others are moved on, and none is completed. */
#ifndef NBC_NEVER_H
#define NBC_NEVER_H

#include "next.h"

/* MPI_REQUEST_NULL where the MPI has none to give. Under the lock. */
MPI_Request nbc_never(void);

/* At finalize. */
void nbc_never_cleanup(void);

#endif
