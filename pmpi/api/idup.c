/* SPDX-License-Identifier: MIT */
/* MPI_Comm_idup: MPI-4.1 section 7.4.2. It is local, so the hidden duplicate is made like the
 * program's, by an MPI_Comm_idup of the parent's hidden one. The request is ours, and complete when
 * both are: only then may a collective be started on the new communicator, and its context is
 * there. */
#include "below/next.h"

#ifdef HAVE_MPI_COMM_IDUP
#include "api/presync.h"
#include "base/errors.h"
#include "base/lock.h"
#include "below/export.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/run.h"
#include "request/request.h"

/* In the memory of the run. */
struct idup {
    MPI_Comm made;  /* or null, where the MPI writes it at the end, into: */
    MPI_Comm *user; /* the program's variable. In Open MPI's Fortran binding it may be gone */
    MPI_Comm hidden;
    MPI_Info hints; /* a copy */
    MPI_Request request[2];
    bool failed[2];
    int error;
    bool adopting; /* a thread is past both requests */
};

static void drop_hints(struct idup *d)
{
    if (d->hints != MPI_INFO_NULL)
        NEXT(Info_free)(&d->hints);
}

/* Of the program's request, 0, or of the other one; the first is told. */
static void fail(struct idup *d, int i, int error)
{
    d->request[i] = MPI_REQUEST_NULL;
    d->failed[i] = true;
    if (!d->error)
        d->error = error;
}

/* Whether neither request is under way any more. One call of the program is both to us, so it gets
 * no MPI_ERR_IN_STATUS; and where a single context is left one of the two fails while the other
 * goes on. */
static bool are_over(struct idup *d)
{
    MPI_Status status[2] = {{.MPI_ERROR = MPI_SUCCESS}, {.MPI_ERROR = MPI_SUCCESS}};
    int flag = 0, error = NEXT(Testall)(2, d->request, &flag, status);
    if (!error)
        return flag;
    for (int i = 0; i < 2; i++) {
        int one = error == MPI_ERR_IN_STATUS ? status[i].MPI_ERROR : error;
        if (one != MPI_SUCCESS && one != MPI_ERR_PENDING)
            fail(d, i, one);
    }
    return d->request[0] == MPI_REQUEST_NULL && d->request[1] == MPI_REQUEST_NULL;
}

/* Attributes are not for our lock: Open MPI calls back, and so to us, with its own lock held. */
static int adopt(struct idup *d)
{
    MPI_Comm *made = d->made != MPI_COMM_NULL ? &d->made : d->user;
    bool adopted = false;
    int error = d->error;
    nbc_unlock();
    if (!error) {
        error = nbc_context_adopt(*made, d->hidden);
        adopted = !error;
    }
    if (!error && d->hints != MPI_INFO_NULL)
        error = nbc_context_hint(*made, d->hints);
    if (!adopted && !d->failed[1])
        NEXT(Comm_free)(&d->hidden);
    if (error && !d->failed[0])
        NEXT(Comm_free)(made);
    nbc_lock();
    return error;
}

static bool poll(struct nbc_run *run, int *failure)
{
    struct idup *d = run->memory;
    if (d->adopting || !are_over(d))
        return false;
    d->adopting = true;
    *failure = adopt(d);
    drop_hints(d);
    return true;
}

/* The request of a call, before anything is under way. */
static int prepare(MPI_Comm comm, MPI_Comm *newcomm, struct nbc_request **out)
{
    const struct nbc_operation op = {.run = nbc_run_plain(sizeof(struct idup), poll)};
    if (!op.run)
        return MPI_ERR_NO_MEM;
    *(struct idup *)op.run->memory = (struct idup){.user = newcomm, .hints = MPI_INFO_NULL};
    return nbc_request_new(nbc_context_find(comm), &op, out);
}

static int begin(MPI_Comm comm, MPI_Comm *newcomm, struct nbc_request **r)
{
    nbc_lock();
    int error = prepare(comm, newcomm, r);
    nbc_unlock();
    return error ? nbc_raise(comm, error) : MPI_SUCCESS;
}

/* error: what the native call returned, having raised it. From here on the program's request is
 * under way, so an error of ours is told when that one is over. */
static int end(struct nbc_request *r, int error, MPI_Info hints, MPI_Request *request)
{
    struct idup *d = r->run->memory;
    nbc_lock();
    if (error) {
        nbc_request_free(r);
        nbc_unlock();
        return error;
    }
    d->made = *d->user;
    if (hints != MPI_INFO_NULL)
        d->error = NEXT(Info_dup)(hints, &d->hints);
    error = NEXT(Comm_idup)(r->context->hidden, &d->hidden, &d->request[1]);
    if (error)
        fail(d, 1, error);
    nbc_progress_start(r);
    *request = r->handle;
    nbc_unlock();
    return MPI_SUCCESS;
}

/* The native call runs the program's attribute callbacks: not under the lock. */
#define IDUP(name, params, args, hints, native)           \
    EXPORT(int, name, params, args)                       \
    {                                                     \
        struct nbc_request *r = NULL;                     \
        if (!newcomm || !request || !nbc_knows(comm))     \
            return NEXT(name) args;                       \
        int error = begin(comm, newcomm, &r);             \
        if (!r)                                           \
            return error;                                 \
        struct idup *d = r->run->memory;                  \
        *newcomm = MPI_COMM_NULL;                         \
        return end(r, NEXT(name) native, hints, request); \
    }

IDUP(Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request), (comm, newcomm, request),
     MPI_INFO_NULL, (comm, newcomm, &d->request[0]))

#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
IDUP(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
     (comm, info, newcomm, request), info, (comm, info, newcomm, &d->request[0]))
#endif
#endif
