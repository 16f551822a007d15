/* SPDX-License-Identifier: MIT */
#include "completion.h"
#include "observe.h"

#include <stdlib.h>
#include <string.h>

int completion_call(enum completion by, int n, MPI_Request *r, int *done, int *at,
                    MPI_Status *statuses)
{
    MPI_Status *one = statuses ? statuses : MPI_STATUS_IGNORE;
    MPI_Status *many = statuses ? statuses : MPI_STATUSES_IGNORE;
    int unset = -5, flag = completion_tests(by) ? unset : 1, error;

    for (int i = 0; i < n; i++)
        at[i] = i;
    *done = n;
    switch (by) {
    case BY_WAIT:
        error = MPI_Wait(r, one);
        break;
    case BY_TEST:
        error = MPI_Test(r, &flag, one);
        break;
    case BY_WAITALL:
        error = MPI_Waitall(n, r, many);
        break;
    case BY_TESTALL:
        error = MPI_Testall(n, r, &flag, many);
        break;
    case BY_WAITANY:
        error = MPI_Waitany(n, r, done, one);
        break;
    case BY_TESTANY:
        error = MPI_Testany(n, r, done, &flag, one);
        break;
    case BY_WAITSOME:
        return MPI_Waitsome(n, r, done, at, many);
    default:
        return MPI_Testsome(n, r, done, at, many);
    }
    EXPECT(error || flag != unset, "a test has left its flag");
    EXPECT(error || flag || !completion_is_of_any(by) || *done == MPI_UNDEFINED,
           "MPI_Testany has index %d of what is not complete", *done);
    if (completion_is_of_any(by) && *done != MPI_UNDEFINED) {
        at[0] = *done;
        *done = 1;
    } else if (completion_is_of_one(by)) {
        *done = 1;
    } else if (n == 0) {
        *done = MPI_UNDEFINED;
    }
    if (!flag && !error)
        *done = 0;
    return error;
}

int completion_until(enum completion by, int n, MPI_Request *r, int *done, int *at,
                     MPI_Status *statuses)
{
    int error;

    do
        error = completion_call(by, n, r, done, at, statuses);
    while (!error && *done == 0);
    return error;
}

/* --- a pool ------------------------------------------------------------------------------------*/

enum { MAX_SELECTED = 300 };

/* The arguments of one call: some of the requests, in any order. */
struct selection {
    int n;
    int index[MAX_SELECTED]; /* in the pool; -1: a null request that belongs to nobody */
    MPI_Request request[MAX_SELECTED];
    MPI_Status status[MAX_SELECTED];
    bool ignore; /* the statuses */
    bool done[MAX_SELECTED];
    const MPI_Status *told[MAX_SELECTED];
};

struct pool *pool_new(void)
{
    struct pool *p = test_alloc(sizeof *p);

    *p = (struct pool){0};
    return p;
}

void pool_delete(struct pool *p)
{
    free(p->request);
    free(p->active);
    free(p->known);
    free(p->status);
    free(p->item);
    free(p);
}

static void *grow(void *old, int n, size_t size)
{
    void *p = realloc(old, (size_t)n * size);

    if (!p)
        abort();
    return p;
}

int pool_add(struct pool *p, MPI_Request request, void *item, bool active)
{
    int i = 0;

    while (i < p->n && p->item[i])
        i++;
    if (i == p->room) {
        p->room = 2 * p->room + 16;
        p->request = grow(p->request, p->room, sizeof *p->request);
        p->active = grow(p->active, p->room, sizeof *p->active);
        p->known = grow(p->known, p->room, sizeof *p->known);
        p->status = grow(p->status, p->room, sizeof *p->status);
        p->item = grow(p->item, p->room, sizeof *p->item);
    }
    if (i == p->n)
        p->n++;
    p->request[i] = request;
    p->item[i] = item;
    p->active[i] = active;
    p->known[i] = false;
    p->nactive += active;
    return i;
}

void pool_started(struct pool *p, int i)
{
    p->active[i] = true;
    p->nactive++;
}

void pool_remove(struct pool *p, int i)
{
    p->request[i] = MPI_REQUEST_NULL;
    p->item[i] = NULL;
}

static int sort_of(const struct pool *p, int i)
{
    return p->item[i] && p->sort ? p->sort(p->item[i]) : 0;
}

static bool may_take(const struct pool *p, const bool *taken, int i)
{
    return p->active[i] && !(taken && taken[i]);
}

/* What else an array has: few or many requests that are not active, or null, in a long one four for
 * each of the pool; and of the active ones all sorts, or one. */
static void fill_selection(const struct pool *p, struct rng *own, const int *order, int want,
                           const bool *taken, struct selection *s)
{
    int idle = rng_chance(own, 15) ? 80 : 10, null = rng_chance(own, 15) ? 50 : 3, first = 0;
    bool one_sort = rng_chance(own, 25), sparse = p->most == MAX_SELECTED && rng_chance(own, 50);

    while (first < p->n && !may_take(p, taken, order[first]))
        first++;
    for (int i = 0; i < p->n && s->n < want; i++) {
        int at = order[i];
        while (sparse && s->n < want - 1 && rng_chance(own, 80))
            s->index[s->n++] = -1;
        if (p->active[at] ? !may_take(p, taken, at) : !rng_chance(own, idle))
            continue;
        if (p->active[at] && one_sort && sort_of(p, at) != sort_of(p, order[first]))
            continue;
        s->index[s->n++] = !p->active[at] && rng_chance(own, null) ? -1 : at;
    }
    for (int i = 0; i < s->n; i++)
        if (s->index[i] >= 0 && p->active[s->index[i]])
            return;
    if (first < p->n)
        s->index[s->n > 0 ? s->n - 1 : s->n++] = order[first];
}

/* MPI_Testall of MPICH 4.0.2 may end the program that passes MPI_STATUSES_IGNORE for more. */
static bool may_ignore(struct rng *own, int n)
{
    return n <= 64 && rng_chance(own, 50);
}

/* Up to `most` requests that are not taken, at least one of them active if there is any. */
static void selection_choose(const struct pool *p, struct rng *own, int most, const bool *taken,
                             struct selection *s)
{
    int *order = test_alloc((size_t)p->n * sizeof *order);

    for (int i = 0; i < p->n; i++)
        order[i] = i;
    rng_shuffle(own, order, p->n);
    s->n = 0;
    fill_selection(p, own, order, 1 + rng_below(own, most), taken, s);
    for (int i = 0; i < s->n; i++)
        s->request[i] = s->index[i] < 0 ? MPI_REQUEST_NULL : p->request[s->index[i]];
    s->ignore = may_ignore(own, s->n);
    free(order);
}

static bool is_active(const struct pool *p, const struct selection *s, int i)
{
    return s->index[i] >= 0 && p->active[s->index[i]];
}

static bool any_active(const struct pool *p, const struct selection *s)
{
    for (int i = 0; i < s->n; i++)
        if (is_active(p, s, i))
            return true;
    return false;
}

/* Some that MPI_Request_get_status has called complete. */
static bool any_known(const struct pool *p, const struct selection *s)
{
    for (int i = 0; i < s->n; i++)
        if (is_active(p, s, i) && p->known[s->index[i]])
            return true;
    return false;
}

static void selection_tell(struct selection *s, int i, const MPI_Status *status)
{
    s->done[i] = true;
    s->told[i] = s->ignore ? NULL : status;
}

static MPI_Status *statuses(struct selection *s)
{
    return s->ignore ? NULL : s->status;
}

/* The status of a request that is not active, or null. */
static void check_empty(const struct selection *s, const MPI_Status *status)
{
    int cancelled, count;

    if (s->ignore)
        return;
    MPI_Test_cancelled(status, &cancelled);
    MPI_Get_count(status, MPI_BYTE, &count);
    EXPECT(!cancelled && status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG &&
               count == 0,
           "the status of an inactive request: cancelled %d, source %d, tag %d, count %d",
           cancelled, status->MPI_SOURCE, status->MPI_TAG, count);
}

/* A call that returns one status does not set its MPI_ERROR. */
static bool is_untouched(const struct pool *p, const struct selection *s, int i)
{
    bool ours = !test_native && p->sort && sort_of(p, s->index[i]) == 0;

    return s->ignore || !ours || s->status[0].MPI_ERROR == UNTOUCHED;
}

static void make_call(const struct pool *p, struct selection *s, enum completion by)
{
    int n, at[MAX_SELECTED];
    bool one = completion_is_of_one(by) || completion_is_of_any(by);

    s->status[0].MPI_ERROR = UNTOUCHED;
    completion_call(by, s->n, s->request, &n, at, statuses(s));
    EXPECT(n || (completion_tests(by) && any_active(p, s)), "call %d waits for nothing", by);
    if (!completion_is_of_one(by) && !completion_is_of_all(by))
        EXPECT_INT(n == MPI_UNDEFINED, !any_active(p, s), "call %d completed %d of %d", by, n,
                   s->n);
    for (int i = 0; i < n; i++) {
        if (completion_is_of_all(by) && !is_active(p, s, i)) {
            check_empty(s, &s->status[i]);
            continue;
        }
        bool right = at[i] >= 0 && at[i] < s->n && is_active(p, s, at[i]) && !s->done[at[i]];
        EXPECT(right, "call %d returned index %d of %d, which was not active", by, at[i], s->n);
        EXPECT(!right || !one || is_untouched(p, s, at[i]), "call %d has set MPI_ERROR", by);
        if (right)
            selection_tell(s, at[i], &s->status[i]);
    }
}

/* One call of a selection as it is now; of_what: BY_WAIT for its first entry, or BY_WAITALL,
 * BY_WAITANY, BY_WAITSOME for the others. */
static void call(const struct pool *p, struct rng *own, struct selection *s,
                 enum completion of_what, bool wait)
{
    bool any = false, known = any_known(p, s);

    if ((of_what == BY_WAITANY || of_what == BY_WAITSOME) && p->has_files && !WAITS_BEAR_FILES)
        wait = false;
    if (of_what == BY_WAITANY && !WAITANY_BEARS_INACTIVE && !any_active(p, s))
        wait = false;
    if (!wait && of_what == BY_WAITALL && p->has_files)
        of_what = BY_WAITSOME;
    s->ignore = may_ignore(own, s->n);
    for (int i = 0; i < s->n; i++) {
        s->done[i] = false;
        s->told[i] = NULL;
    }
    make_call(p, s, of_what + !wait);
    for (int i = 0; i < s->n; i++)
        any = any || s->done[i];
    EXPECT(any || !known || of_what == BY_WAITALL,
           "call %d denies what MPI_Request_get_status has said", of_what + !wait);
}

/* Tells the caller what a call has completed. */
static void conclude(struct pool *p, struct selection *s, completed *done)
{
    for (int i = 0; i < s->n; i++) {
        int place = s->index[i];
        if (place < 0)
            continue;
        EXPECT(s->done[i] || s->request[i] == p->request[place],
               "a call has changed a request that it has not completed");
        p->request[place] = s->request[i];
        if (!s->done[i])
            continue;
        p->active[place] = false;
        p->nactive--;
        done(p, place, s->told[i] || !p->known[place] ? s->told[i] : &p->status[place]);
        p->known[place] = false;
    }
}

/* One poll of each. What was complete stays so. */
static void poll_statuses(struct pool *p, const struct selection *s)
{
    MPI_Status status;

    for (int i = 0; i < s->n; i++) {
        MPI_Request request = s->request[i];
        int flag = -1;
        MPI_Request_get_status(request, &flag, s->ignore ? MPI_STATUS_IGNORE : &status);
        if (!is_active(p, s, i)) {
            EXPECT_INT(flag, 1, "MPI_Request_get_status of a request that is not active");
            check_empty(s, &status);
            continue;
        }
        EXPECT(flag == 1 || !p->known[s->index[i]],
               "MPI_Request_get_status denies what it has said");
        if (!flag || s->ignore)
            continue;
        p->known[s->index[i]] = true;
        p->status[s->index[i]] = status;
    }
}

/* MPI_Request_get_status tells and does not complete. */
static void pool_poll(struct pool *p, struct rng *own)
{
    struct selection s;

    selection_choose(p, own, 5, NULL, &s);
    for (int i = 1 + rng_below(own, 20); i > 0 && !GET_STATUS_COMPLETES; i--)
        poll_statuses(p, &s);
}

/* Several arrays at once, completed in turns. What is complete stays there, null or inactive, until
 * some have nothing else. */
static void complete_arrays(struct pool *p, struct rng *own, bool block, completed *done)
{
    enum { ARRAYS = 3 };
    struct selection s[ARRAYS];
    bool *taken = test_alloc((size_t)p->n * sizeof *taken);

    memset(taken, 0, (size_t)p->n * sizeof *taken);
    for (int a = 0; a < ARRAYS; a++) {
        selection_choose(p, own, (p->most + 2) / 3, taken, &s[a]);
        for (int i = 0; i < s[a].n; i++)
            if (s[a].index[i] >= 0)
                taken[s[a].index[i]] = true;
    }
    for (int i = 3 + rng_below(own, 12); i > 0; i--) {
        int a = rng_below(own, ARRAYS);
        call(p, own, &s[a], 2 + 2 * rng_below(own, 3), block && rng_chance(own, 30));
        conclude(p, &s[a], done);
    }
    free(taken);
}

/* Persistent requests that are not active, and null ones, maybe none at all. */
static void choose_inactive(const struct pool *p, struct rng *own, struct selection *s)
{
    int want = rng_below(own, p->most + 1), first = p->n > 0 ? rng_below(own, p->n) : 0;

    s->n = 0;
    for (int i = 0; i < p->n && s->n < want; i++) {
        int place = (first + i) % p->n;
        if (!p->active[place])
            s->index[s->n++] = place;
    }
    for (int i = 0; i < s->n; i++)
        s->request[i] = p->request[s->index[i]];
}

/* A call that has nothing to complete: it says so at once, and leaves the handles. (The status of
 * an any call is left out: MPICH 4.0.2 does not write it.) */
static void complete_nothing(const struct pool *p, struct rng *own)
{
    enum completion by = rng_below(own, NCOMPLETIONS);
    int n, at[MAX_SELECTED];
    struct selection s;

    choose_inactive(p, own, &s);
    s.ignore = may_ignore(own, s.n);
    if (by == BY_WAITANY && !WAITANY_BEARS_INACTIVE)
        by = BY_TESTANY;
    if (completion_is_of_one(by) && s.n == 0)
        by = BY_WAITALL;
    int told = completion_is_of_one(by) ? 1 : completion_is_of_all(by) ? s.n : 0;
    completion_call(by, s.n, s.request, &n, at, statuses(&s));
    EXPECT_INT(n, told ? told : MPI_UNDEFINED, "call %d on %d inactive requests", by, s.n);
    for (int i = 0; i < told; i++)
        check_empty(&s, &s.status[i]);
    for (int i = 0; i < s.n; i++)
        EXPECT(s.request[i] == p->request[s.index[i]], "call %d has changed an inactive request",
               by);
}

static void complete_some(struct pool *p, struct rng *own, bool block, completed *done)
{
    struct selection s;
    bool wait = block && rng_chance(own, 50);
    enum completion of_what = 2 * rng_below(own, 4);

    selection_choose(p, own, of_what == BY_WAIT ? 1 : p->most, NULL, &s);
    call(p, own, &s, of_what, wait);
    conclude(p, &s, done);
}

void pool_complete(struct pool *p, struct rng *own, bool block, completed *done)
{
    p->most = rng_chance(own, 20) ? MAX_SELECTED : 24;
    if (p->nactive == 0 || rng_chance(own, 3))
        complete_nothing(p, own);
    if (p->nactive == 0)
        return;
    if (rng_chance(own, 15))
        pool_poll(p, own);
    if (rng_chance(own, 10))
        complete_arrays(p, own, block, done);
    else
        complete_some(p, own, block, done);
}

void pool_drain(struct pool *p, struct rng *own, int rest, completed *done)
{
    while (p->nactive > rest)
        pool_complete(p, own, true, done);
}
