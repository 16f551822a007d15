/* SPDX-License-Identifier: MIT */
/* The completion calls for several requests: MPI-4.1 section 3.7.5. An array may contain own
 * requests, which nbcshim completes, and other requests, which the MPI below completes.
 *
 * The other requests are tested by the MPI below, in the unchanged array (own_requests.h), and
 * without the lock, because these calls may run callbacks and error handlers of the program. Own
 * requests are completed under the lock, and no thread waits while it holds the lock. */
#include <stdlib.h>

#include "api/statuses.h"
#include "api/wait_test.h"
#include "api/wait_test_long.h"
#include "base/errors.h"
#include "base/lock.h"
#include "below/export.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/types.h"
#include "request/own_requests.h"
#include "request/pending_dummy.h"
#include "request/request.h"
#include "request/watched.h"

NBC_ARCHIVE_MEMBER(wait_test_many)

/* For calls that complete one or some requests: nbcshim goes on serving a long array in which only
 * other requests are left. */
static inline bool may_be_watched(int n, const MPI_Request *requests)
{
    return n >= NBC_WATCHED_LEAST && __atomic_load_n(&nbc_nwatched, __ATOMIC_RELAXED) && requests &&
           nbc_is_of_program(n, requests);
}

static inline bool may_complete_own(int n, const MPI_Request *requests)
{
    return nbc_may_have_own(n, requests) || may_be_watched(n, requests);
}

/* The same for a call that waits. */
static inline bool may_wait_for_own(int n, const MPI_Request *requests)
{
    return nbc_may_have_to_poll(n, requests) || may_be_watched(n, requests);
}

/* --- any --- */

/* The array of a call, and the own requests in it. */
struct array {
    int n;
    MPI_Request *requests;
    struct nbc_own_requests own; /* active or complete */
    unsigned turn;               /* selects the request that is examined first */
};

/* Changes with each call and each poll, so that no request is always first. Under the lock. */
static unsigned turn;

static bool array_begin(struct array *a, int n, MPI_Request *requests)
{
    a->n = n;
    a->requests = requests;
    nbc_lock();
    bool ok = nbc_own_requests_find(&a->own, n, requests, false);
    a->turn = turn++;
    nbc_unlock();
    return ok;
}

static void array_end(struct array *a)
{
    nbc_own_requests_release(&a->own);
}

/* Progresses one own request, a different one each time, and the operations of the process, for as
 * long as some complete: to search a long array for few complete requests would cost more. Under
 * the lock. Returns the place in the list at which the search begins this time. */
static int array_progress(const struct array *a)
{
    int first = a->own.n ? (int)(a->turn / 2 % (unsigned)a->own.n) : 0;
    struct nbc_request *r = a->own.n ? a->own.list[first].r : NULL;
    unsigned begin = nbc_ncompleted, before;
    do {
        before = nbc_ncompleted;
        nbc_progress(r);
    } while (nbc_ncompleted != before && nbc_ncompleted - begin < (unsigned)a->own.n);
    return first;
}

/* Reports one complete own request, if there is one. Then *error is the result of the call. */
static bool any_own(const struct array *a, int *index, MPI_Status *status, int *error)
{
    nbc_lock();
    const struct nbc_own_requests *own = &a->own;
    int at = array_progress(a);
    for (int i = 0; i < own->n; i++) {
        const struct nbc_own_request *p = &own->list[at];
        if (p->r->state == NBC_COMPLETE) {
            *index = p->index;
            *error = nbc_request_conclude(p->r, &a->requests[p->index], status);
            return true;
        }
        /* mutants: forget + 1: who comes first is drawn anew in each round */
        at = at + 1 < own->n ? at + 1 : 0;
    }
    nbc_unlock();
    return false;
}

static bool any_other(const struct array *a, int *index, MPI_Status *status, int *error)
{
    if (a->own.n && !a->own.others)
        return false;
    int flag = 0;
    *error = NEXT(Testany)(a->n, a->requests, index, &flag, status);
    if (*error || !flag || *index != MPI_UNDEFINED)
        return *error || flag;
    if (a->own.n)
        return false;       /* no other request is active */
    nbc_set_status(status); /* MPICH 4.0.2 leaves it as it was */
    return true;
}

static bool any_round(struct array *a, int *index, MPI_Status *status, int *error)
{
    bool first = a->turn++ % 2;
    return (first && any_own(a, index, status, error)) || any_other(a, index, status, error) ||
           (!first && any_own(a, index, status, error));
}

/* Whether no request of the array is active, and none is the MPI's. MPICH2 1.4.1 and MPICH 3.2 wait
 * forever for inactive requests, and they do not know those of nbcshim. */
static bool is_over(const struct array *a)
{
    return !a->own.n && !a->own.others;
}

static int wait_any(int n, MPI_Request *requests, int *index, MPI_Status *status)
{
    struct array a;
    int error, spins = 0;
    if (n >= NBC_WATCHED_LEAST && nbc_long_any(n, requests, index, NULL, status, &error))
        return error;
    if (!array_begin(&a, n, requests))
        /* unreached: no memory */
        return nbc_raise_no_memory();
    while (a.own.n || nbc_must_poll()) {
        if (any_round(&a, index, status, &error)) {
            array_end(&a);
            return error;
        }
        nbc_pause(&spins);
    }
    if (!is_over(&a))
        return NEXT(Waitany)(n, requests, index, status);
    *index = MPI_UNDEFINED;
    nbc_set_status(status);
    return MPI_SUCCESS;
}

EXPORT(int, Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
       (count, requests, index, status))
{
    if (!may_wait_for_own(count, requests) || !index)
        return NEXT(Waitany)(count, requests, index, status);
    return wait_any(count, requests, index, status);
}

static int test_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    struct array a;
    int error;
    if (n >= NBC_WATCHED_LEAST && nbc_long_any(n, requests, index, flag, status, &error))
        return error;
    if (!array_begin(&a, n, requests))
        /* unreached: no memory */
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
    if (!may_complete_own(count, requests) || !index || !flag)
        return NEXT(Testany)(count, requests, index, flag, status);
    return test_any(count, requests, index, flag, status);
}

/* --- some --- */

/* Reports all complete own requests after the first `count` entries of indices and statuses, which
 * are those of other requests. Returns the number of entries. */
static int some_own(const struct array *a, struct nbc_statuses *report, int *indices, int count)
{
    nbc_lock();
    array_progress(a);
    for (int i = 0; i < a->own.n; i++) {
        const struct nbc_own_request *p = &a->own.list[i];
        if (p->r->state != NBC_COMPLETE)
            continue;
        indices[count] = p->index;
        nbc_statuses_set(report, p->r, &a->requests[p->index], count, count);
        count++;
    }
    nbc_unlock();
    return count;
}

/* One poll. Returns true when the call is over: a request is complete, no request is active, or the
 * MPI below has failed. Sets *error. */
static bool some_round(struct array *a, int *outcount, int *indices, MPI_Status *statuses,
                       int *error)
{
    *outcount = 0;
    *error = MPI_SUCCESS;
    if (!a->own.n || a->own.others)
        *error = NEXT(Testsome)(a->n, a->requests, outcount, indices, statuses);
    if (*error && !nbc_is_in_status(*error))
        return true;
    if (*outcount == MPI_UNDEFINED) { /* no other request is active */
        if (!a->own.n)
            return true;
        *outcount = 0;
    }
    struct nbc_statuses report = {.list = statuses, .error = *error};
    a->turn += 2;
    *outcount = some_own(a, &report, indices, *outcount);
    *error = nbc_statuses_raise(&report, *error);
    return *outcount > 0;
}

static int wait_some(int n, MPI_Request *requests, int *outcount, int *indices,
                     MPI_Status *statuses)
{
    struct array a;
    int error, spins = 0;
    if (n >= NBC_WATCHED_LEAST &&
        nbc_long_some(n, requests, true, outcount, indices, statuses, &error))
        return error;
    if (!array_begin(&a, n, requests))
        /* unreached: no memory */
        return nbc_raise_no_memory();
    while (a.own.n || nbc_must_poll()) {
        if (some_round(&a, outcount, indices, statuses, &error)) {
            array_end(&a);
            return error;
        }
        nbc_pause(&spins);
    }
    if (!is_over(&a))
        return NEXT(Waitsome)(n, requests, outcount, indices, statuses);
    *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

EXPORT(int, Waitsome,
       (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
       (incount, requests, outcount, indices, statuses))
{
    if (!may_wait_for_own(incount, requests) || !outcount || !indices)
        return NEXT(Waitsome)(incount, requests, outcount, indices, statuses);
    return wait_some(incount, requests, outcount, indices, statuses);
}

static int test_some(int n, MPI_Request *requests, int *outcount, int *indices,
                     MPI_Status *statuses)
{
    struct array a;
    int error;
    if (n >= NBC_WATCHED_LEAST &&
        nbc_long_some(n, requests, false, outcount, indices, statuses, &error))
        return error;
    if (!array_begin(&a, n, requests))
        /* unreached: no memory */
        return nbc_raise_no_memory();
    some_round(&a, outcount, indices, statuses, &error);
    array_end(&a);
    return error;
}

EXPORT(int, Testsome,
       (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]),
       (incount, requests, outcount, indices, statuses))
{
    if (!may_complete_own(incount, requests) || !outcount || !indices)
        return NEXT(Testsome)(incount, requests, outcount, indices, statuses);
    return test_some(incount, requests, outcount, indices, statuses);
}

/* --- all --- */

/* Progresses the first own request that is not complete. All own requests before *first are
 * complete; the caller keeps it, zero at first. Returns true when all are complete. */
static bool all_own(const struct array *a, int *first)
{
    const struct nbc_own_requests *own = &a->own;
    nbc_lock();
    while (*first < own->n && own->list[*first].r->state == NBC_COMPLETE)
        ++*first;
    if (*first < own->n)
        nbc_progress(own->list[*first].r);
    else if (own->others)
        nbc_progress(NULL); /* until the other requests are complete */
    while (*first < own->n && own->list[*first].r->state == NBC_COMPLETE)
        ++*first;
    nbc_unlock();
    return *first == own->n;
}

/* Ends the call. Either all requests are complete, or the MPI below reports errors, and some own
 * requests may still be active. */
static int all_end(struct array *a, MPI_Status *statuses, int error)
{
    if (error && !nbc_is_in_status(error)) {
        /* unreached: no memory */
        array_end(a);
        return error;
    }
    struct nbc_statuses report = {.list = statuses, .error = error};
    /* mutants: <= for <: all are written once more */
    bool unwritten = !a->own.others && a->own.n < a->n; /* null and inactive requests */
    for (int i = 0; unwritten && i < a->n && statuses != MPI_STATUSES_IGNORE; i++)
        statuses[i] = nbc_empty_status;
    nbc_lock();
    for (int i = 0; i < a->own.n; i++) {
        const struct nbc_own_request *p = &a->own.list[i];
        nbc_statuses_set(&report, p->r, &a->requests[p->index], p->index, a->n);
    }
    nbc_unlock();
    array_end(a);
    return nbc_statuses_raise(&report, error);
}

/* The other requests in an array of MPI_Waitall. MPI_Testsome completes them one after the other.
 * MPI_Testall would not do: in MPICH 4.0.2 it reports active partitioned requests as failed, and
 * polls complete requests of file operations again, which aborts the program.
 *
 * An MPI may report a request that is not active: Intel MPI reports persistent ones to or from
 * MPI_PROC_NULL each time. So each request counts once. */
struct others {
    int left;     /* number of requests that may be active */
    bool marked;  /* mark_pending has written the statuses of the program */
    int *indices; /* of MPI_Testsome, as the next: for each request of the array, because MVAPICH2
                   * 2.3 writes a status behind the last one that it returns, for an inactive one */
    MPI_Status *statuses;
    bool *over; /* by place: null, of nbcshim, or reported */
    int some_indices[16];
    MPI_Status some_statuses[16];
    bool some_over[16];
};

/* Sets the statuses as they are to be if an error occurs: requests not complete are pending. */
static void mark_pending(const struct array *a, MPI_Status *statuses)
{
    for (int i = 0; i < a->n; i++) {
        statuses[i] = nbc_empty_status;
        statuses[i].MPI_ERROR = a->requests[i] != MPI_REQUEST_NULL ? MPI_ERR_PENDING : MPI_SUCCESS;
    }
}

/* Inactive own requests are not pending. */
static void unmark_own(const struct array *a, MPI_Status *statuses)
{
    nbc_lock();
    for (int i = 0; i < a->n; i++)
        if (statuses[i].MPI_ERROR == MPI_ERR_PENDING && nbc_request_find(a->requests[i]))
            statuses[i].MPI_ERROR = MPI_SUCCESS;
    nbc_unlock();
}

static bool others_make_room(struct others *o, int n)
{
    const int room = sizeof o->some_indices / sizeof *o->some_indices;
    o->indices = o->some_indices;
    o->statuses = o->some_statuses;
    o->over = o->some_over;
    if (o->left == 0 || n <= room)
        return true;
    o->statuses = malloc((size_t)n * (sizeof *o->statuses + sizeof *o->indices + sizeof *o->over));
    if (!o->statuses)
        return false;
    o->indices = (int *)(o->statuses + n);
    o->over = (bool *)(o->indices + n);
    return true;
}

static bool others_begin(struct others *o, const struct array *a, MPI_Status *statuses)
{
    o->left = a->own.others;
    if (!others_make_room(o, a->n))
        return false;
    o->marked = o->left > 0 && statuses != MPI_STATUSES_IGNORE;
    if (o->marked)
        mark_pending(a, statuses);
    if (o->left == 0)
        return true;
    nbc_lock();
    for (int i = 0; i < a->n; i++)
        o->over[i] = a->requests[i] == MPI_REQUEST_NULL || nbc_request_find(a->requests[i]);
    nbc_unlock();
    return true;
}

/* Takes over what the MPI below says of the request at this place. */
static void others_take(struct others *o, int place, const MPI_Status *status, bool failed,
                        MPI_Status *statuses)
{
    o->over[place] = true;
    o->left--;
    if (!o->marked)
        return;
    statuses[place] = *status;
    if (!failed)
        statuses[place].MPI_ERROR = MPI_SUCCESS;
}

/* Where MPI_Testsome reports nothing but what it has reported before, it will never say that all
 * remaining requests are inactive. MPI_Testall will. */
static int others_test_all(struct others *o, const struct array *a, MPI_Status *statuses)
{
    int flag = 0, error = NEXT(Testall)(a->n, a->requests, &flag,
                                        o->marked ? o->statuses : MPI_STATUSES_IGNORE);
    bool reported = error ? nbc_is_in_status(error) : flag;
    for (int i = 0; reported && i < a->n; i++)
        if (!o->over[i])
            others_take(o, i, &o->statuses[i], error, statuses);
    return error;
}

static int others_test(struct others *o, const struct array *a, MPI_Status *statuses)
{
    int before = o->left;
    int count = 0, error = NEXT(Testsome)(a->n, a->requests, &count, o->indices,
                                          o->marked ? o->statuses : MPI_STATUSES_IGNORE);
    if (error && !nbc_is_in_status(error))
        return error;
    if (count == MPI_UNDEFINED) { /* all remaining requests are inactive */
        o->left = 0;
        return error;
    }
    for (int i = 0; i < count; i++)
        if (!o->over[o->indices[i]])
            others_take(o, o->indices[i], &o->statuses[i], error, statuses);
    if (count == 0 || o->left < before || error)
        return error;
    return others_test_all(o, a, statuses);
}

static void others_end(struct others *o, const struct array *a, MPI_Status *statuses, int error)
{
    for (int i = 0; o->marked && i < a->n && !error; i++)
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (o->marked && error)
        unmark_own(a, statuses);
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
    if (!a.own.n && !nbc_must_poll())
        return NEXT(Waitall)(n, requests, statuses);
    if (!others_begin(&others, &a, statuses)) {
        /* unreached below: no memory */
        array_end(&a);
        return nbc_raise_no_memory();
    }
    for (;;) {
        int before = first;
        nbc_count_waiting(1);
        bool own_done = all_own(&a, &first);
        nbc_count_waiting(-1);
        /* mutants: >= for >: whose turn it is */
        if (first > before)
            spins = 0;
        if (own_done && others.left > 0 && others.left == a.own.others && !nbc_must_poll()) {
            error = NEXT(Waitall)(n, requests, statuses);
            break;
        }
        if (others.left > 0)
            error = others_test(&others, &a, statuses);
        if (error || (own_done && others.left == 0))
            break;
        nbc_pause(&spins);
    }
    others_end(&others, &a, statuses, error);
    return all_end(&a, statuses, error);
}

EXPORT(int, Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
       (count, requests, statuses))
{
    if (!nbc_may_have_to_poll(count, requests))
        return NEXT(Waitall)(count, requests, statuses);
    return wait_all(count, requests, statuses);
}

/* Progresses the other requests while an own one is pending, and completes none of them: the dummy
 * takes the place of the pending one. MPICH has requests that progress only in completion calls for
 * them, for example those of collective file operations. */
static int poll_others(const struct array *a, int pending, MPI_Status *statuses)
{
    MPI_Request *place = &a->requests[a->own.list[pending].index], saved = *place;
    int flag;
    if (!a->own.others)
        return MPI_SUCCESS;
    nbc_lock();
    MPI_Request dummy = nbc_pending_dummy();
    nbc_unlock();
    if (dummy == MPI_REQUEST_NULL)
        /* unreached: no memory */
        return MPI_SUCCESS;
    *place = dummy;
    int error = NEXT(Testall)(a->n, a->requests, &flag, statuses);
    *place = saved;
    return error;
}

static int test_all(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    struct array a;
    int error = MPI_SUCCESS, first = 0;
    if (!array_begin(&a, n, requests))
        return nbc_raise_no_memory();
    *flag = all_own(&a, &first);
    if (!*flag)
        error = poll_others(&a, first, statuses);
    else if (a.own.others)
        error = NEXT(Testall)(n, requests, flag, statuses);
    if (*flag || error)
        return all_end(&a, statuses, error);
    array_end(&a);
    return MPI_SUCCESS;
}

EXPORT(int, Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
       (count, requests, flag, statuses))
{
    /* mutants: && for ||: the long way round, with the same result */
    if (!nbc_may_have_own(count, requests) || !flag)
        return NEXT(Testall)(count, requests, flag, statuses);
    return test_all(count, requests, flag, statuses);
}
