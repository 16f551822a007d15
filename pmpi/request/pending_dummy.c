/* SPDX-License-Identifier: MIT */
#include "request/pending_dummy.h"

#include <stddef.h>

static MPI_Request never = MPI_REQUEST_NULL; /* made when first needed, under the lock */

/* A generalized request wants these; they have nothing to do. */
static int query(void *state, MPI_Status *status)
{
    (void)state;
    NEXT(Status_set_elements)(status, MPI_BYTE, 0);
    NEXT(Status_set_cancelled)(status, 0);
    return MPI_SUCCESS;
}

static int release(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

MPI_Request nbc_pending_dummy(void)
{
    if (never == MPI_REQUEST_NULL && NEXT(Grequest_start)(query, release, cancel, NULL, &never))
        never = MPI_REQUEST_NULL;
    return never;
}

void nbc_pending_dummy_cleanup(void)
{
    if (never == MPI_REQUEST_NULL)
        return;
    NEXT(Grequest_complete)(never);
    NEXT(Wait)(&never, MPI_STATUS_IGNORE);
}
