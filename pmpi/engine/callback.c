/* SPDX-License-Identifier: MIT */
/* What the MPI below calls in its progress loop, where it can: below/hook.h. It polls the
 * operations of nbcshim, and returns at once if none is active, or if this thread, or another one,
 * is in nbcshim already. It never waits. */
#include "engine/progress.h"

#include <mpi.h>
#include <pthread.h>

#include "base/lock.h"
#include "below/hook.h"

unsigned nbc_callback_polls;

/* Below MPI_THREAD_SERIALIZED only one thread may call the MPI. If the loop runs in another one,
 * that is one of the MPI's own, and the program may be in nbcshim, which takes no lock then. Set at
 * init, before the MPI can call the callback. */
static pthread_t only_thread;
static bool has_only_thread;

/* Returns the number of operations that have completed. */
static int poll_operations(void)
{
    if ((has_only_thread && !pthread_equal(pthread_self(), only_thread)) || !nbc_lock_if_free())
        return 0;
    unsigned completed = nbc_ncompleted;
    __atomic_store_n(&nbc_callback_polls, nbc_callback_polls + 1, __ATOMIC_RELAXED);
    nbc_progress_below();
    completed = nbc_ncompleted - completed;
    nbc_unlock();
    return (int)completed;
}

/* Polls in every second turn of the loop, because a poll takes about as long as a turn, and delays
 * what the program waits for. */
static int on_progress(void)
{
    static NBC_PER_THREAD unsigned turn;
    return nbc_progress_is_wanted() && !nbc_has_lock() && ++turn % 2 ? poll_operations() : 0;
}

int nbc_callback_start(int level, bool any_version)
{
    has_only_thread = level < MPI_THREAD_SERIALIZED;
    only_thread = pthread_self();
    return nbc_hook_install(on_progress, level, any_version);
}
