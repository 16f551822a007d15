/* SPDX-License-Identifier: MIT */
/* Own requests that are complete come first: they are in a list. The others are tested in slices of
 * the array, by turns; every OTHERS_TURN-th call begins with them. A call for one request examines
 * all entries only if it finds nothing complete, and so does one for some requests; in a long wait
 * it does so step by step. */
#include "api/wait_test_long.h"

#include <limits.h>

#include "api/statuses.h"
#include "api/wait_test.h"
#include "op/types.h"
#include "request/watched.h"

/* In requests of the MPI below: per call of the MPI; per turn in which they come first; per poll of
 * a wait, after all have been tested once. */
enum { FIRST_SLICE = 8, SLICE = 64, TURN = 128, POLL = 512, OTHERS_TURN = 16 };

/* The array of a call against what was seen of it. While CHANGED, some requests of the MPI below
 * have not been tested yet. */
enum array { NOT_COMPARED, CHANGED, AS_SEEN };

struct call {
    struct nbc_watched *w;
    int n;
    MPI_Request *requests;
    bool others_first;
    enum array array;
    bool others_active; /* an active request of the MPI below was seen */
};

static bool call_begin(struct call *c, int n, MPI_Request *requests)
{
    *c = (struct call){.n = n, .requests = requests};
    nbc_lock();
    c->w = nbc_watched_begin(n, requests);
    if (c->w)
        c->others_first = c->w->turn % OTHERS_TURN == 0;
    nbc_unlock();
    return c->w;
}

static void call_end(const struct call *c)
{
    nbc_lock();
    nbc_watched_end(c->w);
    nbc_unlock();
}

/* Progresses operations until some complete, or for about as long as it takes to test the others.
 * Under the lock. */
static void call_progress(const struct call *c)
{
    enum { MOST = 8 };
    struct nbc_request *r = nbc_watched_active(c->w);
    unsigned before = nbc_ncompleted;
    int most = c->w->nothers / SLICE;
    for (int i = 0; i <= most && i < MOST && nbc_ncompleted == before && nbc_any_active(); i++)
        nbc_progress(r);
}

/* What a call does that has found nothing complete. */
enum next { AGAIN, NOTHING_ACTIVE, NOT_YET, WAIT_BELOW };

static enum next call_next(struct call *c, bool waits, int *spins)
{
    nbc_lock();
    bool same = c->array != NOT_COMPARED || nbc_watched_compare(c->w);
    bool own_active = nbc_watched_active(c->w);
    nbc_unlock();
    c->array = same ? AS_SEEN : CHANGED;
    if (!same)
        return AGAIN;
    if (!own_active && !c->others_active)
        return NOTHING_ACTIVE;
    if (!waits)
        return NOT_YET;
    if (!own_active && !nbc_must_poll())
        return WAIT_BELOW;
    nbc_pause(spins);
    return AGAIN;
}

/* --- the requests of the MPI below ---*/

struct slice {
    int n, passed;
    MPI_Request handles[SLICE];
    int places[SLICE];
};

/* The number of requests to be tested at most. */
static int others_most(const struct call *c)
{
    return c->array == AS_SEEN ? POLL : INT_MAX;
}

static void slice_take(struct slice *s, const struct call *c, int most)
{
    s->n = nbc_watched_others(c->w, most < SLICE ? most : SLICE, s->handles, s->places, &s->passed);
}

/* Takes over one handle as the MPI below has left it. Under the lock. */
static void slice_put(const struct slice *s, const struct call *c, int at)
{
    c->requests[s->places[at]] = s->handles[at];
    nbc_watched_tested(c->w, s->places[at], s->handles[at]);
}

/* After an error, when any may have changed. */
static void slice_put_all(const struct slice *s, const struct call *c)
{
    nbc_lock();
    for (int i = 0; i < s->n; i++)
        slice_put(s, c, i);
    nbc_unlock();
}

static bool slice_any(struct slice *s, struct call *c, int *index, MPI_Status *status, int *error)
{
    MPI_Status mine; /* the MPI below may write it although nothing is complete */
    bool ignored = status == MPI_STATUS_IGNORE;
    int at = MPI_UNDEFINED, flag = 0;
    if (!ignored)
        mine = *status;
    *error = NEXT(Testany)(s->n, s->handles, &at, &flag, ignored ? status : &mine);
    c->others_active |= !flag;
    if (!*error && (!flag || at == MPI_UNDEFINED))
        return false;
    if (!ignored)
        *status = mine;
    *index = at == MPI_UNDEFINED ? at : s->places[at];
    if (*error) {
        slice_put_all(s, c);
        return true;
    }
    nbc_lock();
    slice_put(s, c, at);
    nbc_unlock();
    return true;
}

/* Tests at most `most` of them. Returns whether one was complete, or *error set. */
static bool others_any(struct call *c, int most, int *index, MPI_Status *status, int *error)
{
    struct slice s;
    int left = most < c->w->nothers ? most : c->w->nothers, size = FIRST_SLICE;
    for (; left > 0; left -= s.passed) {
        slice_take(&s, c, left < size ? left : size);
        size = SLICE;
        if (s.n > 0 && slice_any(&s, c, index, status, error))
            return true;
    }
    return false;
}

/* The output of a call for some requests. */
struct some {
    int count, *indices;
    struct nbc_statuses statuses;
};

/* Returns the number of complete requests, or a negative one. */
static int slice_some(struct slice *s, struct call *c, struct some *out, int *error)
{
    int found = 0, at[SLICE];
    MPI_Status *list = out->statuses.list;
    bool ignored = list == MPI_STATUSES_IGNORE;
    *error = NEXT(Testsome)(s->n, s->handles, &found, at, ignored ? list : list + out->count);
    if (*error && !nbc_is_in_status(*error)) {
        /* unreached below: the MPI fails */
        slice_put_all(s, c);
        return -1;
    }
    c->others_active |= found != MPI_UNDEFINED;
    if (found == MPI_UNDEFINED)
        return 0;
    nbc_lock();
    for (int i = 0; i < found; i++) {
        int next = c->w->next;
        slice_put(s, c, at[i]);
        c->w->next = next;
        if (!*error && !ignored)
            list[out->count].MPI_ERROR = MPI_SUCCESS;
        out->indices[out->count++] = s->places[at[i]];
    }
    nbc_unlock();
    return found;
}

/* Goes on while nothing has been found, or many in each slice. Returns an error that the MPI below
 * has raised. */
static int others_some(struct call *c, struct some *out)
{
    enum { MANY = SLICE / 8 };
    struct slice s;
    int error = MPI_SUCCESS, most = others_most(c);
    int left = most < c->w->nothers ? most : c->w->nothers;
    for (; left > 0 && c->w->nothers > 0 && !error; left -= s.passed) {
        slice_take(&s, c, left);
        int found = s.n > 0 ? slice_some(&s, c, out, &error) : 0;
        if (found < 0 || (out->count > 0 && found < MANY))
            break;
    }
    return error;
}

/* --- any ---*/

/* Reports one complete own request, if there is one, and ends the call. */
static bool own_any(const struct call *c, int *index, MPI_Status *status, int *error)
{
    struct nbc_watched *w = c->w;
    nbc_lock();
    struct nbc_request *r = nbc_watched_ready(w);
    if (!r) {
        call_progress(c);
        r = nbc_watched_ready(w);
    }
    if (!r) {
        nbc_unlock();
        return false;
    }
    *index = r->place;
    if (!r->persistent)
        nbc_watched_forget(w, r->place);
    nbc_watched_end(w);
    *error = nbc_request_conclude(r, &c->requests[*index], status);
    return true;
}

static bool try_any(struct call *c, int *index, MPI_Status *status, int *error)
{
    bool first = c->others_first;
    c->others_first = false;
    if (first && others_any(c, TURN, index, status, error)) {
        call_end(c);
        return true;
    }
    if (own_any(c, index, status, error))
        return true;
    if (!others_any(c, others_most(c), index, status, error))
        return false;
    call_end(c);
    return true;
}

/* Nothing is complete, and the call does not wait for it. */
static int any_none(enum next next, int *index, int *flag, MPI_Status *status)
{
    *index = MPI_UNDEFINED;
    if (next == NOTHING_ACTIVE)
        nbc_set_status(status);
    if (flag)
        *flag = next == NOTHING_ACTIVE;
    return MPI_SUCCESS;
}

bool nbc_long_any(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status,
                  int *error)
{
    struct call c;
    enum next next = AGAIN;
    int spins = 0;
    if (!call_begin(&c, n, requests))
        return false;
    if (flag)
        *flag = 1;
    while (next == AGAIN) {
        if (try_any(&c, index, status, error))
            return true;
        next = call_next(&c, !flag, &spins);
    }
    call_end(&c); /* mutants: leave a call out: it is looked through in each call instead */
    *error = next == WAIT_BELOW ? NEXT(Waitany)(n, requests, index, status)
                                : any_none(next, index, flag, status);
    return true;
}

/* --- some ---*/

static void own_some(const struct call *c, struct some *out)
{
    nbc_lock();
    call_progress(c);
    for (struct nbc_request *r; (r = nbc_watched_ready(c->w));) {
        int place = r->place;
        if (!r->persistent)
            nbc_watched_forget(c->w, place);
        nbc_statuses_set(&out->statuses, r, &c->requests[place], out->count, 0);
        out->indices[out->count++] = place;
    }
    nbc_unlock();
}

/* Returns whether the call is over, with its result in *error. */
static bool try_some(struct call *c, struct some *out, int *error)
{
    own_some(c, out);
    *error = others_some(c, out);
    if (out->count == 0 && !*error)
        return false;
    call_end(c);
    *error = nbc_statuses_raise(&out->statuses, *error);
    return true;
}

bool nbc_long_some(int n, MPI_Request *requests, bool waits, int *outcount, int *indices,
                   MPI_Status *statuses, int *error)
{
    struct call c;
    struct some out = {.indices = indices, .statuses.list = statuses};
    enum next next = AGAIN;
    int spins = 0;
    if (!call_begin(&c, n, requests))
        return false;
    while (next == AGAIN) {
        if (try_some(&c, &out, error)) {
            *outcount = out.count;
            return true;
        }
        next = call_next(&c, waits, &spins);
    }
    call_end(&c); /* mutants: leave a call out: it is looked through in each call instead */
    if (next == WAIT_BELOW)
        *error = NEXT(Waitsome)(n, requests, outcount, indices, statuses);
    else
        *outcount = next == NOTHING_ACTIVE ? MPI_UNDEFINED : 0;
    return true;
}
