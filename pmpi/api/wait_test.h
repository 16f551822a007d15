/* SPDX-License-Identifier: MIT */
/* Functions that the calls for completion share: wait, test and get_status. */
#ifndef NBC_WAIT_TEST_H
#define NBC_WAIT_TEST_H

#include "base/lock.h"
#include "engine/progress.h"
#include "request/request.h"

/* Whether a call from inside a call of the MPI below is that of a callback of the program: it is if
 * it has an own request, which the MPI never has. Without the lock. */
__attribute__((cold)) bool nbc_is_of_callback(int n, const MPI_Request *requests);

/* Whether a call is the program's. Without the lock. */
static inline bool nbc_is_of_program(int n, const MPI_Request *requests)
{
    return __builtin_expect(!nbc_inside, 1) || nbc_is_of_callback(n, requests);
}

/* Whether an array of the program may contain own requests, so that the call has to take the lock.
 * False in calls that come from the MPI below. Without the lock. */
static inline bool nbc_may_have_own(int n, const MPI_Request *requests)
{
    return nbc_any_user_requests() && n > 0 && requests && nbc_is_of_program(n, requests);
}

/* The same for a call that waits: also true if another thread may start an operation meanwhile, so
 * that the call has to poll. */
static inline bool nbc_may_have_to_poll(int n, const MPI_Request *requests)
{
    return nbc_waits_may_poll() && n > 0 && requests && nbc_is_of_program(n, requests);
}

/* Raises MPI_ERR_NO_MEM for an error that belongs to no communicator, and returns it. Without the
 * lock. */
int nbc_raise_no_memory(void);

/* The empty status as the MPI below writes it, with MPI_ERROR = MPI_SUCCESS. It is also the status
 * of a complete collective. Written at init, only read afterwards. */
extern MPI_Status nbc_empty_status;

/* Sets nbc_empty_status. Called once at init, before the first request exists. */
void nbc_complete_setup(void);

/* Frees what completion calls have created in the MPI below, at finalize. */
void nbc_complete_cleanup(void);

/* Writes the empty status as calls for one request do, which leave MPI_ERROR alone. */
void nbc_set_status(MPI_Status *status);

/* Reports the completion of r to the program: a persistent request becomes inactive, any other is
 * freed and *request set to MPI_REQUEST_NULL. Returns the error of the operation, not raised. Under
 * the lock. */
int nbc_request_end(struct nbc_request *r, MPI_Request *request);

/* The same at the end of a call for one request: also writes the status and raises the error.
 * Called with the lock held, returns without it. */
int nbc_request_conclude(struct nbc_request *r, MPI_Request *request, MPI_Status *status);

#endif
