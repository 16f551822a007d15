/* SPDX-License-Identifier: MIT */
#include "request/pending_dummy.h"

#include <stddef.h>

static MPI_Request pending_dummy = MPI_REQUEST_NULL; /* created when first needed; under the lock */

/* The callbacks of the generalized request. */
static int dummy_query(void *state, MPI_Status *status)
{
    (void)state;
    NEXT(Status_set_elements)(status, MPI_BYTE, 0);
    NEXT(Status_set_cancelled)(status, 0);
    return MPI_SUCCESS;
}

static int dummy_release(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

/* unreached: nobody cancels it */
static int dummy_cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

MPI_Request nbc_pending_dummy(void)
{
    if (pending_dummy == MPI_REQUEST_NULL &&
        NEXT(Grequest_start)(dummy_query, dummy_release, dummy_cancel, NULL, &pending_dummy))
        pending_dummy = MPI_REQUEST_NULL; /* unreached: no memory */
    return pending_dummy;
}

void nbc_pending_dummy_cleanup(void)
{
    if (pending_dummy == MPI_REQUEST_NULL)
        return;
    NEXT(Grequest_complete)(pending_dummy);
    NEXT(Wait)(&pending_dummy, MPI_STATUS_IGNORE);
}
