/* SPDX-License-Identifier: MIT */
/* A request of the MPI below that stays pending. In an array for MPI_Testall below it stands for a
 * pending request of nbcshim: the other requests progress, and none is completed. */
#ifndef NBC_PENDING_DUMMY_H
#define NBC_PENDING_DUMMY_H

#include "below/next.h"

/* Returns the dummy, and creates it at the first call. MPI_REQUEST_NULL if the MPI cannot create
 * it. Under the lock. Local. */
MPI_Request nbc_pending_dummy(void);

/* Completes and frees the dummy, at finalize. */
void nbc_pending_dummy_cleanup(void);

#endif
