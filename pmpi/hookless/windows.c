/* SPDX-License-Identifier: MIT */
/* Windows: MPI-4.1 chapter 12. The constructors, fence, set_info and free are collective, so they
 * are preceded by a barrier: barrier_before.h. MPI_Win_start waits for a signal that the target
 * sends in MPI_Win_post.
 *
 * A contended MPI_Win_lock blocks in the MPI below until the lock is released. Meanwhile operations
 * of nbcshim progress only by the progress thread. */
#include "hookless/barrier_before.h"
#include "hookless/poll.h"

NBC_ARCHIVE_MEMBER(windows)

static struct nbc_object_barrier *win_barrier(MPI_Win win)
{
    return nbc_object_barrier_find(NBC_WINDOW, NBC_KEY(win));
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
        if (!nbc_comm_is_ours(comm))                                                    \
            return NEXT(name) args;                                                     \
        int error = nbc_barrier_before_constructor(comm);                               \
        if (!error)                                                                     \
            error = NEXT(name) args;                                                    \
        return error ? error : nbc_object_barrier_new(NBC_WINDOW, NBC_KEY(*win), comm); \
    }

#define CREATE(name, unit_type)                                                                  \
    CONSTRUCTOR(                                                                                 \
        name,                                                                                    \
        (void *base, MPI_Aint size, unit_type unit, MPI_Info info, MPI_Comm comm, MPI_Win *win), \
        (base, size, unit, info, comm, win))
#define ALLOCATE(name, unit_type)                                                                \
    CONSTRUCTOR(                                                                                 \
        name,                                                                                    \
        (MPI_Aint size, unit_type unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win), \
        (size, unit, info, comm, base, win))

CREATE(Win_create, int)
NBC_IF(HAVE_MPI_WIN_CREATE_C, CREATE(Win_create_c, MPI_Aint))
NBC_IF(HAVE_MPI_WIN_ALLOCATE, ALLOCATE(Win_allocate, int))
NBC_IF(HAVE_MPI_WIN_ALLOCATE_C, ALLOCATE(Win_allocate_c, MPI_Aint))
NBC_IF(HAVE_MPI_WIN_ALLOCATE_SHARED, ALLOCATE(Win_allocate_shared, int))
NBC_IF(HAVE_MPI_WIN_ALLOCATE_SHARED_C, ALLOCATE(Win_allocate_shared_c, MPI_Aint))
NBC_IF(HAVE_MPI_WIN_CREATE_DYNAMIC,
       CONSTRUCTOR(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win),
                   (info, comm, win)))

#define COLLECTIVE(name, params, args)                                \
    EXPORT(int, name, params, args)                                   \
    {                                                                 \
        int error = nbc_object_barrier_pass(win_barrier(win), false); \
        return error ? win_raise(win, error) : NEXT(name) args;       \
    }

COLLECTIVE(Win_fence, (int assert, MPI_Win win), (assert, win))
NBC_IF(HAVE_MPI_WIN_SET_INFO, COLLECTIVE(Win_set_info, (MPI_Win win, MPI_Info info), (win, info)))

EXPORT(int, Win_free, (MPI_Win * win), (win))
{
    struct nbc_object_barrier *b = win ? win_barrier(*win) : NULL;
    int error = nbc_object_barrier_pass(b, true);
    if (error)
        return win_raise(*win, error); /* unreached: the MPI fails */
    error = NEXT(Win_free)(win);
    nbc_object_barrier_ended(b, !error);
    return error;
}

/* --- post, start, complete, wait ------------------------------------------------------------- */

/* Sends signals to a group, or waits for them. MPI_MODE_NOCHECK, which both
 * sides must give, says that MPI_Win_start need not wait. */
static int win_signal(const struct nbc_object_barrier *b, MPI_Group group, int assert,
                      enum nbc_signal_use use)
{
    if (!b || group == MPI_GROUP_NULL || assert & MPI_MODE_NOCHECK)
        return MPI_SUCCESS;
    return nbc_signal_group(b->request->context, group, &b->posted, use);
}

EXPORT(int, Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
{
    int error = NEXT(Win_post)(group, assert, win);
    return error ? error
                 : win_raise(win, win_signal(win_barrier(win), group, assert, NBC_SIGNAL_POST_ALL));
}

EXPORT(int, Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
{
    struct nbc_object_barrier *b = win_barrier(win);
    /* The MPI raises an error for a second MPI_Win_start, for which there is no MPI_Win_post. */
    int error = b && b->started ? MPI_SUCCESS : win_signal(b, group, assert, NBC_SIGNAL_AWAIT_ALL);
    if (error)
        return win_raise(win, error); /* unreached: the MPI fails */
    error = NEXT(Win_start)(group, assert, win);
    if (b && !error)
        b->started = true;
    return error;
}

EXPORT(int, Win_complete, (MPI_Win win), (win))
{
    struct nbc_object_barrier *b = win_barrier(win);
    if (nbc_any_active() && !nbc_inside)
        nbc_progress_all();
    int error = NEXT(Win_complete)(win);
    if (b && !error)
        b->started = false;
    return error;
}

EXPORT(int, Win_wait, (MPI_Win win), (win))
{
    NBC_POLL_WHILE(nbc_call_must_poll(NBC_HOOK_MISSES_EPOCHS), NEXT(Win_test)(win, &flag),
                   NEXT(Win_wait)(win));
}

/* --- calls that do not block, but that programs make in loops --------------------------------- */

POLLED(Win_test, (MPI_Win win, int *flag), (win, flag))
POLLED(Win_lock, (int type, int rank, int assert, MPI_Win win), (type, rank, assert, win))
POLLED(Win_unlock, (int rank, MPI_Win win), (rank, win))
NBC_IF(HAVE_MPI_WIN_LOCK_ALL, POLLED(Win_lock_all, (int assert, MPI_Win win), (assert, win)))
NBC_IF(HAVE_MPI_WIN_LOCK_ALL, POLLED(Win_unlock_all, (MPI_Win win), (win)))
NBC_IF(HAVE_MPI_WIN_FLUSH, POLLED(Win_flush, (int rank, MPI_Win win), (rank, win)))
NBC_IF(HAVE_MPI_WIN_FLUSH, POLLED(Win_flush_all, (MPI_Win win), (win)))
NBC_IF(HAVE_MPI_WIN_FLUSH, POLLED(Win_flush_local, (int rank, MPI_Win win), (rank, win)))
NBC_IF(HAVE_MPI_WIN_FLUSH, POLLED(Win_flush_local_all, (MPI_Win win), (win)))
NBC_IF(HAVE_MPI_WIN_SYNC, POLLED(Win_sync, (MPI_Win win), (win)))
