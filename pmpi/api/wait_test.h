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

/* Called once at init, before the first request exists. */
void nbc_complete_setup(void);

#endif
