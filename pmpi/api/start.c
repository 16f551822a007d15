/* SPDX-License-Identifier: MIT */
/* MPI_Start, MPI_Startall, MPI_Request_free and MPI_Cancel. MPI-4.1 sections 3.9, 6.12, 6.13. */
#include <stdio.h>
#include <stdlib.h>

#include "api/wait_test.h"
#include "base/errors.h"
#include "base/lock.h"
#include "below/export.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/types.h"
#include "request/request.h"

NBC_ARCHIVE_MEMBER(start)

/* Raises MPI_ERR_REQUEST for a call that the state of the request does not allow. The operation
 * itself is not affected. Called with the lock held, returns without it. */
static int start_refuse(const struct nbc_request *r)
{
    const struct nbc_error_scope place = nbc_context_scope(r->context);
    nbc_unlock();
    return nbc_raise_at(&place, MPI_ERR_REQUEST);
}

static bool can_start(const struct nbc_request *r)
{
    return r->persistent && r->state == NBC_INACTIVE && !r->claimed;
}

EXPORT(int, Start, (MPI_Request * request), (request))
{
    if (!nbc_may_have_own(1, request))
        return NEXT(Start)(request);
    nbc_lock();
    struct nbc_request *r = nbc_request_find(*request);
    if (r && !can_start(r))
        return start_refuse(r);
    if (r)
        nbc_progress_start(r);
    nbc_unlock();
    return r ? MPI_SUCCESS : NEXT(Start)(request);
}

/* Returns n if all own requests of an array can be started, else the place of the first that
 * cannot. One that is there twice cannot: it is claimed meanwhile. Under the lock. */
static int start_check(int n, const MPI_Request *requests, int *nown)
{
    struct nbc_request *r;
    int bad = 0;
    *nown = 0;
    for (; bad < n; bad++) {
        r = nbc_request_find(requests[bad]);
        if (r && !can_start(r))
            break;
        if (r)
            r->claimed = true;
        *nown += r != NULL;
    }
    for (int i = 0; i < bad; i++)
        if ((r = nbc_request_find(requests[i])))
            r->claimed = false;
    return bad;
}

/* The same as start_refuse for an entry of an array. */
static int start_refuse_entry(const MPI_Request *requests, int entry)
{
    const struct nbc_request *r = nbc_request_find(requests[entry]);
    const struct nbc_error_scope place = nbc_context_scope(r->context);
    const char *why = !r->persistent             ? "the request of a nonblocking collective"
                      : r->state == NBC_INACTIVE ? "a duplicate of an earlier entry"
                                                 : "an active persistent request";
    char text[MPI_MAX_ERROR_STRING];
    snprintf(text, sizeof text, "MPI_Startall: array_of_requests[%d] is %s", entry, why);
    int error = nbc_error_text(NBC_ERROR_ENTRY, text);
    nbc_unlock();
    return nbc_raise_at(&place, error);
}

/* Also if an error handler ends the call by an exception (C++, -fexceptions). */
static void list_free(MPI_Request *const *list)
{
    free(*list);
}

/* The others are started in an array of their own: the MPI below would also start the handles of
 * own requests. It may start a request under a new handle (Open MPI does so while the last message
 * is still being sent). */
static int start_others(int n, MPI_Request *requests, int nothers)
{
    __attribute__((cleanup(list_free))) MPI_Request *const others =
        malloc((size_t)nothers * sizeof *others);
    int k = 0;
    if (!others)
        return nbc_raise(MPI_COMM_NULL, MPI_ERR_NO_MEM);
    for (int i = 0; i < n; i++)
        if (!nbc_request_is_own(requests[i]))
            others[k++] = requests[i];
    int error = NEXT(Startall)(k, others);
    for (int i = k = 0; i < n; i++)
        if (!nbc_request_is_own(requests[i]))
            requests[i] = others[k++];
    return error;
}

static int start_all(int n, MPI_Request *requests)
{
    int nown, error = MPI_SUCCESS;
    nbc_lock();
    int bad = start_check(n, requests, &nown);
    if (bad < n)
        return start_refuse_entry(requests, bad);
    nbc_unlock();
    if (nown == 0)
        return NEXT(Startall)(n, requests);
    if (nown < n)
        error = start_others(n, requests, n - nown);
    nbc_lock();
    for (int i = 0; i < n && !error; i++) {
        struct nbc_request *r = nbc_request_find(requests[i]);
        if (r)
            nbc_progress_start(r);
    }
    nbc_unlock();
    return error;
}

EXPORT(int, Startall, (int count, MPI_Request requests[]), (count, requests))
{
    if (!nbc_may_have_own(count, requests))
        return NEXT(Startall)(count, requests);
    return start_all(count, requests);
}

EXPORT(int, Request_free, (MPI_Request * request), (request))
{
    if (!nbc_may_have_own(1, request))
        return NEXT(Request_free)(request);
    nbc_lock();
    struct nbc_request *r = nbc_request_find(*request);
    if (r && r->state != NBC_INACTIVE)
        return start_refuse(r);
    if (r) {
        nbc_request_free(r);
        *request = MPI_REQUEST_NULL;
    }
    nbc_unlock();
    nbc_types_reclaim();
    return r ? MPI_SUCCESS : NEXT(Request_free)(request);
}

EXPORT(int, Cancel, (MPI_Request * request), (request))
{
    if (!nbc_may_have_own(1, request))
        return NEXT(Cancel)(request);
    nbc_lock();
    const struct nbc_request *r = nbc_request_find(*request);
    if (r)
        return start_refuse(r);
    nbc_unlock();
    return NEXT(Cancel)(request);
}
