/* SPDX-License-Identifier: MIT */
/* What the completion calls share. */
#ifndef NBC_WAIT_TEST_H
#define NBC_WAIT_TEST_H

#include "base/lock.h"
#include "engine/progress.h"
#include "request/request.h"

/* Whether an array of the program may contain own requests: only then is the lock worth taking. Not
 * in calls that come from inside the MPI below. */
static inline bool nbc_may_have_own(int n, const MPI_Request *requests)
{
    return nbc_any_user_requests() && !nbc_inside && n > 0 && requests;
}

/* Raises MPI_ERR_NO_MEM, of no communicator, and returns it. Without the lock. */
int nbc_raise_no_memory(void);

/* The empty status as the MPI below writes it, with MPI_ERROR = MPI_SUCCESS. Complete collectives
 * have it too. Written at init, read only afterwards. */
extern MPI_Status nbc_empty_status;

/* To be called once at init, before the first request exists. */
void nbc_complete_setup(void);

/* Writes it as calls for one request do, which leave MPI_ERROR alone. */
void nbc_set_status(MPI_Status *status);

/* The program is being told that r is complete: r is inactive or gone afterwards, and *request
 * null. Returns its error. Under the lock. */
int nbc_request_end(struct nbc_request *r, MPI_Request *request);

/* The same as the last act of a call for one request. Called with the lock, returns without it. */
int nbc_request_conclude(struct nbc_request *r, MPI_Request *request, MPI_Status *status);

/* MPI_Wait on a request of the MPI below, moving ours on meanwhile. Not under the lock. */
int nbc_wait_other(MPI_Request *request, MPI_Status *status);

/* A wait may be handed to the MPI below only while we have nothing to do meanwhile; with threads,
 * another one may give us something at any time. */
static inline bool nbc_must_poll(void)
{
    return nbc_any_active() || nbc_threaded;
}

#endif
