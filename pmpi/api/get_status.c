/* SPDX-License-Identifier: MIT */
/* MPI_Request_get_status_any, _some and _all: MPI-4.1 section 3.7.6. They test requests and free
 * none of them. As in the test calls, the MPI below gets the unchanged array, in which own requests
 * are inactive to it (wait_test_many.c). */
#include "below/export.h"

NBC_ARCHIVE_MEMBER(get_status)

#ifdef HAVE_MPI_REQUEST_GET_STATUS_ANY
#include "api/wait_test.h"
#include "base/lock.h"
#include "engine/progress.h"
#include "request/request.h"

/* Finds the own requests that are active or complete, after one poll of all operations. */
static void status_begin(struct nbc_own *own, int n, NBC_CONST_STATUS MPI_Request *requests)
{
    nbc_lock();
    nbc_progress(NULL);
    nbc_own_find(own, n, requests, false);
    nbc_unlock();
}

static bool must_ask_below(const struct nbc_own *own)
{
    return own->others || !own->n;
}

EXPORT(int, Request_get_status_any,
       (int count, NBC_CONST_STATUS MPI_Request requests[], int *index, int *flag,
        MPI_Status *status),
       (count, requests, index, flag, status))
{
    struct nbc_own own;
    if (!nbc_may_have_own(count, requests) || !index || !flag)
        return NEXT(Request_get_status_any)(count, requests, index, flag, status);
    status_begin(&own, count, requests);
    *flag = own.ready < count;
    *index = *flag ? own.ready : MPI_UNDEFINED;
    if (*flag)
        nbc_set_status(status);
    if (*flag || !must_ask_below(&own))
        return MPI_SUCCESS;
    int error = NEXT(Request_get_status_any)(count, requests, index, flag, status);
    if (!error && *index == MPI_UNDEFINED && own.n)
        *flag = 0; /* own requests are active, though no other one is */
    return error;
}

static int status_some(const struct nbc_own *own, int n, NBC_CONST_STATUS MPI_Request *requests,
                       int *outcount, int *indices, MPI_Status *statuses)
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
    nbc_lock();
    for (int i = own->ready; i < n; i++) {
        const struct nbc_request *r = nbc_request_find(requests[i]);
        if (!r || r->state != NBC_COMPLETE)
            continue;
        indices[count] = i;
        if (statuses != MPI_STATUSES_IGNORE)
            nbc_set_status(&statuses[count]);
        count++;
    }
    nbc_unlock();
    *outcount = count;
    return MPI_SUCCESS;
}

EXPORT(int, Request_get_status_some,
       (int incount, NBC_CONST_STATUS MPI_Request requests[], int *outcount, int indices[],
        MPI_Status statuses[]),
       (incount, requests, outcount, indices, statuses))
{
    struct nbc_own own;
    if (!nbc_may_have_own(incount, requests) || !outcount || !indices)
        return NEXT(Request_get_status_some)(incount, requests, outcount, indices, statuses);
    status_begin(&own, incount, requests);
    return status_some(&own, incount, requests, outcount, indices, statuses);
}

/* The MPI below sees a complete own request as inactive, which has the empty status too. */
EXPORT(int, Request_get_status_all,
       (int count, NBC_CONST_STATUS MPI_Request requests[], int *flag, MPI_Status statuses[]),
       (count, requests, flag, statuses))
{
    struct nbc_own own;
    if (!nbc_may_have_own(count, requests) || !flag)
        return NEXT(Request_get_status_all)(count, requests, flag, statuses);
    status_begin(&own, count, requests);
    *flag = !own.active;
    return *flag ? NEXT(Request_get_status_all)(count, requests, flag, statuses) : MPI_SUCCESS;
}
#endif
