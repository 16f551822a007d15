/* SPDX-License-Identifier: MIT */
/* Calls in which the program waits for something of the MPI: where the MPI does not call nbcshim
 * while it blocks, a loop of a call that does not block takes their place while operations of
 * nbcshim are pending, and progresses both (MPI-4.1 section 6.12: a blocked rank takes part in all
 * collectives that it has started). */
#ifndef NBC_POLL_H
#define NBC_POLL_H

#include "base/lock.h"
#include "base/state.h"
#include "below/export.h"
#include "below/hook.h"
#include "engine/progress.h"

/* Whether a blocking call must be replaced by a loop that polls. Unless the MPI below calls nbcshim
 * while it blocks, it may block only while no operation of nbcshim is active and no other thread
 * can start one that other processes wait for. Without the lock. (Without MPI_Init, MPICH 4.0.2
 * crashes in a poll until a communicator of several processes exists.) */
static inline bool nbc_must_poll(void)
{
    bool threads_may_start = nbc_threaded && __atomic_load_n(&nbc_has_peers, __ATOMIC_RELAXED);
    return (nbc_any_active() || threads_may_start) && !nbc_hooked;
}

/* The same of a call of the program, in which hooks with this trait are not called; 0: all are. */
static inline bool nbc_call_must_poll(unsigned missed)
{
    return (nbc_must_poll() || ((nbc_any_active() || nbc_threaded || nbc_shared_npeers > 0) &&
                                missed && nbc_hooked && nbc_hook_has(missed))) &&
           !nbc_inside;
}

/* MPI_Wait on a request of the MPI below; the operations of nbcshim progress meanwhile. Without the
 * lock. Returns an error that the MPI below has raised. */
int nbc_wait_other(MPI_Request *request, MPI_Status *status);

/* The statements of a call that blocks, and of which the MPI has a form that sets a flag: test is a
 * call of that form. */
#define NBC_POLL_WHILE(condition, test, wait) \
    do {                                      \
        int spins = 0, flag = 0, error;       \
        while (condition) {                   \
            error = test;                     \
            if (error || flag)                \
                return error;                 \
            nbc_progress_all();               \
            nbc_pause(&spins);                \
        }                                     \
        return wait;                          \
    } while (0)

/* Defines a call that does not block, but that programs repeat in a loop until something happens:
 * the operations of nbcshim are polled in each. Where the MPI calls nbcshim in its progress loop,
 * not every such call enters that loop. */
#define POLLED(name, params, args)                   \
    EXPORT(int, name, params, args)                  \
    {                                                \
        if (!nbc_progress_is_wanted() || nbc_inside) \
            return NEXT(name) args;                  \
        unsigned polls = nbc_callback_polls;         \
        int error = NEXT(name) args;                 \
        if (nbc_callback_polls == polls)             \
            nbc_progress_all();                      \
        return error;                                \
    }

#endif
