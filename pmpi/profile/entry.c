/* SPDX-License-Identifier: MIT */
/* What libnbcprofile.so exports: init and finalize, the calls that start and complete operations,
 * those in which a rank waits for messages, and the collectives, the rows of collectives.def. The
 * time of a call for several requests is divided equally among the collectives in it. */
#include <stdlib.h>

#include "nbcshim.h"

#include "base/in_mpi.h"
#include "below/next.h"
#include "profile/record.h"

/* Defines MPI_X and PMPI_X (which Open MPI's Fortran calls): both note the caller, and where
 * on the stack its address lies, right above the frame (on other processors than x86-64 and arm64
 * it may lie elsewhere: then no frame above the caller is found). */
#define PROFILE_NOTE_CALLER                            \
    (nbc_profile_caller = __builtin_return_address(0), \
     nbc_profile_place = (const void *const *)__builtin_frame_address(0) + 1)

#define PROFILE_EXPORT(name, params, args) \
    static int profiled_##name params;     \
    int MPI_##name params                  \
    {                                      \
        PROFILE_NOTE_CALLER;               \
        return profiled_##name args;       \
    }                                      \
    int PMPI_##name params                 \
    {                                      \
        PROFILE_NOTE_CALLER;               \
        return profiled_##name args;       \
    }                                      \
    static int profiled_##name params

#define BEGINS(name, params, args)     \
    PROFILE_EXPORT(name, params, args) \
    {                                  \
        int error = NEXT(name) args;   \
        if (!error)                    \
            nbc_profile_open();        \
        return error;                  \
    }

BEGINS(Init, (int *argc, char ***argv), (argc, argv))
BEGINS(Init_thread, (int *argc, char ***argv, int required, int *provided),
       (argc, argv, required, provided))

PROFILE_EXPORT(Finalize, (void), ())
{
    nbc_profile_close();
    return NEXT(Finalize)();
}

/* --- the collectives among some requests ------------------------------------------------------ */

struct set {
    struct nbc_pending **p; /* for each entry of the array: its operation, if active, or NULL */
    int n, active;
    int64_t began;
    struct nbc_pending *few[16];
};

/* Returns false if the call concerns no collective. */
static bool set_begin(struct set *s, int n, const MPI_Request *requests)
{
    if (nbc_profile_skips() || !nbc_profile_any_pending() || n <= 0 || !requests)
        return false;
    s->n = n, s->active = 0;
    s->p = n > (int)(sizeof s->few / sizeof *s->few) ? malloc(n * sizeof *s->p) : s->few;
    for (int i = 0; s->p && i < n; i++) {
        struct nbc_pending *p = nbc_profile_find(requests[i]);
        s->p[i] = p && p->active ? p : NULL;
        s->active += s->p[i] != NULL;
    }
    if (s->active == 0) {
        if (s->p != s->few)
            free(s->p);
        return false;
    }
    nbc_in_mpi_enter();
    s->began = nbc_in_mpi_entered().now;
    return true;
}

/* Which entries are done: all of them, or those in the list. */
static void set_end(struct set *s, bool all, const int *list, int length)
{
    struct nbc_moment now = nbc_in_mpi_moment();
    int64_t each = (now.now - s->began) / s->active;
    for (int i = 0; i < s->n; i++) {
        bool done = all;
        for (int k = 0; k < length && !done; k++)
            done = list[k] == i;
        if (s->p[i])
            nbc_profile_waited(s->p[i], each, done, now);
    }
    nbc_in_mpi_leave_at(now.now);
    if (s->p != s->few)
        free(s->p);
}

#define COMPLETES(name, params, args, n, requests, all, list, length) \
    PROFILE_EXPORT(name, params, args)                                \
    {                                                                 \
        struct set s;                                                 \
        bool ours = set_begin(&s, n, requests);                       \
        int error = NEXT(name) args;                                  \
        if (ours)                                                     \
            set_end(&s, all, list, length);                           \
        return error;                                                 \
    }

COMPLETES(Wait, (MPI_Request * request, MPI_Status *status), (request, status), 1, request, true,
          NULL, 0)
COMPLETES(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), 1,
          request, error || *flag, NULL, 0)
COMPLETES(Waitall, (int n, MPI_Request requests[], MPI_Status *statuses), (n, requests, statuses),
          n, requests, true, NULL, 0)
COMPLETES(Testall, (int n, MPI_Request requests[], int *flag, MPI_Status *statuses),
          (n, requests, flag, statuses), n, requests, error || *flag, NULL, 0)
COMPLETES(Waitany, (int n, MPI_Request requests[], int *index, MPI_Status *status),
          (n, requests, index, status), n, requests, false, index, 1)
COMPLETES(Testany, (int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
          (n, requests, index, flag, status), n, requests, false, index, error || *flag)
COMPLETES(Waitsome,
          (int n, MPI_Request requests[], int *count, int indices[], MPI_Status *statuses),
          (n, requests, count, indices, statuses), n, requests, false, indices, *count)
COMPLETES(Testsome,
          (int n, MPI_Request requests[], int *count, int indices[], MPI_Status *statuses),
          (n, requests, count, indices, statuses), n, requests, false, indices, *count)

/* --- persistent operations -------------------------------------------------------------------- */

/* began: when the call did. */
static void started(int n, const MPI_Request *requests, struct nbc_moment began)
{
    int64_t each = (nbc_now() - began.now) / n;
    for (int i = 0; i < n; i++) {
        struct nbc_pending *p = nbc_profile_find(requests[i]);
        if (p && p->persistent)
            nbc_profile_started(p, began, each);
    }
}

#define STARTS(name, params, args, n, requests)                                       \
    PROFILE_EXPORT(name, params, args)                                                \
    {                                                                                 \
        if (nbc_profile_skips() || !nbc_profile_any_pending() || n <= 0 || !requests) \
            return NEXT(name) args;                                                   \
        nbc_in_mpi_enter();                                                           \
        struct nbc_moment began = nbc_in_mpi_entered();                               \
        int error = NEXT(name) args;                                                  \
        if (!error)                                                                   \
            started(n, requests, began);                                              \
        nbc_in_mpi_leave();                                                           \
        return error;                                                                 \
    }

STARTS(Start, (MPI_Request * request), (request), 1, request)
STARTS(Startall, (int n, MPI_Request requests[]), (n, requests), n, requests)

PROFILE_EXPORT(Request_free, (MPI_Request * request), (request))
{
    bool ours = request && !nbc_profile_skips() && nbc_profile_any_pending();
    struct nbc_pending *p = ours ? nbc_profile_find(*request) : NULL;
    int error = NEXT(Request_free)(request);
    if (!error && p)
        nbc_profile_drop(p);
    return error;
}

/* --- messages: the time in these calls counts as time in MPI ---------------------------------- */

#define TIMED(name, params, args)                              \
    PROFILE_EXPORT(name, params, args)                         \
    {                                                          \
        if (nbc_profile_skips() || !nbc_profile_any_pending()) \
            return NEXT(name) args;                            \
        nbc_in_mpi_enter();                                    \
        int error = NEXT(name) args;                           \
        nbc_in_mpi_leave();                                    \
        return error;                                          \
    }

#define C int
#define MESSAGE TIMED
#include "below/messages.def"
#undef C
#undef MESSAGE

#ifdef HAVE_MPI_SEND_C
#define C MPI_Count
#define MESSAGE(name, params, args) TIMED(name##_c, params, args)
#include "below/messages.def"
#undef C
#endif

/* --- collectives ------------------------------------------------------------------------------ */

#define ENTRY(name, COLL, form, params, args, request, ...)             \
    PROFILE_EXPORT(name, params, args)                                  \
    {                                                                   \
        static int(*next) params;                                       \
        struct nbc_span t;                                              \
        if (!next)                                                      \
            next = (int(*) params)nbc_profile_next(#name);              \
        if (nbc_profile_skips())                                        \
            return next args;                                           \
        struct nbc_call call = {0};                                     \
        SET(coll, NBC_##COLL), SET(kind, NBC_KIND_##form), __VA_ARGS__; \
        nbc_profile_begin(&t, &call);                                   \
        int error = next args;                                          \
        nbc_profile_end(&t, request, error);                            \
        return error;                                                   \
    }

#define EXTENSION_OF(...)
#include "op/forms.def"
