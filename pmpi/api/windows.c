/* SPDX-License-Identifier: MIT */
/* Windows: MPI-4.1 chapter 12. The constructors, fence, set_info and free are collective, so they
 * are preceded by a barrier: presync.h. MPI_Win_start waits for a signal that the target sends in
 * MPI_Win_post.
 *
 * A contended MPI_Win_lock blocks in the MPI below until the lock is released. Meanwhile operations
 * of nbcshim progress only by the progress thread. */
#include <stdlib.h>

#include "api/looped.h"
#include "api/presync.h"
#include "api/wait_test.h"
#include "base/lock.h"
#include "below/export.h"
#include "below/hook.h"
#include "comm/context.h"
#include "engine/progress.h"
#include "engine/signal.h"

NBC_ARCHIVE_MEMBER(windows)

static struct nbc_gate *win_gate(MPI_Win win)
{
    return nbc_gate_find(NBC_GATE_WINDOW, NBC_GATE_KEY(win));
}

/* Raises an error of nbcshim on the window, and returns it. */
static int win_raise(MPI_Win win, int error)
{
    if (error)
        NEXT(Win_call_errhandler)(win, error); /* unreached: the MPI fails */
    return error;
}

/* --- collective calls ------------------------------------------------------------------------ */

#define CONSTRUCTOR(name, params, args)                                                 \
    EXPORT(int, name, params, args)                                                     \
    {                                                                                   \
        if (!nbc_knows(comm))                                                           \
            return NEXT(name) args;                                                     \
        int error = nbc_presync(comm);                                                  \
        if (!error)                                                                     \
            error = NEXT(name) args;                                                    \
        return error ? error : nbc_gate_new(NBC_GATE_WINDOW, NBC_GATE_KEY(*win), comm); \
    }

CONSTRUCTOR(Win_create,
            (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
            (base, size, unit, info, comm, win))

#ifdef HAVE_MPI_WIN_ALLOCATE
CONSTRUCTOR(Win_allocate,
            (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
            (size, unit, info, comm, base, win))
#endif

#ifdef HAVE_MPI_WIN_ALLOCATE_SHARED
CONSTRUCTOR(Win_allocate_shared,
            (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
            (size, unit, info, comm, base, win))
#endif

#ifdef HAVE_MPI_WIN_CREATE_DYNAMIC
CONSTRUCTOR(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
#endif

#ifdef HAVE_MPI_WIN_CREATE_C
CONSTRUCTOR(Win_create_c,
            (void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
            (base, size, unit, info, comm, win))
#endif

#ifdef HAVE_MPI_WIN_ALLOCATE_C
CONSTRUCTOR(Win_allocate_c,
            (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
            (size, unit, info, comm, base, win))
#endif

#ifdef HAVE_MPI_WIN_ALLOCATE_SHARED_C
CONSTRUCTOR(Win_allocate_shared_c,
            (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
            (size, unit, info, comm, base, win))
#endif

#define GATED(name, params, args)                               \
    EXPORT(int, name, params, args)                             \
    {                                                           \
        int error = nbc_gate_pass(win_gate(win));               \
        return error ? win_raise(win, error) : NEXT(name) args; \
    }

GATED(Win_fence, (int assert, MPI_Win win), (assert, win))

#ifdef HAVE_MPI_WIN_SET_INFO
GATED(Win_set_info, (MPI_Win win, MPI_Info info), (win, info))
#endif

EXPORT(int, Win_free, (MPI_Win * win), (win))
{
    struct nbc_gate *gate = win ? win_gate(*win) : NULL;
    int error = nbc_gate_pass(gate);
    if (error)
        return win_raise(*win, error); /* unreached: the MPI fails */
    nbc_gate_remove(gate);
    error = NEXT(Win_free)(win);
    if (error)
        nbc_gate_restore(gate);
    else
        nbc_gate_free(gate);
    return error;
}

/* --- post, start, complete, wait ------------------------------------------------------------- */

/* Sends a signal to each rank of a group, or waits for one from each. */
static int win_signal(const struct nbc_gate *gate, MPI_Group group, bool wait)
{
    struct nbc_context *c = nbc_gate_context(gate);
    int n, error = MPI_SUCCESS;
    NEXT(Group_size)(group, &n);
    int *ranks = nbc_signal_ranks(c, group, n);
    if (!ranks)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < n && !error; i++) {
        struct nbc_signal signal = {.kind = NBC_SIGNAL_POST, .number = nbc_gate_number(gate)};
        error = wait ? nbc_signal_wait(c, ranks[i], &signal) : nbc_signal_send(c, ranks[i], signal);
    }
    free(ranks);
    return error;
}

/* Whether a signal is sent: MPI_MODE_NOCHECK, which both sides must give, says that MPI_Win_start
 * need not wait. */
static bool needs_signal(const struct nbc_gate *gate, MPI_Group group, int assert)
{
    return gate && group != MPI_GROUP_NULL && !(assert &MPI_MODE_NOCHECK);
}

EXPORT(int, Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
{
    const struct nbc_gate *gate = win_gate(win);
    int error = NEXT(Win_post)(group, assert, win);
    if (error || !needs_signal(gate, group, assert))
        return error;
    return win_raise(win, win_signal(gate, group, false));
}

EXPORT(int, Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
{
    struct nbc_gate *gate = win_gate(win);
    /* The MPI raises an error for a second MPI_Win_start, for which there is no MPI_Win_post. */
    bool waits = needs_signal(gate, group, assert) && !*nbc_gate_started(gate);
    int error = waits ? win_signal(gate, group, true) : MPI_SUCCESS;
    if (error)
        return win_raise(win, error); /* unreached: the MPI fails */
    error = NEXT(Win_start)(group, assert, win);
    if (gate && !error)
        *nbc_gate_started(gate) = true;
    return error;
}

EXPORT(int, Win_complete, (MPI_Win win), (win))
{
    struct nbc_gate *gate = win_gate(win);
    if (nbc_any_active() && !nbc_inside)
        nbc_progress_all();
    int error = NEXT(Win_complete)(win);
    if (gate && !error)
        *nbc_gate_started(gate) = false;
    return error;
}

static bool epoch_must_poll(void)
{
    return nbc_must_poll() || (nbc_any_active() && nbc_hook_misses_epochs());
}

EXPORT(int, Win_wait, (MPI_Win win), (win))
{
    int spins = 0;
    while (epoch_must_poll() && !nbc_inside) {
        int flag = 0, error = NEXT(Win_test)(win, &flag);
        if (error || flag)
            return error;
        nbc_progress_pause(&spins);
    }
    return NEXT(Win_wait)(win);
}

/* --- calls that do not block, but that programs make in loops --------------------------------- */

LOOPED(Win_test, (MPI_Win win, int *flag), (win, flag))
LOOPED(Win_lock, (int type, int rank, int assert, MPI_Win win), (type, rank, assert, win))
LOOPED(Win_unlock, (int rank, MPI_Win win), (rank, win))

#ifdef HAVE_MPI_WIN_LOCK_ALL
LOOPED(Win_lock_all, (int assert, MPI_Win win), (assert, win))
LOOPED(Win_unlock_all, (MPI_Win win), (win))
#endif

#ifdef HAVE_MPI_WIN_FLUSH
LOOPED(Win_flush, (int rank, MPI_Win win), (rank, win))
LOOPED(Win_flush_all, (MPI_Win win), (win))
LOOPED(Win_flush_local, (int rank, MPI_Win win), (rank, win))
LOOPED(Win_flush_local_all, (MPI_Win win), (win))
#endif

#ifdef HAVE_MPI_WIN_SYNC
LOOPED(Win_sync, (MPI_Win win), (win))
#endif
