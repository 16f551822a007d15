/* SPDX-License-Identifier: MIT */
#include "completion.h"

#include <stdlib.h>

enum { MAX_SELECTED = 24 };

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
        p->item = grow(p->item, p->room, sizeof *p->item);
    }
    if (i == p->n)
        p->n++;
    p->request[i] = request;
    p->item[i] = item;
    p->active[i] = active;
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

/* Up to `most` requests, at least one of them active, now and then others in between. */
static void choose(const struct pool *p, struct rng *own, int most, struct selection *s)
{
    int *order = test_alloc((size_t)p->n * sizeof *order);
    int want = 1 + rng_below(own, most), active = 0;

    for (int i = 0; i < p->n; i++)
        order[i] = i;
    rng_shuffle(own, order, p->n);
    s->n = 0;
    for (int i = 0; i < p->n && s->n < want; i++) {
        if (!p->active[order[i]] && !rng_chance(own, 10))
            continue;
        active += p->active[order[i]];
        s->index[s->n] = rng_chance(own, 3) && !p->active[order[i]] ? -1 : order[i];
        s->n++;
    }
    for (int i = 0; i < p->n && active == 0; i++)
        if (p->active[order[i]]) {
            s->index[s->n > 0 ? s->n - 1 : s->n++] = order[i];
            active++;
        }
    for (int i = 0; i < s->n; i++) {
        s->request[i] = s->index[i] < 0 ? MPI_REQUEST_NULL : p->request[s->index[i]];
        s->done[i] = false;
        s->told[i] = NULL;
    }
    s->ignore = rng_chance(own, 50);
    free(order);
}

static bool is_active(const struct pool *p, const struct selection *s, int i)
{
    return s->index[i] >= 0 && p->active[s->index[i]];
}

static void tell(struct selection *s, int i, const MPI_Status *status)
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

static void tell_all(const struct pool *p, struct selection *s)
{
    for (int i = 0; i < s->n; i++)
        if (is_active(p, s, i))
            tell(s, i, &s->status[i]);
}

/* What an any call says: index and one status. */
static void tell_any(const struct pool *p, struct selection *s, int index)
{
    EXPECT(index >= 0 && index < s->n && is_active(p, s, index),
           "an any call returned index %d of %d, where no request was active", index, s->n);
    if (index >= 0 && index < s->n)
        tell(s, index, s->status);
}

static void tell_some(const struct pool *p, struct selection *s, int n, const int *index)
{
    for (int i = 0; i < n; i++) {
        EXPECT(is_active(p, s, index[i]), "a some call returned an index that was not active");
        EXPECT(!s->done[index[i]], "a some call returned index %d twice", index[i]);
        tell(s, index[i], &s->status[i]);
    }
}

static void wait_call(const struct pool *p, struct selection *s, int which)
{
    int n, index[MAX_SELECTED];

    switch (which) {
    case 0:
        MPI_Wait(&s->request[0], one(s));
        tell(s, 0, s->status);
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
        EXPECT(n > 0, "MPI_Waitsome completed %d", n);
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
            tell(s, 0, s->status);
        break;
    case 1:
        MPI_Testall(s->n, s->request, &flag, many(s));
        if (flag)
            tell_all(p, s);
        break;
    case 2:
        MPI_Testany(s->n, s->request, &n, &flag, one(s));
        if (flag)
            tell_any(p, s, n);
        break;
    case 3:
        MPI_Testsome(s->n, s->request, &n, index, many(s));
        tell_some(p, s, n, index);
        break;
    default:
        /* Tells but does not complete; what it has told, the next call confirms at once. */
        MPI_Request_get_status(s->request[0], &flag, one(s));
        if (!flag)
            break;
        MPI_Test(&s->request[0], &flag, MPI_STATUS_IGNORE);
        EXPECT(flag, "MPI_Test denies what MPI_Request_get_status has said");
        tell(s, 0, s->status);
        break;
    }
}

/* Persistent requests that are not active, and null ones, maybe none at all. */
static void choose_inactive(const struct pool *p, struct rng *own, struct selection *s)
{
    int want = rng_below(own, MAX_SELECTED), first = p->n > 0 ? rng_below(own, p->n) : 0;

    s->n = 0;
    for (int i = 0; i < p->n && s->n < want; i++) {
        int place = (first + i) % p->n;
        if (!p->active[place])
            s->index[s->n++] = place;
    }
    for (int i = 0; i < s->n; i++)
        s->request[i] = p->request[s->index[i]];
}

/* A call that has nothing to complete: it says so at once, and leaves the handles. */
static void complete_nothing(const struct pool *p, struct rng *own)
{
    int which = rng_below(own, 6), flag = 1, n = MPI_UNDEFINED, index[MAX_SELECTED];
    struct selection s;

    choose_inactive(p, own, &s);
    switch (which) {
    case 0:
        MPI_Waitall(s.n, s.request, MPI_STATUSES_IGNORE);
        break;
    case 1:
        MPI_Waitany(s.n, s.request, &n, MPI_STATUS_IGNORE);
        break;
    case 2:
        MPI_Waitsome(s.n, s.request, &n, index, MPI_STATUSES_IGNORE);
        break;
    case 3:
        MPI_Testall(s.n, s.request, &flag, MPI_STATUSES_IGNORE);
        break;
    case 4:
        MPI_Testany(s.n, s.request, &n, &flag, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Testsome(s.n, s.request, &n, index, MPI_STATUSES_IGNORE);
        break;
    }
    EXPECT(flag && n == MPI_UNDEFINED, "call %d on %d inactive requests says %d, %d", which, s.n,
           flag, n);
    for (int i = 0; i < s.n; i++)
        EXPECT(s.request[i] == p->request[s.index[i]], "call %d has changed an inactive request",
               which);
}

void pool_complete(struct pool *p, struct rng *own, bool block, completed *done)
{
    struct selection s;
    bool wait = block && rng_chance(own, 50);
    int which = rng_below(own, wait ? 4 : 5);

    if (!wait && which == 1 && p->no_testall)
        which = 3;
    if (rng_chance(own, 3))
        complete_nothing(p, own);
    if (p->nactive == 0)
        return;
    choose(p, own, which == 0 || which == 4 ? 1 : MAX_SELECTED, &s);
    if (wait)
        wait_call(p, &s, which);
    else
        test_call(p, &s, which);
    for (int i = 0; i < s.n; i++) {
        int place = s.index[i];
        if (place < 0)
            continue;
        EXPECT(s.done[i] || s.request[i] == p->request[place],
               "a call has changed a request that it has not completed");
        p->request[place] = s.request[i];
        if (!s.done[i])
            continue;
        p->active[place] = false;
        p->nactive--;
        done(p, place, s.told[i]);
    }
}

void pool_drain(struct pool *p, struct rng *own, int rest, completed *done)
{
    while (p->nactive > rest)
        pool_complete(p, own, true, done);
}
