/* SPDX-License-Identifier: MIT */
/* MPI_Comm_idup: MPI-4.1 section 7.4.2. It is local, so the hidden duplicate is made like the
 * program's, by an MPI_Comm_idup of the parent's hidden one. The request is ours, and complete when
 * both are: only then may a collective be started on the new communicator, and its context is
 * there. */
#include "next.h"

#ifdef HAVE_MPI_COMM_IDUP
#include "call.h"
#include "export.h"
#include "lock.h"
#include "progress.h"
#include "rendezvous.h"

/* In the memory of the run. */
struct idup {
    MPI_Comm made;  /* or null, where the MPI writes it at the end, into: */
    MPI_Comm *user; /* the program's variable. It may be gone: of Open MPI's Fortran binding it is */
    MPI_Comm hidden;
    MPI_Info hints; /* a copy */
    MPI_Request request[2];
    bool adopting; /* a thread is past both requests */
};

static void drop_hints(struct idup *d)
{
    if (d->hints != MPI_INFO_NULL)
        NEXT(Info_free)(&d->hints);
}

/* Attributes are not for our lock: Open MPI calls back, and so to us, with its own lock held. */
static int adopt(const struct idup *d)
{
    MPI_Comm made = d->made != MPI_COMM_NULL ? d->made : *d->user;
    nbc_unlock();
    int error = nbc_context_adopt(made, d->hidden);
    if (!error && d->hints != MPI_INFO_NULL)
        error = nbc_context_hint(made, d->hints);
    nbc_lock();
    return error;
}

/* One call of the program is both requests to us: it gets no MPI_ERR_IN_STATUS. */
static int test_both(struct idup *d, int *flag)
{
    MPI_Status status[2] = {{.MPI_ERROR = MPI_SUCCESS}, {.MPI_ERROR = MPI_SUCCESS}};
    int error = NEXT(Testall)(2, d->request, flag, status);
    for (int i = 0; i < 2 && error; i++)
        if (status[i].MPI_ERROR != MPI_SUCCESS && status[i].MPI_ERROR != MPI_ERR_PENDING)
            return status[i].MPI_ERROR;
    return error;
}

static bool poll(struct nbc_run *run, int *failure)
{
    struct idup *d = run->memory;
    int flag = 0;
    if (d->adopting)
        return false;
    int error = test_both(d, &flag);
    if (!error && !flag)
        return false;
    d->adopting = true;
    if (!error)
        error = adopt(d);
    drop_hints(d);
    *failure = error;
    return true;
}

/* The request of a call, before anything is under way. */
static int prepare(MPI_Comm comm, MPI_Comm *newcomm, struct nbc_request **out)
{
    struct nbc_request *r = nbc_request_new();
    if (!r)
        return MPI_ERR_NO_MEM;
    r->run = nbc_run_plain(sizeof(struct idup), poll);
    if (!r->run) {
        nbc_request_free(r);
        return MPI_ERR_NO_MEM;
    }
    *(struct idup *)r->run->memory = (struct idup){.user = newcomm, .hints = MPI_INFO_NULL};
    r->context = nbc_context_find(comm);
    nbc_context_hold(r->context);
    *out = r;
    return MPI_SUCCESS;
}

static int begin(MPI_Comm comm, MPI_Comm *newcomm, struct nbc_request **r)
{
    nbc_lock();
    int error = prepare(comm, newcomm, r);
    nbc_unlock();
    return error ? nbc_raise(comm, error) : MPI_SUCCESS;
}

/* error: what the native call returned, having raised it. */
static int end(MPI_Comm comm, struct nbc_request *r, int error, MPI_Info hints,
               MPI_Request *request)
{
    struct idup *d = r->run->memory;
    bool ours = !error;
    d->made = *d->user;
    nbc_lock();
    if (ours && hints != MPI_INFO_NULL)
        error = NEXT(Info_dup)(hints, &d->hints);
    if (!error)
        error = NEXT(Comm_idup)(r->context->hidden, &d->hidden, &d->request[1]);
    if (error) {
        drop_hints(d);
        nbc_request_free(r);
    } else {
        nbc_progress_start(r);
        *request = r->handle;
    }
    nbc_unlock();
    return error && ours ? nbc_raise(comm, error) : error;
}

/* The native call runs the program's attribute callbacks: not under the lock. */
#define IDUP(name, params, args, hints, native)                 \
    EXPORT(int, name, params, args)                             \
    {                                                           \
        struct nbc_request *r = NULL;                           \
        if (!newcomm || !request || !nbc_knows(comm))           \
            return NEXT(name) args;                             \
        int error = begin(comm, newcomm, &r);                   \
        if (!r)                                                 \
            return error;                                       \
        struct idup *d = r->run->memory;                        \
        *newcomm = MPI_COMM_NULL;                               \
        return end(comm, r, NEXT(name) native, hints, request); \
    }

IDUP(Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request), (comm, newcomm, request),
     MPI_INFO_NULL, (comm, newcomm, &d->request[0]))

#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
IDUP(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
     (comm, info, newcomm, request), info, (comm, info, newcomm, &d->request[0]))
#endif
#endif
