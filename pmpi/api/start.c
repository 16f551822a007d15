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

/* A call of MPI_Startall whose own requests are claimed. */
struct starting {
    int n, nothers;
    MPI_Request *requests;
    MPI_Request *others, some[16]; /* the requests of the MPI below, while their entries are null */
    bool started;                  /* they are */
};

/* Releases the own requests among the first n, and starts them. Under the lock. */
static void start_claimed(int n, const MPI_Request *requests, bool start)
{
    for (int i = 0; i < n; i++) {
        struct nbc_request *r = nbc_request_find(requests[i]);
        if (!r)
            continue;
        r->claimed = false;
        if (start)
            nbc_progress_start(r);
    }
}

/* Also runs if an error handler ends the call by an exception (C++, -fexceptions). */
static void starting_end(const struct starting *s)
{
    for (int i = 0, k = 0; k < s->nothers && s->others; i++)
        if (s->requests[i] == MPI_REQUEST_NULL)
            s->requests[i] = s->others[k++];
    if (s->others != s->some)
        free(s->others);
    nbc_lock();
    start_claimed(s->n, s->requests, s->started);
    nbc_unlock();
}

/* Starts the other requests, in an array of their own: the MPI below would also start the handles
 * of own requests. It may start a request under a new handle (Open MPI does so while the last
 * message is still being sent). */
static int start_others(struct starting *s)
{
    if (s->nothers == 0)
        return MPI_SUCCESS;
    s->others = s->some;
    if (s->nothers > (int)(sizeof s->some / sizeof *s->some)) /* mutants: >= for >: for speed */
        s->others = malloc((size_t)s->nothers * sizeof *s->others);
    if (!s->others)
        return nbc_raise(MPI_COMM_NULL, MPI_ERR_NO_MEM);
    nbc_lock();
    for (int i = 0, k = 0; k < s->nothers; i++) {
        if (nbc_request_find(s->requests[i]))
            continue;
        s->others[k++] = s->requests[i];
        s->requests[i] = MPI_REQUEST_NULL;
    }
    nbc_unlock();
    return NEXT(Startall)(s->nothers, s->others);
}

/* Claims the own requests, so that a duplicate is found. They become active only when they start:
 * another thread may poll active requests meanwhile. Returns n if all can be started; otherwise the
 * place of the first that cannot, and no request is changed. Under the lock. */
static int start_claim(int n, const MPI_Request *requests, int *nown)
{
    *nown = 0;
    for (int i = 0; i < n; i++) {
        struct nbc_request *r = nbc_request_find(requests[i]);
        if (r && !can_start(r)) {
            start_claimed(i, requests, false);
            return i;
        }
        if (r)
            r->claimed = true;
        *nown += r != NULL;
    }
    return n;
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

static int start_all(int n, MPI_Request *requests)
{
    int nown;
    nbc_lock();
    int bad = start_claim(n, requests, &nown);
    if (bad < n)
        return start_refuse_entry(requests, bad);
    nbc_unlock();
    __attribute__((cleanup(starting_end))) struct starting s = {
        .n = n, .nothers = n - nown, .requests = requests};
    int error = start_others(&s);
    s.started = !error;
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
