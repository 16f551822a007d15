/* SPDX-License-Identifier: MIT */
/* MPI_Request_get_status_any, _some and _all: what is complete, with nothing ended. MPI-4.1 section
 * 3.7.6. As with the test calls the array is handed down as it is, where ours look inactive
 * (own_requests.h). */
#include "below/next.h"

#ifdef HAVE_MPI_REQUEST_GET_STATUS_ANY
#include "api/wait_test.h"
#include "base/errors.h"
#include "base/lock.h"
#include "below/export.h"
#include "engine/progress.h"
#include "request/own_requests.h"
#include "request/request.h"

/* What is ours and active or complete; all that goes on has been moved on once. */
static int look(struct nbc_own_requests *ours, int n, const MPI_Request *requests)
{
    nbc_lock();
    bool ok = nbc_own_requests_find(ours, n, requests, false);
    if (ok)
        nbc_progress(NULL);
    nbc_unlock();
    return ok ? MPI_SUCCESS : nbc_raise_no_memory();
}

/* The first complete one from there on, or behind the last. */
static int next_complete(const struct nbc_own_requests *ours, int from)
{
    nbc_lock();
    while (from < ours->n && ours->list[from].r->state != NBC_COMPLETE)
        from++;
    nbc_unlock();
    return from;
}

static bool asks_below(const struct nbc_own_requests *ours)
{
    return ours->others || !ours->n;
}

static int any(const struct nbc_own_requests *ours, int n, const MPI_Request *requests, int *index,
               int *flag, MPI_Status *status)
{
    *flag = 0;
    *index = MPI_UNDEFINED;
    int first = next_complete(ours, 0);
    if (first < ours->n) {
        *index = ours->list[first].index;
        *flag = 1;
        nbc_set_status(status);
        return MPI_SUCCESS;
    }
    if (!asks_below(ours))
        return MPI_SUCCESS;
    int error = NEXT(Request_get_status_any)(n, requests, index, flag, status);
    if (!error && *index == MPI_UNDEFINED && ours->n)
        *flag = 0; /* none of the others is active, but ours are */
    return error;
}

EXPORT(int, Request_get_status_any,
       (int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status),
       (count, requests, index, flag, status))
{
    struct nbc_own_requests ours;
    if (!nbc_may_have_own(count, requests) || !index || !flag)
        return NEXT(Request_get_status_any)(count, requests, index, flag, status);
    int error = look(&ours, count, requests);
    if (error)
        return error;
    error = any(&ours, count, requests, index, flag, status);
    nbc_own_requests_release(&ours);
    return error;
}

static int some(const struct nbc_own_requests *ours, int n, const MPI_Request *requests,
                int *outcount, int *indices, MPI_Status *statuses)
{
    int count = 0;
    if (asks_below(ours)) {
        int error = NEXT(Request_get_status_some)(n, requests, &count, indices, statuses);
        if (error || !ours->n) {
            *outcount = count;
            return error;
        }
        if (count == MPI_UNDEFINED)
            count = 0;
    }
    for (int i = next_complete(ours, 0); i < ours->n; i = next_complete(ours, i + 1)) {
        indices[count] = ours->list[i].index;
        if (statuses != MPI_STATUSES_IGNORE)
            nbc_set_status(&statuses[count]);
        count++;
    }
    *outcount = count;
    return MPI_SUCCESS;
}

EXPORT(int, Request_get_status_some,
       (int incount, const MPI_Request requests[], int *outcount, int indices[],
        MPI_Status statuses[]),
       (incount, requests, outcount, indices, statuses))
{
    struct nbc_own_requests ours;
    if (!nbc_may_have_own(incount, requests) || !outcount || !indices)
        return NEXT(Request_get_status_some)(incount, requests, outcount, indices, statuses);
    int error = look(&ours, incount, requests);
    if (error)
        return error;
    error = some(&ours, incount, requests, outcount, indices, statuses);
    nbc_own_requests_release(&ours);
    return error;
}

/* Below, a complete one of ours is inactive: it has the empty status, as it should. */
EXPORT(int, Request_get_status_all,
       (int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]),
       (count, requests, flag, statuses))
{
    struct nbc_own_requests ours;
    if (!nbc_may_have_own(count, requests) || !flag)
        return NEXT(Request_get_status_all)(count, requests, flag, statuses);
    int error = look(&ours, count, requests);
    if (error)
        return error;
    int complete = 0;
    while (complete < ours.n && next_complete(&ours, complete) == complete)
        complete++;
    *flag = complete == ours.n;
    if (*flag)
        error = NEXT(Request_get_status_all)(count, requests, flag, statuses);
    nbc_own_requests_release(&ours);
    return error;
}
#endif
