/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* MPI_Comm_idup: MPI-4.1 section 7.4.2. The call is local, so what a constructor does before or
 * after the native call follows without waiting, and the program gets an own request, which
 * completes when all is done. Only then may the program start a collective on the new communicator,
 * and the context exists.
 *
 * Where the parent has a spare range of tags, the duplicate takes it. Where it has a range only,
 * the ranks agree on one for the duplicate when the native request is complete, by an
 * MPI_Iallreduce of the MPI below on the duplicate, which the program does not have yet. (An
 * operation of nbcshim on the parent would have to be repeated if no range is found, and in an
 * order that the ranks do not share.) If they find none, they make a hidden duplicate of the
 * duplicate, which runs attribute callbacks of the program once more.
 *
 * Where the parent has a hidden duplicate of its own and no spare range, an MPI_Comm_idup of that
 * one is started with that of the program's. */
#include "api/setup.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "below/detect.h"
#include "below/export.h"
#include "below/quirks.h"

NBC_ARCHIVE_MEMBER(idup)

#ifdef HAVE_MPI_COMM_IDUP
#include "base/errors.h"
#include "base/lock.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "op/run.h"
#include "request/request.h"

/* One call. Lies in the memory of the run. */
enum idup_stage {
    IDUP_WAITS,      /* for earlier ones of the parent: NBC_DUPLICATES_FOLLOW */
    IDUP_DUPLICATES, /* the communicator is being made, and maybe the hidden duplicate */
    IDUP_OFFERS,     /* the ranks offer ranges; of an intercommunicator, to the other group */
    IDUP_RETURNS,    /* each group sends the offer of the other back */
    IDUP_STARTS,     /* a thread makes the native call */
    IDUP_LAST,       /* it is being made */
    IDUP_ADOPTS      /* a thread makes the context */
};

struct idup {
    MPI_Comm made;  /* MPI_COMM_NULL where the MPI sets *user only at completion */
    MPI_Comm *user; /* the program's variable. In Open MPI's Fortran binding it may be gone */
    MPI_Info hints; /* a copy */
    MPI_Request request[2]; /* of the program's communicator; the hidden one, or an agreement */
    bool failed[2];
    int error;    /* the first one */
    int64_t turn; /* its number among the duplicates of the parent */
    enum idup_stage stage;
    struct nbc_origin origin;
    struct nbc_range_search search;
    int words;
    /* Behind what is zero at first. */
    uint64_t mine[NBC_RANGE_WORDS], others[NBC_RANGE_WORDS], all[NBC_RANGE_WORDS];
};

static int nwaiting; /* in IDUP_WAITS; atomic */

static int idup_native(struct idup *d, MPI_Comm parent)
{
#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
    if (d->hints != MPI_INFO_NULL)
        return NEXT(Comm_idup_with_info)(parent, d->hints, d->user, &d->request[0]);
#endif
    return NEXT(Comm_idup)(parent, d->user, &d->request[0]);
}

static MPI_Comm *idup_made(struct idup *d)
{
    return d->made != MPI_COMM_NULL ? &d->made : d->user;
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
    MPI_Comm *made = idup_made(d);
    bool adopted = false;
    int error = d->error;
    nbc_unlock();
    if (!error) {
        error = nbc_context_adopt(*made, &d->origin);
        adopted = !error;
    }
    if (!error && d->hints != MPI_INFO_NULL)
        error = nbc_context_hint(*made, d->hints);
    if (d->error)
        nbc_origin_drop(&d->origin);
    if (!adopted && d->origin.hidden != MPI_COMM_NULL && !d->failed[1])
        NEXT(Comm_free)(&d->origin.hidden); /* unreached: the MPI fails */
    if (error && !d->failed[0])
        NEXT(Comm_free)(made);
    nbc_lock();
    return error;
}

/* --- the agreement on a range ---------------------------------------------------------------- */

static void idup_reduce(struct idup *d, const uint64_t *from, uint64_t *to, enum idup_stage stage)
{
    d->stage = stage;
    int error = NEXT(Iallreduce)(from, to, d->words, MPI_UNSIGNED_LONG_LONG, MPI_BAND,
                                 *idup_made(d), &d->request[1]);
    if (error)
        idup_fail(d, 1, error); /* unreached: the MPI fails */
}

/* Starts the duplicate of the parent's hidden duplicate, if the new communicator needs it. */
static void idup_duplicate_hidden(struct idup *d, const struct nbc_context *parent)
{
    if (parent->range >= 0 || d->origin.range >= 0)
        return;
    int error = NEXT(Comm_idup)(parent->hidden, &d->origin.hidden, &d->request[1]);
    if (error)
        idup_fail(d, 1, error); /* unreached: no memory */
}

/* Makes the native call of an operation that has waited, without the lock, as idup_start_hidden. */
static void idup_start(struct idup *d, struct nbc_context *parent)
{
    const struct nbc_making making = {parent, parent->nduplicates - d->turn, nbc_making};
    d->stage = IDUP_STARTS;
    __atomic_sub_fetch(&nwaiting, 1, __ATOMIC_RELAXED);
    nbc_making = &making;
    nbc_unlock();
    int error = idup_native(d, parent->user);
    nbc_lock();
    nbc_making = making.outer;
    d->stage = IDUP_DUPLICATES;
    d->made = *d->user;
    if (error)
        idup_fail(d, 0, error); /* unreached: no memory */
    else
        idup_duplicate_hidden(d, parent);
}

/* Starts the hidden duplicate, without the lock, since callbacks of the program are called. Called
 * with the lock held, and returns with it. */
static void idup_start_hidden(struct idup *d)
{
    d->stage = IDUP_STARTS;
    nbc_unlock();
    int error = NEXT(Comm_idup)(*idup_made(d), &d->origin.hidden, &d->request[1]);
    nbc_lock();
    d->stage = IDUP_LAST;
    if (error)
        idup_fail(d, 1, error); /* unreached: the MPI fails */
}

static void idup_offer(struct idup *d)
{
    d->words = nbc_ranges_offer(&nbc_ranges, &d->search, d->mine);
    if (d->words > 0)
        idup_reduce(d, d->mine, d->others, IDUP_OFFERS);
    else
        idup_start_hidden(d);
}

/* The requests of a stage are over. Enters the next stage: IDUP_ADOPTS is the last one. */
static void idup_advance(struct idup *d, struct nbc_context *parent)
{
    if (d->stage == IDUP_DUPLICATES)
        parent->nduplicated++;
    bool inter = parent->members.remote_size > 0;
    bool offered = d->stage == IDUP_OFFERS || d->stage == IDUP_RETURNS;
    if (offered && d->error) {
        nbc_ranges_settle(&nbc_ranges, &d->search, NULL); /* unreached: the MPI fails */
    } else if (d->stage == IDUP_OFFERS && inter) {
        idup_reduce(d, d->others, d->all, IDUP_RETURNS);
        return;
    } else if (offered) {
        for (int i = 0; i < d->words && inter; i++)
            d->others[i] &= d->all[i];
        d->origin.range = nbc_ranges_settle(&nbc_ranges, &d->search, d->others);
    }
    bool settled = d->error || d->stage == IDUP_LAST || parent->range < 0 || d->origin.range >= 0;
    if (settled)
        d->stage = IDUP_ADOPTS;
    else
        idup_offer(d);
}

static bool idup_poll(struct nbc_run *run, int *failure)
{
    struct idup *d = run->memory;
    struct nbc_context *parent = run->request->context;
    if (d->stage == IDUP_WAITS && d->turn == parent->nduplicated)
        idup_start(d, parent);
    while (d->stage != IDUP_ADOPTS && d->stage != IDUP_STARTS && d->stage != IDUP_WAITS) {
        if (!idup_is_over(d))
            return false;
        idup_advance(d, parent);
        if (d->stage == IDUP_ADOPTS) {
            *failure = idup_adopt(d);
            if (d->hints != MPI_INFO_NULL)
                NEXT(Info_free)(&d->hints);
            nbc_thread_rest(-1);
            return true;
        }
    }
    return false;
}

void nbc_idup_start_all(MPI_Comm comm)
{
    if (!NBC_DUPLICATES_FOLLOW || !__atomic_load_n(&nwaiting, __ATOMIC_RELAXED) ||
        nbc_has_lock()) /* in an operator */
        return;
    nbc_lock();
    struct nbc_run *run = nbc_progress_first();
    while (run) {
        struct idup *d = run->memory;
        bool waits =
            run->poll == idup_poll && d->stage == IDUP_WAITS && run->request->context->user == comm;
        if (waits)
            idup_start(d, run->request->context);
        run = waits ? nbc_progress_first() : run->next;
    }
    nbc_unlock();
}

/* Whether a call comes from one of the MPI's libraries: from its Fortran binding. */
static bool is_of_binding(const void *site)
{
    Dl_info info;
    return dladdr(site, &info) && nbc_is_mpi(info.dli_fname);
}

/* Makes the own request of a call. Until the duplicate exists the progress thread rests. MPICH and
 * Open MPI hang if one thread progresses duplicates while another one is in MPI_Comm_idup, and Open
 * MPI if a second thread progresses it at all meanwhile.
 *
 * The Fortran binding of Open MPI returns the handle that it finds in *newcomm after the call, so
 * its calls do not wait. */
static int idup_begin(MPI_Comm comm, MPI_Comm *newcomm, const void *site, struct nbc_request **r)
{
    nbc_lock();
    struct nbc_context *parent = nbc_context_find(comm);
    const struct nbc_call none = {.comm = comm};
    struct nbc_origin origin = nbc_origin_of(parent, true);
    origin.hidden = MPI_COMM_NULL;
    *r = nbc_request_new(parent, &none, NULL, NULL, nbc_run_plain(sizeof(struct idup), idup_poll));
    const bool made = *r;
    if (made) {
        const bool first = nbc_progress_duplicates_of(parent) == 0;
        const bool waits = NBC_DUPLICATES_FOLLOW && !first && !is_of_binding(site);
        struct idup *d = (*r)->run->memory;
        memset(d, 0, offsetof(struct idup, mine));
        d->user = newcomm;
        d->hints = MPI_INFO_NULL;
        d->request[0] = d->request[1] = MPI_REQUEST_NULL;
        d->turn = parent->nduplicates;
        d->stage = waits ? IDUP_WAITS : IDUP_DUPLICATES;
        __atomic_add_fetch(&nwaiting, waits, __ATOMIC_RELAXED);
        d->origin = origin;
        d->search.key = origin.key;
        nbc_thread_rest(1);
    }
    nbc_unlock();
    if (made)
        return MPI_SUCCESS;
    nbc_origin_drop(&origin);
    return nbc_raise(comm, MPI_ERR_NO_MEM);
}

/* The call ends without a request for the program: by an error, or by an exception (C++) of a
 * callback or an error handler. */
static void idup_left(struct nbc_request *const *made)
{
    if (!*made)
        return;
    struct idup *d = (*made)->run->memory;
    nbc_origin_drop(&d->origin);
    nbc_lock();
    nbc_thread_rest(-1);
    nbc_request_free(*made);
    nbc_unlock();
}

/* `error` is the result of the native call, which has raised it. If it is MPI_SUCCESS the program's
 * request is active from here on, so later errors are reported at its completion. */
static int idup_end(struct nbc_request **made, int error, MPI_Info hints, MPI_Request *request)
{
    struct nbc_request *r = *made;
    struct idup *d = r->run->memory;
    if (error)
        return error;
    *made = NULL;
    nbc_lock();
    d->made = *d->user;
    if (hints != MPI_INFO_NULL)
        d->error = NEXT(Info_dup)(hints, &d->hints);
    if (d->stage == IDUP_DUPLICATES)
        idup_duplicate_hidden(d, r->context);
    r->context->nduplicates++;
    nbc_progress_start(r);
    *request = r->handle;
    nbc_unlock();
    return MPI_SUCCESS;
}

/* The native call runs attribute callbacks of the program, so it is made without the lock. The body
 * is inlined, also without optimization, so that the call site is that of the program. */
#define IDUP(name, params, args, hints, native)                           \
    static inline __attribute__((always_inline)) int shim_##name params;  \
    EXPORT(int, name, params, args)                                       \
    {                                                                     \
        if (!newcomm || !request || !nbc_comm_is_ours(comm))              \
            return NEXT(name) args;                                       \
        __attribute__((cleanup(idup_left))) struct nbc_request *r = NULL; \
        int error = idup_begin(comm, newcomm, NBC_SITE(name), &r);        \
        if (error)                                                        \
            return error;                                                 \
        struct idup *d = r->run->memory;                                  \
        *newcomm = MPI_COMM_NULL;                                         \
        error = d->stage == IDUP_WAITS ? MPI_SUCCESS : NEXT(name) native; \
        return idup_end(&r, error, hints, request);                       \
    }

IDUP(Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request), (comm, newcomm, request),
     MPI_INFO_NULL, (comm, newcomm, &d->request[0]))

#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
IDUP(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
     (comm, info, newcomm, request), info, (comm, info, newcomm, &d->request[0]))
#endif
#else
void nbc_idup_start_all(MPI_Comm comm)
{
    (void)comm;
}
#endif
