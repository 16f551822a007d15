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

/* What the program asks for is not allowed now: the operation goes on as if nothing had been asked.
 * Called with the lock, returns without it. */
static int refuse(const struct nbc_request *r)
{
    const struct nbc_error_scope place = nbc_context_scope(r->context);
    nbc_unlock();
    return nbc_raise_at(&place, MPI_ERR_REQUEST);
}

static bool can_start(const struct nbc_request *r)
{
    return r->persistent && r->state == NBC_INACTIVE;
}

EXPORT(int, Start, (MPI_Request * request), (request))
{
    if (!nbc_may_have_own(1, request))
        return NEXT(Start)(request);
    nbc_lock();
    struct nbc_request *r = nbc_request_find(*request);
    if (r && !can_start(r))
        return refuse(r);
    if (r)
        nbc_progress_start(r);
    nbc_unlock();
    return r ? MPI_SUCCESS : NEXT(Start)(request);
}

/* Copies the handles that are not ours out of the array, or back into it. Back since the MPI below
 * may start a request under a new handle (Open MPI does, while the last message is on its way). */
static void move_others(const struct nbc_own_requests *p, int n, MPI_Request *requests,
                        MPI_Request *others, bool back)
{
    for (int i = 0, ours = 0; i < n; i++) {
        if (ours < p->n && p->list[ours].index == i)
            ours++;
        else if (back)
            requests[i] = others[i - ours];
        else
            others[i - ours] = requests[i];
    }
}

/* Here the array cannot be handed down as it is: below, the handles of ours could be started. */
static int start_others(const struct nbc_own_requests *p, int n, MPI_Request *requests)
{
    MPI_Request some[16], *others = some;
    int count = n - p->n;
    if (count == 0)
        return MPI_SUCCESS;
    if (count > (int)(sizeof some / sizeof *some))
        others = malloc(count * sizeof *others);
    if (!others)
        return nbc_raise_no_memory();
    move_others(p, n, requests, others, false);
    int error = NEXT(Startall)(count, others);
    move_others(p, n, requests, others, true);
    if (others != some)
        free(others);
    return error;
}

/* Marks what is to be started, so that a request that comes twice is found. Returns the place in p
 * of the first that cannot be started, and then leaves all as it was; p->n if all can. */
static int claim(const struct nbc_own_requests *p)
{
    int n = 0;
    while (n < p->n && can_start(p->list[n].r))
        nbc_request_set_state(p->list[n++].r, NBC_ACTIVE);
    for (int i = 0; n < p->n && i < n; i++)
        nbc_request_set_state(p->list[i].r, NBC_INACTIVE);
    return n;
}

static const char *why_not(const struct nbc_request *r)
{
    if (!r->persistent)
        return "the request of a nonblocking collective, not a persistent request";
    return r->state == NBC_INACTIVE ? "a duplicate of an earlier entry"
                                    : "an active persistent request";
}

/* Like refuse, for entry `bad` of p, which ends. */
static int refuse_entry(struct nbc_own_requests *p, int bad)
{
    const struct nbc_request *r = p->list[bad].r;
    const struct nbc_error_scope place = nbc_context_scope(r->context);
    const char *why = why_not(r);
    int entry = p->list[bad].index;
    nbc_own_requests_release(p);
    nbc_unlock();
    return nbc_raise_entry(&place, "MPI_Startall", entry, why);
}

static void start_claimed(const struct nbc_own_requests *p, bool start)
{
    nbc_lock();
    for (int i = 0; i < p->n; i++) {
        nbc_request_set_state(p->list[i].r, NBC_INACTIVE);
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
    int bad = claim(&p);
    if (bad < p.n)
        return refuse_entry(&p, bad);
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
        return refuse(r);
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
        return refuse(r);
    nbc_unlock();
    return NEXT(Cancel)(request);
}
