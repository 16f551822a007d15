/* SPDX-License-Identifier: MIT */
#include "request/watched.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/lock.h"
#include "request/handles.h"

/* An array that is used no longer gives way to one that is. */
enum { MOST = 8 };

static struct nbc_watched arrays[MOST];
static unsigned calls;

int nbc_nwatched;

static void count_watched(int change)
{
    /* mutants: - for +: watched longer or not at all, with the same results */
    __atomic_store_n(&nbc_nwatched, nbc_nwatched + change, __ATOMIC_RELAXED);
}

/* --- the list of complete requests -------------------------------------------------------------*/

static struct nbc_watched *watch_of(const struct nbc_request *r)
{
    return r->watch ? &arrays[r->watch - 1] : NULL;
}

void nbc_watched_change(struct nbc_request *r, enum nbc_state state)
{
    struct nbc_watched *w = watch_of(r);
    nbc_assert_locked();
    if (r->state == NBC_COMPLETE)
        DL_DELETE2(w->ready, r, older, newer);
    if (state == NBC_COMPLETE)
        DL_APPEND2(w->ready, r, older, newer);
}

static void detach(struct nbc_request *r)
{
    if (r->watch && r->state == NBC_COMPLETE)
        DL_DELETE2(watch_of(r)->ready, r, older, newer);
    r->watch = 0;
}

/* Whether the request was seen at its place. */
static bool is_seen(const struct nbc_watched *w, const struct nbc_request *r)
{
    return r->place < w->n && w->seen[r->place] == r->handle;
}

/* An array that shares a request with this one, and one that has it twice, must look again. */
static void attach(struct nbc_watched *w, struct nbc_request *r, int place)
{
    struct nbc_watched *before = watch_of(r);
    if (before && (before != w || r->place != place) && is_seen(before, r))
        before->stale = true;
    detach(r);
    r->watch = (uint8_t)(w - arrays + 1);
    r->place = place;
    if (r->state == NBC_COMPLETE)
        DL_APPEND2(w->ready, r, older, newer);
}

struct nbc_request *nbc_watched_ready(struct nbc_watched *w)
{
    nbc_assert_locked();
    for (struct nbc_request *r; (r = w->ready);) {
        if (r->place < w->n && w->array[r->place] == r->handle)
            return r;
        /* The program has removed it: if it comes back, the entry is to differ. */
        if (is_seen(w, r))
            nbc_watched_forget(w, r->place);
        detach(r);
    }
    return NULL;
}

/* --- entries -----------------------------------------------------------------------------------*/

static void others_add(struct nbc_watched *w, int place)
{
    w->at[place] = w->nothers;
    w->others[w->nothers++] = place;
}

static void others_remove(struct nbc_watched *w, int place)
{
    int last = w->others[--w->nothers];
    w->others[w->at[place]] = last;
    w->at[last] = w->at[place];
    w->at[place] = -1;
}

void nbc_watched_forget(struct nbc_watched *w, int place)
{
    nbc_assert_locked();
    if (w->at[place] >= 0)
        others_remove(w, place);
    else if (w->seen[place] != MPI_REQUEST_NULL)
        /* mutants: leave a count out: watched longer or not at all, with the same results */
        w->nown--;
    w->seen[place] = MPI_REQUEST_NULL;
}

static void see(struct nbc_watched *w, int place)
{
    MPI_Request handle = w->array[place];
    nbc_watched_forget(w, place);
    if (handle == MPI_REQUEST_NULL)
        return;
    struct nbc_request *r = nbc_handles_find(handle);
    if (r) {
        attach(w, r, place);
        w->nown++;
    } else
        others_add(w, place);
    w->seen[place] = handle;
}

static void clear_from(struct nbc_watched *w, int first, int n)
{
    for (int i = first; i < n; i++) {
        w->seen[i] = MPI_REQUEST_NULL;
        w->at[i] = -1;
    }
}

static void see_all(struct nbc_watched *w)
{
    w->nothers = w->nown = w->next = w->some_own = 0;
    w->stale = false;
    w->nhandles = nbc_nhandles;
    clear_from(w, 0, w->n);
    for (int i = 0; i < w->n; i++)
        see(w, i);
}

/* A handle that was not nbcshim's may have become one of nbcshim's when handles were added. */
bool nbc_watched_compare(struct nbc_watched *w)
{
    enum { AT_ONCE = 64, LEAST_CALLS = 16 };
    bool same = true; /* mutants: false for true: compared once more */
    nbc_assert_locked();
    w->due = w->n / 16 + LEAST_CALLS; /* mutants: - for +: compared at another time */
    if (w->stale || w->nhandles != nbc_nhandles) {
        see_all(w);
        return false;
    }
    for (int i = 0; i < w->n; i += AT_ONCE) { /* mutants: <= for <: a round over nothing */
        /* mutants: <= for <: the end is the same */
        int end = w->n - i < AT_ONCE ? w->n : i + AT_ONCE;
        if (!memcmp(&w->seen[i], &w->array[i], (size_t)(end - i) * sizeof *w->seen))
            continue;
        same = false;
        for (int k = i; k < end; k++)
            if (w->seen[k] != w->array[k])
                see(w, k);
    }
    return same;
}

struct nbc_request *nbc_watched_active(struct nbc_watched *w)
{
    /* mutants: <= for <, >= for >: a round over nothing */
    for (int turn = 0; turn < 2 && w->nown > 0; turn++) {
        for (; w->some_own < w->n; w->some_own++) {
            int i = w->some_own;
            if (w->seen[i] == MPI_REQUEST_NULL || w->at[i] >= 0)
                continue;
            struct nbc_request *r = nbc_handles_find(w->seen[i]);
            if (r->state == NBC_ACTIVE || r->state == NBC_COMPLETE)
                return r;
        }
        w->some_own = 0;
    }
    return NULL;
}

int nbc_watched_others(struct nbc_watched *w, int most, MPI_Request *handles, int *places,
                       int *passed)
{
    int n = 0, i = 0;
    if (w->next >= w->nothers)
        w->next = 0;
    for (; i < most && w->next < w->nothers; i++, w->next++) {
        int place = w->others[w->next];
        if (w->array[place] != w->seen[place])
            continue;
        handles[n] = w->seen[place];
        places[n++] = place;
    }
    *passed = i;
    return n;
}

void nbc_watched_tested(struct nbc_watched *w, int place, MPI_Request handle)
{
    int index = w->at[place];
    bool is_null = handle == MPI_REQUEST_NULL;
    w->next = index + !is_null; /* another one takes the index of a request that is freed */
    if (is_null)
        nbc_watched_forget(w, place);
    else
        w->seen[place] = handle;
}

/* --- arrays ------------------------------------------------------------------------------------*/

static void array_close(struct nbc_watched *w)
{
    w->array = NULL;
    /* mutants: leave a call out: watched longer or not at all, with the same results */
    count_watched(-1);
}

static bool has_own(int n, const MPI_Request *requests)
{
    for (int i = 0; i < n; i++)
        /* mutants: || for &&: compared once more */
        if (requests[i] != MPI_REQUEST_NULL && nbc_handles_find(requests[i]))
            return true;
    return false;
}

static bool grow(void **memory, size_t bytes)
{
    void *more = realloc(*memory, bytes);
    if (more)
        *memory = more;
    return more;
}

static bool array_make_room(struct nbc_watched *w, int n)
{
    if (n <= w->room) /* mutants: < for <=: room that is not used again */
        return true;
    void *seen = w->seen, *others = w->others, *at = w->at;
    bool ok = grow(&seen, (size_t)n * sizeof *w->seen) &&
              grow(&others, (size_t)n * sizeof *w->others) && grow(&at, (size_t)n * sizeof *w->at);
    w->seen = seen;
    w->others = others;
    w->at = at;
    if (ok)
        w->room = n;
    return ok;
}

static struct nbc_watched *array_find(const MPI_Request *requests)
{
    for (int i = 0; i < MOST; i++)
        if (arrays[i].array == requests)
            return &arrays[i];
    return NULL;
}

/* An unused one, else that which has not been used for longest. */
static struct nbc_watched *array_choose(void)
{
    struct nbc_watched *best = NULL;
    for (int i = 0; i < MOST; i++) {
        struct nbc_watched *w = &arrays[i];
        if (!w->array)
            return w;
        /* mutants: >= for >: another array is given up */
        if (!w->busy && (!best || calls - w->used > calls - best->used))
            best = w;
    }
    return best;
}

/* Requests that are in the list of an earlier array leave it when they are found not to be in this
 * one. */
static struct nbc_watched *array_open(int n, const MPI_Request *requests)
{
    struct nbc_watched *w = array_choose();
    if (!w || !has_own(n, requests))
        return NULL;
    if (w->array)
        /* mutants: leave a call out: watched longer or not at all, with the same results */
        array_close(w);
    w->n = 0;
    if (!array_make_room(w, n))
        return NULL;
    /* mutants: leave a call out: watched longer or not at all, with the same results */
    count_watched(1);
    w->array = requests;
    w->n = n;
    see_all(w);
    return w;
}

/* The program passes fewer entries, or more, of the same array. */
static bool array_resize(struct nbc_watched *w, int n)
{
    for (int i = n; i < w->n; i++)
        nbc_watched_forget(w, i);
    if (!array_make_room(w, n)) {
        /* mutants: leave a call out: watched longer or not at all, with the same results */
        array_close(w);
        return false;
    }
    clear_from(w, w->n, n);
    w->n = n;
    w->some_own = 0;
    return true;
}

struct nbc_watched *nbc_watched_begin(int n, const MPI_Request *requests)
{
    nbc_assert_locked();
    struct nbc_watched *w = array_find(requests);
    if (!w)
        w = array_open(n, requests);
    else if (w->busy || (n != w->n && !array_resize(w, n)))
        return NULL;
    if (!w)
        return NULL;
    w->busy = true;
    w->used = ++calls;
    w->turn++;
    if (--w->due < 0) /* mutants: <= for <: compared later */
        nbc_watched_compare(w);
    return w;
}

void nbc_watched_end(struct nbc_watched *w)
{
    nbc_assert_locked();
    w->busy = false;
    if (w->nown == 0 && w->nothers == 0)
        /* mutants: leave a call out: watched longer or not at all, with the same results */
        array_close(w);
}

void nbc_watched_clear(void)
{
    for (int i = 0; i < MOST; i++) {
        free(arrays[i].seen);
        free(arrays[i].others);
        free(arrays[i].at);
    }
    memset(arrays, 0, sizeof arrays);
    /* mutants: leave a call out: watched longer or not at all, with the same results */
    count_watched(-nbc_nwatched);
}
