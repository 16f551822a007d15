/* SPDX-License-Identifier: MIT */
#include "completion.h"

#include <stdlib.h>
#include <string.h>

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

    *p = (struct pool){.most = 24};
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

/* What else an array has: few or many requests that are not active, or null; and of the active ones
 * all sorts, or one. */
static void fill_selection(const struct pool *p, struct rng *own, const int *order, int want,
                           const bool *taken, struct selection *s)
{
    int idle = rng_chance(own, 15) ? 80 : 10, null = rng_chance(own, 15) ? 50 : 3, first = 0;
    bool one_sort = rng_chance(own, 25);

    while (first < p->n && !may_take(p, taken, order[first]))
        first++;
    for (int i = 0; i < p->n && s->n < want; i++) {
        int at = order[i];
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

static MPI_Status *one(struct selection *s)
{
    return s->ignore ? MPI_STATUS_IGNORE : s->status;
}

static MPI_Status *many(struct selection *s)
{
    return s->ignore ? MPI_STATUSES_IGNORE : s->status;
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

static void tell_all(const struct pool *p, struct selection *s)
{
    for (int i = 0; i < s->n; i++) {
        if (is_active(p, s, i))
            selection_tell(s, i, &s->status[i]);
        else
            check_empty(s, &s->status[i]);
    }
}

/* What an any call says: index and one status. */
static void tell_any(const struct pool *p, struct selection *s, int index)
{
    bool right = index >= 0 && index < s->n && is_active(p, s, index);

    if (right)
        selection_tell(s, index, s->status);
    else
        EXPECT(index == MPI_UNDEFINED && !any_active(p, s),
               "an any call returned index %d of %d, where no request was active", index, s->n);
}

static void tell_some(const struct pool *p, struct selection *s, int n, const int *index)
{
    EXPECT_INT(n == MPI_UNDEFINED, !any_active(p, s), "a some call completed %d of %d", n, s->n);
    for (int i = 0; i < n; i++) {
        EXPECT(is_active(p, s, index[i]), "a some call returned an index that was not active");
        EXPECT(!s->done[index[i]], "a some call returned index %d twice", index[i]);
        selection_tell(s, index[i], &s->status[i]);
    }
}

static void wait_call(const struct pool *p, struct selection *s, int which)
{
    int n, index[MAX_SELECTED];

    switch (which) {
    case 0:
        MPI_Wait(&s->request[0], one(s));
        selection_tell(s, 0, s->status);
        break;
    case 1:
        MPI_Waitall(s->n, s->request, many(s));
        tell_all(p, s);
        break;
    case 2:
        MPI_Waitany(s->n, s->request, &n, one(s));
        tell_any(p, s, n);
        break;
    default:
        MPI_Waitsome(s->n, s->request, &n, index, many(s));
        EXPECT(n > 0 || n == MPI_UNDEFINED, "MPI_Waitsome completed %d", n);
        tell_some(p, s, n, index);
        break;
    }
}

static void test_call(const struct pool *p, struct selection *s, int which)
{
    int flag, n, index[MAX_SELECTED];

    switch (which) {
    case 0:
        MPI_Test(&s->request[0], &flag, one(s));
        if (flag)
            selection_tell(s, 0, s->status);
        break;
    case 1:
        MPI_Testall(s->n, s->request, &flag, many(s));
        EXPECT(flag || any_active(p, s), "MPI_Testall waits for nothing");
        if (flag)
            tell_all(p, s);
        break;
    case 2:
        MPI_Testany(s->n, s->request, &n, &flag, one(s));
        EXPECT(flag || any_active(p, s), "MPI_Testany waits for nothing");
        if (flag)
            tell_any(p, s, n);
        break;
    default:
        MPI_Testsome(s->n, s->request, &n, index, many(s));
        tell_some(p, s, n, index);
        break;
    }
}

/* One call of a selection as it is now: 0 for its first entry, or all, any, some for the others. */
static void call(const struct pool *p, struct rng *own, struct selection *s, int which, bool wait)
{
    bool any = false, known = any_known(p, s);

    if (which >= 2 && p->has_files && !WAITS_BEAR_FILES)
        wait = false;
    if (!wait && which == 1 && p->has_files)
        which = 3;
    s->ignore = may_ignore(own, s->n);
    for (int i = 0; i < s->n; i++) {
        s->done[i] = false;
        s->told[i] = NULL;
    }
    if (wait && (which != 2 || WAITANY_BEARS_INACTIVE || any_active(p, s)))
        wait_call(p, s, which);
    else
        test_call(p, s, which);
    for (int i = 0; i < s->n; i++)
        any = any || s->done[i];
    EXPECT(any || !known || which == 1, "test call %d denies what MPI_Request_get_status has said",
           which);
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
        call(p, own, &s[a], 1 + rng_below(own, 3), block && rng_chance(own, 30));
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
    int which = rng_below(own, 8), flag = 1, n = MPI_UNDEFINED, index[MAX_SELECTED], statuses = 0;
    struct selection s;

    choose_inactive(p, own, &s);
    s.ignore = may_ignore(own, s.n);
    if (which == 1 && !WAITANY_BEARS_INACTIVE)
        which = 4;
    if (which >= 6 && s.n == 0)
        which = 0;
    switch (which) {
    case 0:
        MPI_Waitall(s.n, s.request, many(&s));
        statuses = s.n;
        break;
    case 1:
        MPI_Waitany(s.n, s.request, &n, one(&s));
        break;
    case 2:
        MPI_Waitsome(s.n, s.request, &n, index, many(&s));
        break;
    case 3:
        MPI_Testall(s.n, s.request, &flag, many(&s));
        statuses = s.n;
        break;
    case 4:
        MPI_Testany(s.n, s.request, &n, &flag, one(&s));
        break;
    case 5:
        MPI_Testsome(s.n, s.request, &n, index, many(&s));
        break;
    case 6:
        MPI_Wait(s.request, one(&s));
        statuses = 1;
        break;
    default:
        MPI_Test(s.request, &flag, one(&s));
        statuses = 1;
        break;
    }
    EXPECT(flag && n == MPI_UNDEFINED, "call %d on %d inactive requests says %d, %d", which, s.n,
           flag, n);
    for (int i = 0; i < statuses; i++)
        check_empty(&s, &s.status[i]);
    for (int i = 0; i < s.n; i++)
        EXPECT(s.request[i] == p->request[s.index[i]], "call %d has changed an inactive request",
               which);
}

static void complete_some(struct pool *p, struct rng *own, bool block, completed *done)
{
    struct selection s;
    bool wait = block && rng_chance(own, 50);
    int which = rng_below(own, 4);

    selection_choose(p, own, which == 0 ? 1 : p->most, NULL, &s);
    call(p, own, &s, which, wait);
    conclude(p, &s, done);
}

void pool_complete(struct pool *p, struct rng *own, bool block, completed *done)
{
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
