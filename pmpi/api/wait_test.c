/* SPDX-License-Identifier: MIT */
/* The completion calls, and MPI_Request_get_status and its kin, which complete nothing: MPI-4.1
 * sections 3.7.3, 3.7.5, 3.7.6. An array may contain own requests, which nbcshim completes, and
 * other requests, which the MPI below completes.
 *
 * For the MPI below, the handle of an own request is an inactive persistent request. So it gets the
 * unchanged array: its completion calls ignore inactive requests, give them the empty status and
 * leave their handles unchanged. The other requests are tested without the lock, because these
 * calls may run callbacks and error handlers of the program. Own requests are completed under the
 * lock, and no thread waits while it holds the lock.
 *
 * A call for one or some requests of a long array looks through it only if it finds no complete own
 * request by the places that earlier calls have remembered (request/ready.c). */
#include "api/wait_test.h"

#include <limits.h>

#include "base/in_mpi.h"
#include "base/errors.h"
#include "base/state.h"
#include "below/export.h"
#include "below/quirks.h"
#include "comm/context.h"
#include "hookless/poll.h"
#include "op/message.h"
#include "op/types.h"

NBC_ARCHIVE_MEMBER(wait_test)

/* Defines a call with an array, which goes to the MPI below if the array cannot have own requests,
 * or the program has passed no place for a result. */
#define TESTS(name, params, args, n, results, instead)                                 \
    EXPORT(int, name, params, args)                                                    \
    {                                                                                  \
        return nbc_may_have_own(n, requests) && (results) ? instead : NEXT(name) args; \
    }

/* The same of a call that waits. */
#define WAITS(name, params, args, n, results, instead)    \
    EXPORT(int, name, params, args)                       \
    {                                                     \
        if (!may_have_to_poll(n, requests) || !(results)) \
            return NEXT(name) args;                       \
        int error = instead;                              \
        NBC_STAY;                                         \
        return error;                                     \
    }

/* The empty status as the MPI below writes it, with MPI_ERROR = MPI_SUCCESS. It is also the status
 * of a complete collective. Written at init, only read afterwards. */
static MPI_Status empty_status;

bool nbc_is_of_callback(int n, const MPI_Request *requests)
{
    bool found = false;
    if (nbc_has_lock() || !nbc_any_user_requests())
        return false;
    for (int i = 0; i < n && !found; i++)
        found = nbc_request_is_own(requests[i]);
    return found;
}

/* Whether a call that waits may have to poll for an array: also if another thread may start an
 * operation meanwhile. */
static inline bool may_have_to_poll(int n, const MPI_Request *requests)
{
    return nbc_waits_may_poll() && n > 0 && requests && nbc_is_of_program(n, requests);
}

void nbc_complete_setup(void)
{
    MPI_Request null = MPI_REQUEST_NULL;
    int flag;
    NEXT(Test)(&null, &flag, &empty_status);
    empty_status.MPI_ERROR = MPI_SUCCESS;
}

/* Writes the empty status as calls for one request do, which leave MPI_ERROR alone. */
static void set_status(MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    int error = status->MPI_ERROR;
    *status = empty_status;
    status->MPI_ERROR = error;
}

/* Reports the completion of r to the program: a persistent request becomes inactive, any other is
 * freed and *request set to MPI_REQUEST_NULL. Returns the error of the operation, not raised. Under
 * the lock. */
static inline int request_end(struct nbc_request *r, MPI_Request *request)
{
    int error = r->error;
    nbc_poll_now_and_then();
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

static __attribute__((cold, noinline)) int conclude_failed(struct nbc_request *r,
                                                           MPI_Request *request, MPI_Status *status)
{
    const struct nbc_error_scope place = nbc_context_scope(r->context);
    int error = request_end(r, request);
    nbc_unlock();
    set_status(status);
    nbc_types_reclaim();
    return nbc_raise_at(&place, error);
}

/* The same at the end of a call for one request: also writes the status and raises the error.
 * Called with the lock held, returns without it. */
static int conclude(struct nbc_request *r, MPI_Request *request, MPI_Status *status)
{
    if (__builtin_expect(r->error, 0))
        return conclude_failed(r, request, status);
    request_end(r, request);
    nbc_unlock();
    set_status(status);
    nbc_types_reclaim();
    return MPI_SUCCESS;
}

/* --- one request ------------------------------------------------------------------------------ */

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
        if (!r || !NBC_FREES_INACTIVE)
            return nbc_wait_other(request, status);
        /* unreached below: SMPI */
        set_status(status);
        return MPI_SUCCESS;
    }
    nbc_request_wait(r, 0);
    return conclude(r, request, status);
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
        return conclude(r, request, status);
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
        set_status(status);
    return MPI_SUCCESS;
}

EXPORT(int, Request_get_status, (MPI_Request request, int *flag, MPI_Status *status),
       (request, flag, status))
{
    if (!nbc_any_user_requests() || !flag)
        return NEXT(Request_get_status)(request, flag, status);
    return status_of_one(request, flag, status);
}

/* Arrays from LONG entries on are not looked through in each call. For MPI_Waitany and MPI_Testany
 * the MPI below tests WINDOW requests at once, and in a long wait about POLL in each poll, after
 * all have been tested once. */
enum { LONG = 32, WINDOW = 64, POLL = 512 };

/* 2^32 divided by the golden ratio: its multiples modulo 2^32 are spread evenly. */
static const unsigned TURN = 2654435769u;

/* --- statuses --- */

/* What a call with an array of statuses writes there for requests of nbcshim, and the error that it
 * raises. */
struct statuses {
    MPI_Status *list;
    int nvalid;                   /* so many are valid, but for their MPI_ERROR */
    int error;                    /* MPI_ERR_IN_STATUS, or MPI_SUCCESS so far */
    int first;                    /* the error of the first request that has one */
    struct nbc_error_scope place; /* where the error is to be raised */
};

/* Reports a request in list[at]. With the first error, sets MPI_ERROR of those that are valid. (The
 * standard leaves MPI_ERROR untouched where the call succeeds. nbcshim writes MPI_SUCCESS, as both
 * MPIs do, since some programs read it.) Ends the request if it is complete. Under the lock. */
static void statuses_set(struct statuses *s, struct nbc_request *r, MPI_Request *request, int at)
{
    bool ignored = s->list == MPI_STATUSES_IGNORE;
    int error = r->state == NBC_ACTIVE ? MPI_ERR_PENDING : r->error;
    if (error && !s->error) {
        s->error = MPI_ERR_IN_STATUS;
        s->first = error;
        s->place = nbc_context_scope(r->context);
        for (int i = 0; i < s->nvalid && !ignored; i++)
            s->list[i].MPI_ERROR = MPI_SUCCESS;
    }
    if (r->state != NBC_ACTIVE)
        request_end(r, request);
    if (ignored)
        return;
    s->list[at] = empty_status;
    s->list[at].MPI_ERROR = error;
}

/* At the end of the call: raises the error, unless the MPI below has raised `error` already.
 * Returns the error of the call. Without the lock. */
static int statuses_raise(const struct statuses *s, int error)
{
    nbc_types_reclaim();
    return error || !s->error ? error : nbc_raise_in_status(&s->place, s->first);
}

/* --- any and some --- */

struct array {
    struct nbc_own own; /* once the call has looked through the array */
    int n;
    MPI_Request *requests;
    unsigned turn;      /* a multiple of TURN, another one in each call */
    bool seen;          /* the call has looked through the array */
    bool again;         /* this is not its first round */
    bool others_active; /* of the other requests, one was active */
};

/* Looks through the array, and remembers where own requests are. Under the lock. */
static void array_look(struct array *a)
{
    nbc_own_find(&a->own, a->n, a->requests, true);
    a->seen = true;
}

/* A long array is looked through now and then even if complete requests are known, lest one starve
 * that the program has put into the array. */
static void array_begin(struct array *a, int n, MPI_Request *requests)
{
    static unsigned turn;
    *a = (struct array){.n = n, .requests = requests};
    nbc_lock();
    a->turn = turn += TURN;
    if (n < LONG || a->turn < UINT_MAX / ((unsigned)n / 4 + 16))
        array_look(a);
    nbc_unlock();
}

/* Progresses operations until some complete, or for about as long as it takes to look through the
 * array. Under the lock. */
static void array_progress(const struct array *a)
{
    enum { MOST = 8 };
    unsigned before = nbc_ncompleted;
    int most = a->n / WINDOW;
    for (int i = 0; i <= most && i < MOST && nbc_ncompleted == before && nbc_any_active(); i++)
        nbc_progress(a->own.active);
}

/* A complete own request, by its place; NULL if there is none, and then the call has looked through
 * the array. Under the lock. */
static struct nbc_request *array_ready(struct array *a, int *place)
{
    const bool none = a->seen && !a->own.n;
    struct nbc_request *r = none ? NULL : nbc_ready_find(a->requests, a->n, a->turn, place);
    if (r)
        return r;
    array_progress(a);
    if (none)
        return NULL;
    r = nbc_ready_find(a->requests, a->n, a->turn, place);
    if (r || a->seen)
        return r;
    array_look(a);
    *place = a->own.ready;
    return *place < a->n ? nbc_request_find(a->requests[*place]) : NULL;
}

/* What a call does that has found nothing complete. */
enum next { AGAIN, NOTHING_ACTIVE, NOT_YET, WAIT_BELOW };

static enum next array_next(struct array *a, bool waits, int *spins)
{
    if (!a->own.n && !a->others_active)
        return NOTHING_ACTIVE;
    if (!waits)
        return NOT_YET;
    if (!a->own.n && !nbc_must_poll())
        return WAIT_BELOW;
    a->again = true;
    nbc_pause(spins);
    return AGAIN;
}

/* Reports one complete own request, if there is one. Then *error is the result of the call. */
static bool any_own(struct array *a, int *index, MPI_Status *status, int *error)
{
    int place;
    nbc_lock();
    struct nbc_request *r = array_ready(a, &place);
    if (!r) {
        nbc_unlock();
        return false;
    }
    *index = place;
    *error = conclude(r, &a->requests[place], status);
    return true;
}

/* Of the last such test of a long array: behind which place it ended, and whether it has found a
 * complete one; then more may be. */
static int other_next;
static bool other_found;

/* The same of the other requests, of which it tests about `most`, in windows of the array. In a
 * long array it goes on where the last such test has ended. */
static bool any_other(struct array *a, int most, int *index, MPI_Status *status, int *error)
{
    const bool ignored = status == MPI_STATUS_IGNORE, is_long = a->n >= LONG;
    int first = is_long ? __atomic_load_n(&other_next, __ATOMIC_RELAXED) % a->n : 0;
    bool found = false;
    MPI_Status mine; /* the MPI below may write it although nothing is complete */
    if (a->seen && !a->own.others)
        return false;
    if (!ignored)
        mine = *status;
    for (int left = most < a->n ? most : a->n, n; left > 0 && !found; left -= n) {
        int at = MPI_UNDEFINED, flag = 0;
        n = a->n - first < WINDOW ? a->n - first : WINDOW;
        *error = NEXT(Testany)(n, &a->requests[first], &at, &flag, ignored ? status : &mine);
        a->others_active |= !flag;
        found = *error || (flag && at != MPI_UNDEFINED);
        *index = at == MPI_UNDEFINED ? at : first + at;
        first = found && at != MPI_UNDEFINED ? *index + 1 : first + n;
        first = first < a->n ? first : 0;
    }
    if (found && !ignored)
        *status = mine;
    if (is_long) {
        __atomic_store_n(&other_next, first, __ATOMIC_RELAXED);
        __atomic_store_n(&other_found, found, __ATOMIC_RELAXED);
    }
    return found;
}

static bool any_round(struct array *a, int *index, MPI_Status *status, int *error)
{
    const bool often = a->n < LONG || __atomic_load_n(&other_found, __ATOMIC_RELAXED);
    const bool others_first = a->turn < UINT_MAX / (often ? 2 : 16);
    if (others_first && any_other(a, WINDOW, index, status, error))
        return true;
    if (any_own(a, index, status, error))
        return true;
    if (others_first && a->n <= WINDOW)
        return false;
    return any_other(a, a->again ? POLL : a->n, index, status, error);
}

/* MPI_Waitany if flag is NULL, else MPI_Testany. (MPICH2 1.4.1 and MPICH 3.2 wait forever for
 * inactive requests, and they do not know those of nbcshim. MPICH 4.0.2 leaves the status of such a
 * call as it was.) */
static int complete_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    struct array a;
    enum next next;
    int error, spins = 0;
    array_begin(&a, n, requests);
    do {
        if (any_round(&a, index, status, &error)) {
            if (flag)
                *flag = 1;
            return error;
        }
        next = array_next(&a, !flag, &spins);
    } while (next == AGAIN);
    if (next == WAIT_BELOW)
        return NEXT(Waitany)(n, requests, index, status);
    *index = MPI_UNDEFINED;
    if (flag)
        *flag = next == NOTHING_ACTIVE;
    if (next == NOTHING_ACTIVE)
        set_status(status);
    return MPI_SUCCESS;
}

WAITS(Waitany, (int n, MPI_Request requests[], int *index, MPI_Status *status),
      (n, requests, index, status), n, index, complete_any(n, requests, index, NULL, status))

TESTS(Testany, (int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
      (n, requests, index, flag, status), n, index &&flag,
      complete_any(n, requests, index, flag, status))

/* Reports all complete own requests that are known after the first `count` entries of indices and
 * statuses, which are those of other requests. Returns the number of entries. */
static int some_own(struct array *a, struct statuses *report, int *indices, int count)
{
    int place;
    nbc_lock();
    for (struct nbc_request *r = array_ready(a, &place); r;
         r = nbc_ready_find(a->requests, a->n, a->turn, &place)) {
        indices[count] = place;
        report->nvalid = count;
        statuses_set(report, r, &a->requests[place], count);
        count++;
    }
    nbc_unlock();
    return count;
}

/* The same of the other requests, which come first: MVAPICH2 2.3 writes a status behind the last
 * one that it returns. Returns an error of the MPI below. */
static int some_other(struct array *a, int *count, int *indices, MPI_Status *statuses)
{
    if (a->seen && !a->own.others)
        return MPI_SUCCESS;
    int error = NEXT(Testsome)(a->n, a->requests, count, indices, statuses);
    a->others_active |= *count != MPI_UNDEFINED;
    if (*count == MPI_UNDEFINED)
        *count = 0;
    return error;
}

/* One poll. Returns true when the call is over: a request is complete, or the MPI below has failed.
 * Sets *error. In a long array, other requests are tested if no own one is complete, or now and
 * then. */
static bool some_round(struct array *a, int *count, int *indices, MPI_Status *statuses, int *error)
{
    struct statuses report = {.list = statuses};
    *error = MPI_SUCCESS;
    *count = a->seen ? 0 : some_own(a, &report, indices, 0);
    if (*count == 0) {
        *error = some_other(a, count, indices, statuses);
        if (*error && !nbc_error_is_of(*error, MPI_ERR_IN_STATUS))
            return true;
        report.error = *error;
        *count = some_own(a, &report, indices, *count);
    }
    *error = statuses_raise(&report, *error);
    return *count > 0;
}

static int complete_some(int n, MPI_Request *requests, bool waits, int *outcount, int *indices,
                         MPI_Status *statuses)
{
    struct array a;
    enum next next;
    int error, spins = 0;
    array_begin(&a, n, requests);
    do {
        if (some_round(&a, outcount, indices, statuses, &error))
            return error;
        next = array_next(&a, waits, &spins);
    } while (next == AGAIN);
    if (next == WAIT_BELOW)
        return NEXT(Waitsome)(n, requests, outcount, indices, statuses);
    if (next == NOTHING_ACTIVE)
        *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

WAITS(Waitsome, (int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]),
      (n, requests, count, indices, statuses), n, count &&indices,
      complete_some(n, requests, true, count, indices, statuses))

TESTS(Testsome, (int n, MPI_Request requests[], int *count, int indices[], MPI_Status statuses[]),
      (n, requests, count, indices, statuses), n, count &&indices,
      complete_some(n, requests, false, count, indices, statuses))

/* --- all --- */

/* Ends complete own requests from *place on, up to the first active one, which it returns; or, if
 * it passes the active ones, up to the last. Under the lock. */
static struct nbc_request *all_own(struct statuses *report, int n, MPI_Request *requests,
                                   int *place, bool passes)
{
    for (; *place < n; ++*place) {
        MPI_Request *at = &requests[*place];
        struct nbc_request *r = *at == MPI_REQUEST_NULL ? NULL : nbc_request_find(*at);
        if (!r || r->state == NBC_INACTIVE)
            continue;
        if (r->state == NBC_ACTIVE && !passes)
            return r;
        statuses_set(report, r, at, *place);
    }
    return NULL;
}

/* MPICH reports inactive requests as pending if another one fails. Under the lock. */
static void inactive_are_over(int n, const MPI_Request *requests, MPI_Status *statuses)
{
    for (int i = 0; i < n && statuses != MPI_STATUSES_IGNORE; i++) {
        const struct nbc_request *r = nbc_request_find(requests[i]);
        if (r && r->state == NBC_INACTIVE && statuses[i].MPI_ERROR == MPI_ERR_PENDING)
            statuses[i] = empty_status;
    }
}

/* Ends the call. Either all requests are complete, or the MPI below reports errors, and some own
 * requests may still be active. `place`: of the first own one that has not been reported. */
static int all_end(int n, MPI_Request *requests, struct statuses *report, int place, int error)
{
    if (error && !nbc_error_is_of(error, MPI_ERR_IN_STATUS))
        return error; /* unreached: no memory */
    nbc_lock();
    if (error) {
        report->error = error;
        inactive_are_over(n, requests, report->list);
    }
    all_own(report, n, requests, &place, true);
    nbc_unlock();
    return statuses_raise(report, error);
}

/* Sets the statuses as they are to be if an error occurs: other requests are pending. Those of own
 * ones are set at the end. Under the lock. */
static void statuses_begin(int n, const MPI_Request *requests, MPI_Status *statuses)
{
    for (int i = 0; i < n && statuses != MPI_STATUSES_IGNORE; i++) {
        bool is_other = requests[i] != MPI_REQUEST_NULL && !nbc_request_find(requests[i]);
        statuses[i] = empty_status;
        statuses[i].MPI_ERROR = is_other ? MPI_ERR_PENDING : MPI_SUCCESS;
    }
}

/* The other requests in an array of MPI_Waitall, which are tested in turn: some progress only in
 * completion calls for them, those of collective file operations in MPICH. MPI_Testall would not
 * do: in MPICH 4.0.2 it reports active partitioned requests as failed, and polls complete requests
 * of file operations again, which aborts the program. */
struct others {
    int place;     /* of the one that is tested next */
    int over;      /* so many in front of it are not active, as their last tests say */
    bool reported; /* a test has written a status for the program */
};

/* Tests one request, as a part of the call for all: an error is one in its status. */
static int other_test(struct others *o, MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Status mine;
    nbc_suppress_errors_begin();
    const int error = NEXT(Test)(request, flag, status ? &mine : MPI_STATUS_IGNORE);
    const bool raised = !nbc_suppress_errors_end();
    if (status && (*flag || error) && status->MPI_ERROR == MPI_ERR_PENDING) {
        *status = mine;
        status->MPI_ERROR = error;
        o->reported = true;
    }
    if (!error)
        return MPI_SUCCESS;
    return raised ? MPI_ERR_IN_STATUS : nbc_raise(MPI_COMM_NULL, MPI_ERR_IN_STATUS);
}

/* Tests other requests up to the first that is not complete, at most WINDOW. (The MPI below takes
 * those of nbcshim for inactive ones.) */
static int others_test(struct others *o, int n, MPI_Request *requests, MPI_Status *statuses)
{
    int error = MPI_SUCCESS, flag = true;
    for (int tests = 0; tests < WINDOW && o->over < n && flag && !error;) {
        const int at = o->place;
        o->place = at + 1 < n ? at + 1 : 0;
        if (requests[at] != MPI_REQUEST_NULL) {
            MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[at];
            error = other_test(o, &requests[at], &flag, status);
            tests++;
        }
        o->over = flag ? o->over + 1 : 0;
    }
    return error;
}

/* Ends own requests in their order, and progresses the first one that is not complete. Returns
 * whether all are complete. */
static bool all_step(struct statuses *report, int n, MPI_Request *requests, int *place, bool others)
{
    nbc_count_waiting(1);
    nbc_lock();
    struct nbc_request *active = all_own(report, n, requests, place, false);
    if (active || others) /* until the other requests are complete */
        nbc_progress(active);
    if (active)
        active = all_own(report, n, requests, place, false);
    nbc_unlock();
    nbc_count_waiting(-1);
    return !active;
}

/* Out of line, as for one request. */
static __attribute__((noinline)) int wait_all(int n, MPI_Request *requests, MPI_Status *statuses)
{
    struct nbc_own own;
    struct others others = {.place = 0};
    struct statuses report = {.list = statuses};
    int error = MPI_SUCCESS, place = 0, spins = 0;
    nbc_lock();
    nbc_own_find(&own, n, requests, false);
    const bool is_below = !own.n && !nbc_must_poll();
    if (!is_below)
        statuses_begin(n, requests, statuses);
    nbc_unlock();
    if (is_below) {
        error = NEXT(Waitall)(n, requests, statuses);
        return error ? all_end(n, requests, &report, n, error) : MPI_SUCCESS;
    }
    if (!own.others)
        others.over = n;
    for (;;) {
        const int before = place;
        const bool own_done = all_step(&report, n, requests, &place, others.over < n);
        if (place > before) /* mutants: >= for >: whose turn it is */
            spins = 0;
        if (own_done && others.over < n && !others.reported && !report.error && !nbc_must_poll()) {
            error = NEXT(Waitall)(n, requests, statuses);
            break;
        }
        if (others.over < n)
            error = others_test(&others, n, requests, statuses);
        if (error || (own_done && others.over == n))
            break;
        nbc_pause(&spins);
    }
    return all_end(n, requests, &report, place, error);
}

WAITS(Waitall, (int n, MPI_Request requests[], MPI_Status statuses[]), (n, requests, statuses), n,
      true, wait_all(n, requests, statuses))

/* A place of the program's array, and the request that belongs there. */
struct lent {
    MPI_Request *place, request;
};

static void lent_return(const struct lent *l)
{
    *l->place = l->request;
}

/* Progresses the other requests while an own one is pending, and completes none of them: the dummy
 * takes the place of the pending one, also if a callback ends the call by an exception (C++,
 * -fexceptions). MPICH has requests that progress only in completion calls for them, for example
 * those of collective file operations. */
static int poll_others(const struct nbc_own *own, int n, MPI_Request *requests,
                       MPI_Status *statuses)
{
    int flag;
    if (!own->others)
        return MPI_SUCCESS;
    nbc_lock();
    MPI_Request dummy = nbc_dummy_get();
    nbc_unlock();
    if (dummy == MPI_REQUEST_NULL)
        return MPI_SUCCESS; /* unreached: no memory */
    __attribute__((cleanup(lent_return)))
    const struct lent l = {&requests[own->pending], requests[own->pending]};
    *l.place = dummy;
    return NEXT(Testall)(n, requests, &flag, statuses);
}

static __attribute__((noinline)) int test_all(int n, MPI_Request *requests, int *flag,
                                              MPI_Status *statuses)
{
    struct nbc_own own;
    struct statuses report = {.list = statuses, .nvalid = n};
    int error = MPI_SUCCESS;
    nbc_lock();
    nbc_own_find(&own, n, requests, false);
    if (own.active || own.others)
        nbc_progress(own.active);
    if (own.active && own.active->state == NBC_COMPLETE)
        nbc_own_find(&own, n, requests, false);
    nbc_unlock();
    *flag = !own.active;
    if (own.active)
        error = poll_others(&own, n, requests, statuses);
    else if (own.others)
        error = NEXT(Testall)(n, requests, flag, statuses);
    else if (statuses != MPI_STATUSES_IGNORE)
        for (int i = 0; i < n; i++)
            statuses[i] = empty_status;
    if (!*flag && !error)
        return MPI_SUCCESS;
    return all_end(n, requests, &report, 0, error);
}

TESTS(Testall, (int n, MPI_Request requests[], int *flag, MPI_Status statuses[]),
      (n, requests, flag, statuses), n, flag, test_all(n, requests, flag, statuses))

/* --- the status of several requests ------------------------------------------------------------
 */

#ifdef HAVE_MPI_REQUEST_GET_STATUS_ANY
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

static int status_any(int n, NBC_CONST_STATUS MPI_Request *requests, int *index, int *flag,
                      MPI_Status *status)
{
    struct nbc_own own;
    status_begin(&own, n, requests);
    *flag = own.ready < n;
    *index = *flag ? own.ready : MPI_UNDEFINED;
    if (*flag)
        set_status(status);
    if (*flag || !must_ask_below(&own))
        return MPI_SUCCESS;
    int error = NEXT(Request_get_status_any)(n, requests, index, flag, status);
    if (!error && *index == MPI_UNDEFINED && own.n)
        *flag = 0; /* own requests are active, though no other one is */
    return error;
}

static int status_some(int n, NBC_CONST_STATUS MPI_Request *requests, int *count, int *indices,
                       MPI_Status *statuses)
{
    struct nbc_own own;
    int error = MPI_SUCCESS;
    status_begin(&own, n, requests);
    *count = 0;
    if (must_ask_below(&own))
        error = NEXT(Request_get_status_some)(n, requests, count, indices, statuses);
    if (error || !own.n)
        return error;
    if (*count == MPI_UNDEFINED)
        *count = 0;
    nbc_lock();
    for (int i = own.ready; i < n; i++) {
        const struct nbc_request *r = nbc_request_find(requests[i]);
        if (!r || r->state != NBC_COMPLETE)
            continue;
        indices[*count] = i;
        if (statuses != MPI_STATUSES_IGNORE)
            set_status(&statuses[*count]);
        ++*count;
    }
    nbc_unlock();
    return MPI_SUCCESS;
}

/* The MPI below sees a complete own request as inactive, which has the empty status too. */
static int status_all(int n, NBC_CONST_STATUS MPI_Request *requests, int *flag,
                      MPI_Status *statuses)
{
    struct nbc_own own;
    status_begin(&own, n, requests);
    *flag = !own.active;
    return *flag ? NEXT(Request_get_status_all)(n, requests, flag, statuses) : MPI_SUCCESS;
}

TESTS(Request_get_status_any,
      (int n, NBC_CONST_STATUS MPI_Request requests[], int *index, int *flag, MPI_Status *status),
      (n, requests, index, flag, status), n, index &&flag,
      status_any(n, requests, index, flag, status))

TESTS(Request_get_status_some,
      (int n, NBC_CONST_STATUS MPI_Request requests[], int *count, int indices[],
       MPI_Status statuses[]),
      (n, requests, count, indices, statuses), n, count &&indices,
      status_some(n, requests, count, indices, statuses))

TESTS(Request_get_status_all,
      (int n, NBC_CONST_STATUS MPI_Request requests[], int *flag, MPI_Status statuses[]),
      (n, requests, flag, statuses), n, flag, status_all(n, requests, flag, statuses))
#endif
