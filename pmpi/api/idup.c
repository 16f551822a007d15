/* SPDX-License-Identifier: MIT */
/* MPI_Comm_idup: MPI-4.1 section 7.4.2. The call is local, so the hidden duplicate is made in the
 * same way, by an MPI_Comm_idup of the parent's hidden duplicate. The program gets an own request,
 * which completes after both requests of the MPI below. Only then may the program start a
 * collective on the new communicator, and the context exists. */
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

/* One call. Lies in the memory of the run. */
struct idup {
    MPI_Comm made;  /* MPI_COMM_NULL where the MPI sets *user only at completion */
    MPI_Comm *user; /* the program's variable. In Open MPI's Fortran binding it may be gone */
    MPI_Comm hidden;
    MPI_Info hints;         /* a copy */
    MPI_Request request[2]; /* of the program's communicator, of the hidden one */
    bool failed[2];
    int error;     /* the first one */
    bool adopting; /* both requests are complete, and a thread makes the context */
};

static void idup_drop_hints(struct idup *d)
{
    if (d->hints != MPI_INFO_NULL)
        NEXT(Info_free)(&d->hints);
}

/* Records the failure of request i. Of two errors the first is reported. */
static void idup_fail(struct idup *d, int i, int error)
{
    d->request[i] = MPI_REQUEST_NULL;
    d->failed[i] = true;
    if (!d->error)
        d->error = error;
}

/* Whether both requests are over. The program made one call, so it gets the error itself and not
 * MPI_ERR_IN_STATUS. Where the MPI has one communicator left to give, one of the two requests
 * fails, and the other continues. */
static bool idup_is_over(struct idup *d)
{
    MPI_Status status[2] = {{.MPI_ERROR = MPI_SUCCESS}, {.MPI_ERROR = MPI_SUCCESS}};
    int flag = 0, error = NEXT(Testall)(2, d->request, &flag, status);
    if (!error)
        return flag;
    for (int i = 0; i < 2; i++) {
        int one = error == MPI_ERR_IN_STATUS ? status[i].MPI_ERROR : error;
        if (one != MPI_SUCCESS && one != MPI_ERR_PENDING)
            idup_fail(d, i, one);
    }
    return d->request[0] == MPI_REQUEST_NULL && d->request[1] == MPI_REQUEST_NULL;
}

/* Makes the context, without the lock: Open MPI calls attribute callbacks, which may call nbcshim,
 * with its own lock held. Called with the lock held, and returns with it. */
static int idup_adopt(struct idup *d)
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

static bool idup_poll(struct nbc_run *run, int *failure)
{
    struct idup *d = run->memory;
    if (d->adopting || !idup_is_over(d))
        return false;
    d->adopting = true;
    *failure = idup_adopt(d);
    idup_drop_hints(d);
    return true;
}

/* Makes the own request of a call. Under the lock. */
static int idup_prepare(MPI_Comm comm, MPI_Comm *newcomm, struct nbc_request **out)
{
    const struct nbc_operation op = {.run = nbc_run_plain(sizeof(struct idup), idup_poll)};
    if (!op.run)
        return MPI_ERR_NO_MEM;
    *(struct idup *)op.run->memory = (struct idup){.user = newcomm, .hints = MPI_INFO_NULL};
    return nbc_request_new(nbc_context_find(comm), &op, out);
}

static int idup_begin(MPI_Comm comm, MPI_Comm *newcomm, struct nbc_request **r)
{
    nbc_lock();
    int error = idup_prepare(comm, newcomm, r);
    nbc_unlock();
    return error ? nbc_raise(comm, error) : MPI_SUCCESS;
}

/* `error` is the result of the native call, which has raised it. If it is MPI_SUCCESS the program's
 * request is active from here on, so later errors are reported at its completion. */
static int idup_end(struct nbc_request *r, int error, MPI_Info hints, MPI_Request *request)
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
        idup_fail(d, 1, error);
    nbc_progress_start(r);
    *request = r->handle;
    nbc_unlock();
    return MPI_SUCCESS;
}

/* The native call runs attribute callbacks of the program, so it is made without the lock. */
#define IDUP(name, params, args, hints, native)                \
    EXPORT(int, name, params, args)                            \
    {                                                          \
        struct nbc_request *r = NULL;                          \
        if (!newcomm || !request || !nbc_knows(comm))          \
            return NEXT(name) args;                            \
        int error = idup_begin(comm, newcomm, &r);             \
        if (!r)                                                \
            return error;                                      \
        struct idup *d = r->run->memory;                       \
        *newcomm = MPI_COMM_NULL;                              \
        return idup_end(r, NEXT(name) native, hints, request); \
    }

IDUP(Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request), (comm, newcomm, request),
     MPI_INFO_NULL, (comm, newcomm, &d->request[0]))

#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
IDUP(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
     (comm, info, newcomm, request), info, (comm, info, newcomm, &d->request[0]))
#endif
#endif
