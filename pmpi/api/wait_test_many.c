/* SPDX-License-Identifier: MIT */
/* The completion calls for several requests, in which ours may be mixed with others. MPI-4.1
 * section 3.7.5.
 *
 * What is not ours is left to the test calls below, on the array as it is (see own_requests.h), and
 * never under the lock: they may run callbacks and error handlers of the program. What is ours
 * needs the lock, but nobody waits while holding it. */
#include <stdlib.h>

#include "api/wait_test.h"
#include "base/errors.h"
#include "base/lock.h"
#include "below/export.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/types.h"
#include "request/own_requests.h"
#include "request/pending_dummy.h"
#include "request/request.h"

/* --- any --- */

/* The arguments of a call for several requests, and what is known of them. */
struct array {
    int n;
    MPI_Request *requests;
    struct nbc_own_requests ours; /* active or complete */
    unsigned turn;                /* what comes first this time */
};

/* Changes with each call and each poll, so that nothing comes always first. Under the lock. */
static unsigned turn;

static bool array_begin(struct array *a, int n, MPI_Request *requests)
{
    a->n = n;
    a->requests = requests;
    nbc_lock();
    bool ok = nbc_own_requests_find(&a->ours, n, requests, false);
    a->turn = turn++;
    nbc_unlock();
    return ok;
}

static void array_end(struct array *a)
{
    nbc_own_requests_release(&a->ours);
}

/* Moves on one of ours, a different one each time, and the operations of the process; for as long
 * as some complete, since looking through a long array for few of them costs more than that. Under
 * the lock. Returns the place in the list that comes first this time. */
static int move_on(const struct array *a)
{
    int first = a->ours.n ? (int)(a->turn / 2 % (unsigned)a->ours.n) : 0;
    struct nbc_request *r = a->ours.n ? a->ours.list[first].r : NULL;
    unsigned begin = nbc_ncompleted, before;
    do {
        before = nbc_ncompleted;
        nbc_progress(r);
    } while (nbc_ncompleted != before && nbc_ncompleted - begin < (unsigned)a->ours.n);
    return first;
}

/* Completes one of ours if it can; then *error is the result of the call. */
static bool any_ours(const struct array *a, int *index, MPI_Status *status, int *error)
{
    nbc_lock();
    const struct nbc_own_requests *ours = &a->ours;
    int at = move_on(a);
    for (int i = 0; i < ours->n; i++) {
        const struct nbc_own_request *p = &ours->list[at];
        if (p->r->state == NBC_COMPLETE) {
            *index = p->index;
            *error = nbc_request_conclude(p->r, &a->requests[p->index], status);
            return true;
        }
        at = at + 1 < ours->n ? at + 1 : 0;
    }
    nbc_unlock();
    return false;
}

static bool any_other(const struct array *a, int *index, MPI_Status *status, int *error)
{
    if (a->ours.n && !a->ours.others)
        return false;
    int flag = 0;
    *error = NEXT(Testany)(a->n, a->requests, index, &flag, status);
    if (*error || !flag || *index != MPI_UNDEFINED)
        return *error || flag;
    if (a->ours.n)
        return false;       /* none of the others is active */
    nbc_set_status(status); /* MPICH 4.0.2 leaves it as it was */
    return true;
}

static bool any_round(struct array *a, int *index, MPI_Status *status, int *error)
{
    bool first = a->turn++ % 2;
    return (first && any_ours(a, index, status, error)) || any_other(a, index, status, error) ||
           (!first && any_ours(a, index, status, error));
}

/* A long array is not looked through for each of its operations: takes one of ours that is complete
 * already, from a different place on each time. Every now and then the others have a chance. */
static bool any_at_hand(int n, MPI_Request *requests, int *index, MPI_Status *status, int *error)
{
    enum { LONG = 32, OTHERS_TURN = 16 };
    if (n < LONG)
        return false;
    nbc_lock();
    unsigned start = turn;
    if (start % OTHERS_TURN == 0) {
        nbc_unlock();
        return false; /* array_begin takes this turn, an even one: the others are first */
    }
    turn++;
    for (int i = 0; i < n; i++) {
        int at = (int)((start + (unsigned)i) % (unsigned)n);
        struct nbc_request *r =
            requests[at] == MPI_REQUEST_NULL ? NULL : nbc_request_find(requests[at]);
        if (!r || r->state != NBC_COMPLETE)
            continue;
        *index = at;
        *error = nbc_request_conclude(r, &requests[at], status);
        return true;
    }
    nbc_unlock();
    return false;
}

static int wait_any(int n, MPI_Request *requests, int *index, MPI_Status *status)
{
    struct array a;
    int error, spins = 0;
    if (any_at_hand(n, requests, index, status, &error))
        return error;
    if (!array_begin(&a, n, requests))
        return nbc_raise_no_memory();
    while (a.ours.n || nbc_must_poll()) {
        if (any_round(&a, index, status, &error)) {
            array_end(&a);
            return error;
        }
        nbc_pause(&spins);
    }
    return NEXT(Waitany)(n, requests, index, status);
}

EXPORT(int, Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
       (count, requests, index, status))
{
    if (!nbc_may_have_own(count, requests) || !index)
        return NEXT(Waitany)(count, requests, index, status);
    return wait_any(count, requests, index, status);
}

static int test_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    struct array a;
    int error;
    *flag = any_at_hand(n, requests, index, status, &error);
    if (*flag)
        return error;
    if (!array_begin(&a, n, requests))
        return nbc_raise_no_memory();
    *flag = any_round(&a, index, status, &error);
    array_end(&a);
    if (*flag)
        return error;
    *index = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

EXPORT(int, Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
       (count, requests, index, flag, status))
{
    if (!nbc_may_have_own(count, requests) || !index || !flag)
        return NEXT(Testany)(count, requests, index, flag, status);
    return test_any(count, requests, index, flag, status);
}

/* --- what calls with an array of statuses tell --- */

struct report {
    MPI_Status *statuses;
    int error;                    /* MPI_ERR_IN_STATUS, or MPI_SUCCESS so far */
    struct nbc_error_scope place; /* where it is to be raised */
};

static bool is_in_status(int error)
{
    int class = error;
    if (error != MPI_ERR_IN_STATUS)
        NEXT(Error_class)(error, &class);
    return class == MPI_ERR_IN_STATUS;
}

/* Tells of one operation of ours in statuses[at]. told: so many statuses are valid already; their
 * MPI_ERROR begins to count with the first error. (The standard has MPI_ERROR untouched where the
 * call succeeds. We write MPI_SUCCESS then: both MPIs do, and programs that read it exist.) */
static void tell(struct report *report, const struct nbc_own_request *p, MPI_Request *requests,
                 int at, int told)
{
    bool ignored = report->statuses == MPI_STATUSES_IGNORE;
    int error = p->r->state == NBC_ACTIVE ? MPI_ERR_PENDING : p->r->error;
    if (error && !report->error) {
        report->error = MPI_ERR_IN_STATUS;
        report->place = nbc_context_scope(p->r->context);
        for (int i = 0; i < told && !ignored; i++)
            report->statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
    if (p->r->state != NBC_ACTIVE)
        nbc_request_end(p->r, &requests[p->index]);
    if (ignored)
        return;
    report->statuses[at] = nbc_empty_status;
    report->statuses[at].MPI_ERROR = error;
}

/* An error of the MPI below has been raised there. */
static int raise_report(const struct report *report, int error)
{
    nbc_types_reclaim();
    return error || !report->error ? error : nbc_raise_at(&report->place, report->error);
}

/* --- some --- */

/* Completes all of ours that it can; count: so many others are in indices and statuses already.
 * Returns the sum. */
static int some_ours(const struct array *a, struct report *report, int *indices, int count)
{
    nbc_lock();
    move_on(a);
    for (int i = 0; i < a->ours.n; i++) {
        const struct nbc_own_request *p = &a->ours.list[i];
        if (p->r->state != NBC_COMPLETE)
            continue;
        indices[count] = p->index;
        tell(report, p, a->requests, count, count);
        count++;
    }
    nbc_unlock();
    return count;
}

/* Returns true when the call is over: something was completed, or nothing is active, or an error
 * came up, which *error tells. */
static bool some_round(struct array *a, int *outcount, int *indices, MPI_Status *statuses,
                       int *error)
{
    *outcount = 0;
    *error = MPI_SUCCESS;
    if (!a->ours.n || a->ours.others)
        *error = NEXT(Testsome)(a->n, a->requests, outcount, indices, statuses);
    if (*error && !is_in_status(*error))
        return true;
    if (*outcount == MPI_UNDEFINED) { /* none of the others is active */
        if (!a->ours.n)
            return true;
        *outcount = 0;
    }
    struct report report = {.statuses = statuses, .error = *error};
    a->turn += 2;
    *outcount = some_ours(a, &report, indices, *outcount);
    *error = raise_report(&report, *error);
    return *outcount > 0;
}

static int wait_some(int n, MPI_Request *requests, int *outcount, int *indices,
                     MPI_Status *statuses)
{
    struct array a;
    int error, spins = 0;
    if (!array_begin(&a, n, requests))
        return nbc_raise_no_memory();
    while (a.ours.n || nbc_must_poll()) {
        if (some_round(&a, outcount, indices, statuses, &error)) {
            array_end(&a);
            return error;
        }
        nbc_pause(&spins);
    }
    return NEXT(Waitsome)(n, requests, outcount, indices, statuses);
}

EXPORT(int, Waitsome,
       (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
       (incount, requests, outcount, indices, statuses))
{
    if (!nbc_may_have_own(incount, requests) || !outcount || !indices)
        return NEXT(Waitsome)(incount, requests, outcount, indices, statuses);
    return wait_some(incount, requests, outcount, indices, statuses);
}

static int test_some(int n, MPI_Request *requests, int *outcount, int *indices,
                     MPI_Status *statuses)
{
    struct array a;
    int error;
    if (!array_begin(&a, n, requests))
        return nbc_raise_no_memory();
    some_round(&a, outcount, indices, statuses, &error);
    array_end(&a);
    return error;
}

EXPORT(int, Testsome,
       (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
       (incount, requests, outcount, indices, statuses))
{
    if (!nbc_may_have_own(incount, requests) || !outcount || !indices)
        return NEXT(Testsome)(incount, requests, outcount, indices, statuses);
    return test_some(incount, requests, outcount, indices, statuses);
}

/* --- all --- */

/* Moves on the first of ours that is not complete. *first: all before it are; the caller's, zero at
 * the beginning. Returns true when all are. */
static bool all_ours(const struct array *a, int *first)
{
    const struct nbc_own_requests *ours = &a->ours;
    nbc_lock();
    while (*first < ours->n && ours->list[*first].r->state == NBC_COMPLETE)
        ++*first;
    if (*first < ours->n)
        nbc_progress(ours->list[*first].r);
    else if (ours->others)
        nbc_progress(NULL); /* for as long as the others take */
    while (*first < ours->n && ours->list[*first].r->state == NBC_COMPLETE)
        ++*first;
    nbc_unlock();
    return *first == ours->n;
}

/* The last act: the others are complete, or the MPI below reports errors, and then some of ours may
 * not be. */
static int all_end(struct array *a, MPI_Status *statuses, int error)
{
    if (error && !is_in_status(error)) {
        array_end(a);
        return error;
    }
    struct report report = {.statuses = statuses, .error = error};
    bool unwritten = !a->ours.others && a->ours.n < a->n; /* of null and inactive requests */
    for (int i = 0; unwritten && i < a->n && statuses != MPI_STATUSES_IGNORE; i++)
        statuses[i] = nbc_empty_status;
    nbc_lock();
    for (int i = 0; i < a->ours.n; i++)
        tell(&report, &a->ours.list[i], a->requests, a->ours.list[i].index, a->n);
    nbc_unlock();
    array_end(a);
    return raise_report(&report, error);
}

/* What is not ours of an array that MPI_Waitall got, completed by MPI_Testsome as it comes. Not by
 * MPI_Testall: that of MPICH 4.0.2 takes partitioned requests under way for failed, and polls
 * requests of files again that are complete, which ends the program. */
struct others {
    int left;    /* that may be active */
    bool marked; /* the statuses, where there are others */
    int *indices;
    MPI_Status *statuses; /* of MPI_Testsome */
    int some_indices[16];
    MPI_Status some_statuses[16];
};

/* What is not complete is pending, should there be an error. */
static void mark_pending(const struct array *a, MPI_Status *statuses)
{
    for (int i = 0; i < a->n; i++) {
        statuses[i] = nbc_empty_status;
        statuses[i].MPI_ERROR = a->requests[i] != MPI_REQUEST_NULL ? MPI_ERR_PENDING : MPI_SUCCESS;
    }
}

/* But not what is ours and inactive. */
static void unmark_ours(const struct array *a, MPI_Status *statuses)
{
    nbc_lock();
    for (int i = 0; i < a->n; i++)
        if (statuses[i].MPI_ERROR == MPI_ERR_PENDING && nbc_request_find(a->requests[i]))
            statuses[i].MPI_ERROR = MPI_SUCCESS;
    nbc_unlock();
}

static bool others_begin(struct others *o, const struct array *a, MPI_Status *statuses)
{
    const int room = sizeof o->some_indices / sizeof *o->some_indices;
    o->left = a->ours.others;
    o->indices = o->some_indices;
    o->statuses = o->some_statuses;
    if (o->left > room) {
        o->statuses = malloc((size_t)o->left * (sizeof *o->statuses + sizeof *o->indices));
        if (!o->statuses)
            return false;
        o->indices = (int *)(o->statuses + o->left);
    }
    o->marked = o->left > 0 && statuses != MPI_STATUSES_IGNORE;
    if (o->marked)
        mark_pending(a, statuses);
    return true;
}

static int others_test(struct others *o, const struct array *a, MPI_Status *statuses)
{
    bool ignored = statuses == MPI_STATUSES_IGNORE;
    int count = 0, error = NEXT(Testsome)(a->n, a->requests, &count, o->indices,
                                          ignored ? MPI_STATUSES_IGNORE : o->statuses);
    if (error && !is_in_status(error))
        return error;
    if (count == MPI_UNDEFINED) { /* the rest is inactive */
        o->left = 0;
        return error;
    }
    o->left -= count;
    for (int i = 0; i < count && !ignored; i++) {
        statuses[o->indices[i]] = o->statuses[i];
        if (!error)
            statuses[o->indices[i]].MPI_ERROR = MPI_SUCCESS;
    }
    return error;
}

static void others_end(struct others *o, const struct array *a, MPI_Status *statuses, int error)
{
    for (int i = 0; o->marked && i < a->n && !error; i++)
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (o->marked && error)
        unmark_ours(a, statuses);
    if (o->statuses != o->some_statuses)
        free(o->statuses);
}

static int wait_all(int n, MPI_Request *requests, MPI_Status *statuses)
{
    struct array a;
    struct others others;
    int error = MPI_SUCCESS, first = 0, spins = 0;
    if (!array_begin(&a, n, requests))
        return nbc_raise_no_memory();
    if (!a.ours.n && !nbc_must_poll())
        return NEXT(Waitall)(n, requests, statuses);
    if (!others_begin(&others, &a, statuses)) {
        array_end(&a);
        return nbc_raise_no_memory();
    }
    for (;;) {
        if (others.left > 0)
            error = others_test(&others, &a, statuses);
        if (error)
            break;
        int before = first;
        bool ours_done = all_ours(&a, &first);
        if (first > before)
            spins = 0;
        if (ours_done && others.left == 0)
            break;
        if (ours_done && others.left == a.ours.others && !nbc_must_poll()) {
            error = NEXT(Waitall)(n, requests, statuses);
            break;
        }
        nbc_pause(&spins);
    }
    others_end(&others, &a, statuses, error);
    return all_end(&a, statuses, error);
}

EXPORT(int, Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
       (count, requests, statuses))
{
    if (!nbc_may_have_own(count, requests))
        return NEXT(Waitall)(count, requests, statuses);
    return wait_all(count, requests, statuses);
}

/* While one of ours is pending nothing may be completed, but the others must move on: MPICH has
 * requests that only completion calls for them move on, as those of collective file operations. */
static int poll_others(const struct array *a, int pending, MPI_Status *statuses)
{
    MPI_Request *place = &a->requests[a->ours.list[pending].index], ours = *place;
    int flag;
    if (!a->ours.others)
        return MPI_SUCCESS;
    nbc_lock();
    MPI_Request never = nbc_pending_dummy();
    nbc_unlock();
    if (never == MPI_REQUEST_NULL)
        return MPI_SUCCESS;
    *place = never;
    int error = NEXT(Testall)(a->n, a->requests, &flag, statuses);
    *place = ours;
    return error;
}

static int test_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    struct array a;
    int error = MPI_SUCCESS, first = 0;
    if (!array_begin(&a, n, requests))
        return nbc_raise_no_memory();
    *flag = all_ours(&a, &first);
    if (!*flag)
        error = poll_others(&a, first, statuses);
    else if (a.ours.others)
        error = NEXT(Testall)(n, requests, flag, statuses);
    if (*flag || error)
        return all_end(&a, statuses, error);
    array_end(&a);
    return MPI_SUCCESS;
}

EXPORT(int, Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
       (count, requests, flag, statuses))
{
    if (!nbc_may_have_own(count, requests) || !flag)
        return NEXT(Testall)(count, requests, flag, statuses);
    return test_all(count, requests, flag, statuses);
}
