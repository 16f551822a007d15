/* SPDX-License-Identifier: MIT */
/* MPI_Start, MPI_Startall, MPI_Request_free and MPI_Cancel. MPI-4.1 sections 3.9, 6.12, 6.13. */
#include <stdlib.h>

#include "api/wait_test.h"
#include "base/errors.h"
#include "base/lock.h"
#include "below/export.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/types.h"
#include "request/own_requests.h"
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

/* Copies the handles of other requests out of the array, or back into it: the MPI below may start a
 * request under a new handle (Open MPI does so while the last message is still being sent). */
static void start_copy_others(const struct nbc_own_requests *p, int n, MPI_Request *requests,
                              MPI_Request *others, bool back)
{
    for (int i = 0, nown = 0; i < n; i++) {
        if (nown < p->n && p->list[nown].index == i)
            nown++;
        else if (back)
            requests[i] = others[i - nown];
        else
            others[i - nown] = requests[i];
    }
}

/* Starts the other requests, in an array of their own: the MPI below would also start the handles
 * of own requests. */
static int start_others(const struct nbc_own_requests *p, int n, MPI_Request *requests)
{
    MPI_Request some[16], *others = some;
    int count = n - p->n;
    if (count == 0)
        return MPI_SUCCESS;
    if (count > (int)(sizeof some / sizeof *some)) /* mutants: >= for >: only for speed */
        others = malloc(count * sizeof *others);
    if (!others)
        return nbc_raise_no_memory();
    start_copy_others(p, n, requests, others, false);
    int error = NEXT(Startall)(count, others);
    start_copy_others(p, n, requests, others, true);
    if (others != some)
        free(others);
    return error;
}

/* Claims the own requests, so that a duplicate is found. They become active only when they start:
 * another thread may poll active requests meanwhile. Returns p->n if all can be started; otherwise
 * the place in p of the first that cannot, and no request is changed. */
static int start_claim(const struct nbc_own_requests *p)
{
    int n = 0;
    while (n < p->n && can_start(p->list[n].r))
        p->list[n++].r->claimed = true;
    for (int i = 0; n < p->n && i < n; i++)
        p->list[i].r->claimed = false;
    return n;
}

static const char *start_why_not(const struct nbc_request *r)
{
    if (!r->persistent)
        return "the request of a nonblocking collective, not a persistent request";
    return r->state == NBC_INACTIVE ? "a duplicate of an earlier entry"
                                    : "an active persistent request";
}

/* The same as start_refuse for entry `bad` of p. Releases p. */
static int start_refuse_entry(struct nbc_own_requests *p, int bad)
{
    const struct nbc_request *r = p->list[bad].r;
    const struct nbc_error_scope place = nbc_context_scope(r->context);
    const char *why = start_why_not(r);
    int entry = p->list[bad].index;
    nbc_own_requests_release(p);
    nbc_unlock();
    return nbc_raise_entry(&place, "MPI_Startall", entry, why);
}

static void start_claimed(const struct nbc_own_requests *p, bool start)
{
    nbc_lock();
    for (int i = 0; i < p->n; i++) {
        p->list[i].r->claimed = false;
        if (start)
            nbc_progress_start(p->list[i].r);
    }
    nbc_unlock();
}

static int start_all(int n, MPI_Request *requests)
{
    struct nbc_own_requests p;
    nbc_lock();
    if (!nbc_own_requests_find(&p, n, requests, true)) {
        nbc_unlock();
        return nbc_raise_no_memory();
    }
    int bad = start_claim(&p);
    if (bad < p.n)
        return start_refuse_entry(&p, bad);
    nbc_unlock();
    int error = start_others(&p, n, requests);
    start_claimed(&p, !error);
    nbc_own_requests_release(&p);
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
