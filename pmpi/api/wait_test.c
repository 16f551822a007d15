/* SPDX-License-Identifier: MIT */
/* MPI_Wait, MPI_Test and MPI_Request_get_status. MPI-4.1 sections 3.7.3, 3.7.6. */
#include "api/wait_test.h"

#include <sched.h>

#include "base/clock.h"
#include "base/errors.h"
#include "below/export.h"
#include "below/quirks.h"
#include "comm/context.h"
#include "hookless/poll.h"
#include "op/types.h"

NBC_ARCHIVE_MEMBER(wait_test)

MPI_Status nbc_empty_status;

int nbc_raise_no_memory(void)
{
    return nbc_raise(MPI_COMM_NULL, MPI_ERR_NO_MEM);
}

/* Another thread may hold the lock and wait for one that the MPI holds here, so that this thread
 * must not wait for it for ever. */
static bool lock_for_a_while(void)
{
    enum { TRIES = 1000 };
    for (int i = 0; i < TRIES; i++) {
        if (nbc_lock_if_free())
            return true;
        sched_yield(); /* unreached: a moment between two threads */
    }
    return false; /* unreached: a moment between two threads */
}

bool nbc_is_of_callback(int n, const MPI_Request *requests)
{
    bool found = false;
    if (nbc_has_lock() || !nbc_any_user_requests() || !lock_for_a_while())
        return false;
    for (int i = 0; i < n && !found; i++)
        found = nbc_request_find(requests[i]);
    nbc_unlock();
    return found;
}

void nbc_complete_setup(void)
{
    MPI_Request null = MPI_REQUEST_NULL;
    int flag;
    NEXT(Test)(&null, &flag, &nbc_empty_status);
    nbc_empty_status.MPI_ERROR = MPI_SUCCESS;
}

void nbc_set_status(MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    int error = status->MPI_ERROR;
    *status = nbc_empty_status;
    status->MPI_ERROR = error;
}

int nbc_request_end(struct nbc_request *r, MPI_Request *request)
{
    int error = r->error;
    if (__builtin_expect(nbc_timing_on, 0))
        nbc_progress_measure_end(r, false);
    if (r->persistent) {
        nbc_request_set_state(r, NBC_INACTIVE);
        return error;
    }
    nbc_request_free(r);
    *request = MPI_REQUEST_NULL;
    return error;
}

static int conclude_failed(struct nbc_request *r, MPI_Request *request, MPI_Status *status)
{
    const struct nbc_error_scope place = nbc_context_scope(r->context);
    int error = nbc_request_end(r, request);
    nbc_unlock();
    nbc_set_status(status);
    nbc_types_reclaim();
    return nbc_raise_at(&place, error);
}

int nbc_request_conclude(struct nbc_request *r, MPI_Request *request, MPI_Status *status)
{
    if (__builtin_expect(r->error, 0))
        return conclude_failed(r, request, status);
    nbc_request_end(r, request);
    nbc_unlock();
    nbc_set_status(status);
    nbc_types_reclaim();
    return MPI_SUCCESS;
}

/* See NBC_FREES_INACTIVE. */
/* unreached: SMPI */
static int wait_inactive(MPI_Status *status)
{
    nbc_set_status(status);
    return MPI_SUCCESS;
}

/* What the calls below do for own requests stays out of line: then a call for a request of the MPI
 * saves no registers. */
static __attribute__((noinline)) int wait_one(MPI_Request *request, MPI_Status *status)
{
    if (!nbc_is_of_program(1, request))
        return NEXT(Wait)(request, status);
    nbc_lock();
    struct nbc_request *r = nbc_request_find(*request);
    if (!r || r->state == NBC_INACTIVE) {
        nbc_unlock();
        return r && NBC_FREES_INACTIVE ? wait_inactive(status) : nbc_wait_other(request, status);
    }
    nbc_request_wait(r, 0);
    return nbc_request_conclude(r, request, status);
}

EXPORT(int, Wait, (MPI_Request * request, MPI_Status *status), (request, status))
{
    if (!nbc_waits_may_poll() || !request)
        return NEXT(Wait)(request, status);
    int error = wait_one(request, status);
    NBC_STAY;
    return error;
}

static __attribute__((noinline)) int test_one(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!nbc_is_of_program(1, request))
        return NEXT(Test)(request, flag, status); /* unreached: within the MPI */
    nbc_lock();
    struct nbc_request *r = nbc_request_find(*request);
    nbc_progress(r);
    if (r && r->state == NBC_COMPLETE) {
        *flag = 1;
        return nbc_request_conclude(r, request, status);
    }
    bool active = r && r->state == NBC_ACTIVE;
    nbc_unlock();
    if (!active)
        return NEXT(Test)(request, flag, status);
    *flag = 0;
    return MPI_SUCCESS;
}

EXPORT(int, Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
{
    if (!nbc_any_user_requests() || !request || !flag)
        return NEXT(Test)(request, flag, status);
    return test_one(request, flag, status);
}

static __attribute__((noinline)) int status_of_one(MPI_Request request, int *flag,
                                                   MPI_Status *status)
{
    if (!nbc_is_of_program(1, &request))
        return NEXT(Request_get_status)(request, flag, status); /* unreached: within the MPI */
    nbc_lock();
    struct nbc_request *r = nbc_request_find(request);
    nbc_progress(r);
    bool active = r && r->state == NBC_ACTIVE;
    nbc_unlock();
    if (!r)
        return NEXT(Request_get_status)(request, flag, status);
    *flag = !active;
    if (*flag)
        nbc_set_status(status);
    return MPI_SUCCESS;
}

EXPORT(int, Request_get_status, (MPI_Request request, int *flag, MPI_Status *status),
       (request, flag, status))
{
    if (!nbc_any_user_requests() || !flag)
        return NEXT(Request_get_status)(request, flag, status);
    return status_of_one(request, flag, status);
}
