/* SPDX-License-Identifier: MIT */
/* MPI_Request_get_status_any, _some and _all: MPI-4.1 section 3.7.6. They test requests and free
 * none of them. As in the test calls, the MPI below gets the unchanged array, in which own requests
 * are inactive to it (own_requests.h). */
#include "below/export.h"

NBC_ARCHIVE_MEMBER(get_status)

#ifdef HAVE_MPI_REQUEST_GET_STATUS_ANY
#include "api/wait_test.h"
#include "base/errors.h"
#include "base/lock.h"
#include "engine/progress.h"
#include "request/own_requests.h"
#include "request/request.h"

/* Finds the own requests that are active or complete, after one poll of all operations. */
static int status_begin(struct nbc_own_requests *own, int n, NBC_CONST_STATUS MPI_Request *requests)
{
    nbc_lock();
    bool ok = nbc_own_requests_find(own, n, requests, false);
    if (ok)
        nbc_progress(NULL);
    nbc_unlock();
    return ok ? MPI_SUCCESS : nbc_raise_no_memory();
}

/* The first complete own request from a place on; their number if there is none. */
static int next_complete(const struct nbc_own_requests *own, int from)
{
    nbc_lock();
    while (from < own->n && own->list[from].r->state != NBC_COMPLETE)
        from++;
    nbc_unlock();
    return from;
}

static bool must_ask_below(const struct nbc_own_requests *own)
{
    return own->others || !own->n;
}

static int status_any(const struct nbc_own_requests *own, int n,
                      NBC_CONST_STATUS MPI_Request *requests, int *index, int *flag,
                      MPI_Status *status)
{
    *flag = 0;
    *index = MPI_UNDEFINED;
    int first = next_complete(own, 0);
    if (first < own->n) {
        *index = own->list[first].index;
        *flag = 1;
        nbc_set_status(status);
        return MPI_SUCCESS;
    }
    if (!must_ask_below(own))
        return MPI_SUCCESS;
    int error = NEXT(Request_get_status_any)(n, requests, index, flag, status);
    if (!error && *index == MPI_UNDEFINED && own->n)
        *flag = 0; /* own requests are active, though no other one is */
    return error;
}

EXPORT(int, Request_get_status_any,
       (int count, NBC_CONST_STATUS MPI_Request requests[], int *index, int *flag,
        MPI_Status *status),
       (count, requests, index, flag, status))
{
    struct nbc_own_requests own;
    if (!nbc_may_have_own(count, requests) || !index || !flag)
        return NEXT(Request_get_status_any)(count, requests, index, flag, status);
    int error = status_begin(&own, count, requests);
    if (error)
        return error;
    error = status_any(&own, count, requests, index, flag, status);
    nbc_own_requests_release(&own);
    return error;
}

static int status_some(const struct nbc_own_requests *own, int n,
                       NBC_CONST_STATUS MPI_Request *requests, int *outcount, int *indices,
                       MPI_Status *statuses)
{
    int count = 0;
    if (must_ask_below(own)) {
        int error = NEXT(Request_get_status_some)(n, requests, &count, indices, statuses);
        if (error || !own->n) {
            *outcount = count;
            return error;
        }
        if (count == MPI_UNDEFINED)
            count = 0;
    }
    for (int i = next_complete(own, 0); i < own->n; i = next_complete(own, i + 1)) {
        indices[count] = own->list[i].index;
        if (statuses != MPI_STATUSES_IGNORE)
            nbc_set_status(&statuses[count]);
        count++;
    }
    *outcount = count;
    return MPI_SUCCESS;
}

EXPORT(int, Request_get_status_some,
       (int incount, NBC_CONST_STATUS MPI_Request requests[], int *outcount, int indices[],
        MPI_Status statuses[]),
       (incount, requests, outcount, indices, statuses))
{
    struct nbc_own_requests own;
    if (!nbc_may_have_own(incount, requests) || !outcount || !indices)
        return NEXT(Request_get_status_some)(incount, requests, outcount, indices, statuses);
    int error = status_begin(&own, incount, requests);
    if (error)
        return error;
    error = status_some(&own, incount, requests, outcount, indices, statuses);
    nbc_own_requests_release(&own);
    return error;
}

/* The MPI below sees a complete own request as inactive, which has the empty status too. */
EXPORT(int, Request_get_status_all,
       (int count, NBC_CONST_STATUS MPI_Request requests[], int *flag, MPI_Status statuses[]),
       (count, requests, flag, statuses))
{
    struct nbc_own_requests own;
    if (!nbc_may_have_own(count, requests) || !flag)
        return NEXT(Request_get_status_all)(count, requests, flag, statuses);
    int error = status_begin(&own, count, requests);
    if (error)
        return error;
    int complete = 0;
    while (complete < own.n && next_complete(&own, complete) == complete)
        complete++;
    *flag = complete == own.n;
    if (*flag)
        error = NEXT(Request_get_status_all)(count, requests, flag, statuses);
    nbc_own_requests_release(&own);
    return error;
}
#endif
