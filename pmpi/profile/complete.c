/* SPDX-License-Identifier: MIT */
/* libnbcprofile.so: init, finalize, and the calls that start and complete operations. The time of a
 * call for several requests is divided equally among the collectives in it. */
#include <stdlib.h>

#include "profile/next.h"
#include "profile/record.h"

PROFILE_EXPORT(Init, (int *argc, char ***argv), (argc, argv))
{
    int error = PROFILE_NEXT(Init)(argc, argv);
    if (!error)
        nbc_profile_open();
    return error;
}

PROFILE_EXPORT(Init_thread, (int *argc, char ***argv, int required, int *provided),
               (argc, argv, required, provided))
{
    int error = PROFILE_NEXT(Init_thread)(argc, argv, required, provided);
    if (!error)
        nbc_profile_open();
    return error;
}

PROFILE_EXPORT(Finalize, (void), ())
{
    nbc_profile_close();
    return PROFILE_NEXT(Finalize)();
}

/* --- the collectives among some requests
 * ---------------------------------------------------------- */

struct set {
    struct nbc_pending *
        *p; /* for each entry of the array: its operation if it is active, or NULL */
    MPI_Request *handles;
    int n, active;
    int64_t began;
    struct nbc_pending *few[16];
    MPI_Request few_handles[16];
};

/* Returns false if the call concerns no collective. */
static bool set_begin(struct set *s, int n, const MPI_Request *requests)
{
    if (nbc_profile_skips() || !nbc_profile_any_pending() || n <= 0 || !requests)
        return false;
    *s = (struct set){.n = n};
    bool many = n > (int)(sizeof s->few / sizeof *s->few);
    s->p = many ? malloc(n * sizeof *s->p) : s->few;
    s->handles = many ? malloc(n * sizeof *s->handles) : s->few_handles;
    for (int i = 0; s->p && s->handles && i < n; i++) {
        struct nbc_pending *p = nbc_profile_find(requests[i]);
        s->p[i] = p && p->active ? p : NULL;
        s->handles[i] = requests[i];
        s->active += s->p[i] != NULL;
    }
    if (s->active == 0 && many) {
        free(s->p);
        free(s->handles);
    }
    if (s->active == 0)
        return false;
    nbc_profile_enter();
    s->began = nbc_profile_now();
    return true;
}

/* index: of the only entry that is done; −1: none; n: all. */
static void set_end(struct set *s, int index, const int *indices, int count)
{
    int64_t now = nbc_profile_now(), each = (now - s->began) / s->active;
    nbc_profile_leave();
    for (int i = 0; i < s->n; i++) {
        bool done = index == s->n || index == i;
        for (int k = 0; k < count && !done; k++)
            done = indices[k] == i;
        if (!s->p[i])
            continue;
        nbc_profile_waited(s->p[i], each, done, now);
        if (done && !s->p[i]->persistent)
            nbc_profile_drop(s->handles[i]);
    }
    if (s->p != s->few) {
        free(s->p);
        free(s->handles);
    }
}

PROFILE_EXPORT(Wait, (MPI_Request * request, MPI_Status *status), (request, status))
{
    struct set s;
    bool ours = set_begin(&s, 1, request);
    int error = PROFILE_NEXT(Wait)(request, status);
    if (ours)
        set_end(&s, 0, NULL, 0);
    return error;
}

PROFILE_EXPORT(Test, (MPI_Request * request, int *flag, MPI_Status *status),
               (request, flag, status))
{
    struct set s;
    bool ours = set_begin(&s, 1, request);
    int error = PROFILE_NEXT(Test)(request, flag, status);
    if (ours)
        set_end(&s, error || *flag ? 0 : -1, NULL, 0);
    return error;
}

PROFILE_EXPORT(Waitall, (int n, MPI_Request requests[], MPI_Status *statuses),
               (n, requests, statuses))
{
    struct set s;
    bool ours = set_begin(&s, n, requests);
    int error = PROFILE_NEXT(Waitall)(n, requests, statuses);
    if (ours)
        set_end(&s, n, NULL, 0);
    return error;
}

PROFILE_EXPORT(Testall, (int n, MPI_Request requests[], int *flag, MPI_Status *statuses),
               (n, requests, flag, statuses))
{
    struct set s;
    bool ours = set_begin(&s, n, requests);
    int error = PROFILE_NEXT(Testall)(n, requests, flag, statuses);
    if (ours)
        set_end(&s, error || *flag ? n : -1, NULL, 0);
    return error;
}

PROFILE_EXPORT(Waitany, (int n, MPI_Request requests[], int *index, MPI_Status *status),
               (n, requests, index, status))
{
    struct set s;
    bool ours = set_begin(&s, n, requests);
    int error = PROFILE_NEXT(Waitany)(n, requests, index, status);
    if (ours)
        set_end(&s, *index == MPI_UNDEFINED ? -1 : *index, NULL, 0);
    return error;
}

PROFILE_EXPORT(Testany, (int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
               (n, requests, index, flag, status))
{
    struct set s;
    bool ours = set_begin(&s, n, requests);
    int error = PROFILE_NEXT(Testany)(n, requests, index, flag, status);
    if (ours)
        set_end(&s, (error || *flag) && *index != MPI_UNDEFINED ? *index : -1, NULL, 0);
    return error;
}

PROFILE_EXPORT(Waitsome,
               (int n, MPI_Request requests[], int *count, int indices[], MPI_Status *statuses),
               (n, requests, count, indices, statuses))
{
    struct set s;
    bool ours = set_begin(&s, n, requests);
    int error = PROFILE_NEXT(Waitsome)(n, requests, count, indices, statuses);
    if (ours)
        set_end(&s, -1, indices, *count == MPI_UNDEFINED ? 0 : *count);
    return error;
}

PROFILE_EXPORT(Testsome,
               (int n, MPI_Request requests[], int *count, int indices[], MPI_Status *statuses),
               (n, requests, count, indices, statuses))
{
    struct set s;
    bool ours = set_begin(&s, n, requests);
    int error = PROFILE_NEXT(Testsome)(n, requests, count, indices, statuses);
    if (ours)
        set_end(&s, -1, indices, *count == MPI_UNDEFINED ? 0 : *count);
    return error;
}

/* --- persistent operations
 * ------------------------------------------------------------------------ */

static void started(int n, const MPI_Request *requests, int64_t began)
{
    int64_t now = nbc_profile_now(), each = (now - began) / n;
    for (int i = 0; i < n; i++) {
        struct nbc_pending *p = nbc_profile_find(requests[i]);
        if (p && p->persistent)
            nbc_profile_started(p, began, began + each);
    }
}

PROFILE_EXPORT(Start, (MPI_Request * request), (request))
{
    if (nbc_profile_skips() || !nbc_profile_any_pending() || !request)
        return PROFILE_NEXT(Start)(request);
    int64_t began = nbc_profile_now();
    nbc_profile_enter();
    int error = PROFILE_NEXT(Start)(request);
    nbc_profile_leave();
    if (!error)
        started(1, request, began);
    return error;
}

PROFILE_EXPORT(Startall, (int n, MPI_Request requests[]), (n, requests))
{
    if (nbc_profile_skips() || !nbc_profile_any_pending() || n <= 0)
        return PROFILE_NEXT(Startall)(n, requests);
    int64_t began = nbc_profile_now();
    nbc_profile_enter();
    int error = PROFILE_NEXT(Startall)(n, requests);
    nbc_profile_leave();
    if (!error)
        started(n, requests, began);
    return error;
}

PROFILE_EXPORT(Request_free, (MPI_Request * request), (request))
{
    MPI_Request freed = request ? *request : MPI_REQUEST_NULL;
    int error = PROFILE_NEXT(Request_free)(request);
    if (!error && !nbc_profile_skips() && nbc_profile_any_pending())
        nbc_profile_drop(freed);
    return error;
}
