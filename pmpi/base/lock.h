/* SPDX-License-Identifier: MIT */
/* One lock guards all state of this layer. It is taken only where the program may call MPI from
 * several threads, or a progress thread runs. Whoever holds it may call the MPI below, but never
 * runs code of the user except reduction operators, and never waits. */
#ifndef NBC_LOCK_H
#define NBC_LOCK_H

#include <assert.h>
#include <signal.h>
#include <stdbool.h>

/* In builds that look for faults (--enable-sanitize, test/mutate): nobody unlocks what is not his.
 */
#ifdef NBC_CHECKED
#define nbc_assert(condition) assert(condition)
#else
#define nbc_assert(condition) ((void)(true || (condition)))
#endif

/* Set at init, before a second thread can be here. */
extern bool nbc_threaded;

/* Where this thread is. MPI libraries call their own PMPI_Wait and others, which are ours then;
 * such a call from below must pass straight on. */
enum {
    NBC_OUTSIDE, /* zero */
    NBC_LOCKED,  /* it holds the lock */
    NBC_BELOW    /* without the lock, in a call of the MPI that calls others (files.c) */
};
extern _Thread_local unsigned char nbc_inside __attribute__((tls_model("initial-exec")));

/* Begins what all calls come through, and must hold the lock for. */
#define nbc_assert_locked() nbc_assert(nbc_inside == NBC_LOCKED)

/* Set by a signal handler that came while it could not look at this state: whoever gives the lock
 * back, or waits without it, calls nbc_report, which is set before the handler is. */
extern volatile sig_atomic_t nbc_report_asked;
extern void (*nbc_report)(void);

static inline void nbc_report_poll(void)
{
    if (__builtin_expect(nbc_report_asked, 0))
        nbc_report();
}

void nbc_lock_slow(void);
void nbc_unlock_slow(void);

/* Takes the mutex if it is free, without nbc_inside: for signal handlers. */
bool nbc_try_lock(void);

static inline void nbc_lock(void)
{
    if (nbc_threaded)
        nbc_lock_slow();
    nbc_inside = NBC_LOCKED;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a signal handler looks at it */
}

static inline void nbc_unlock(void)
{
    nbc_assert(nbc_inside);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nbc_inside = NBC_OUTSIDE;
    if (nbc_threaded)
        nbc_unlock_slow();
    nbc_report_poll();
}

/* Operators and callbacks of the program run here too, and free things. Returns whether the lock
 * was taken by this call. */
static inline bool nbc_lock_outside(void)
{
    bool outside = nbc_inside == NBC_OUTSIDE;
    if (outside)
        nbc_lock();
    return outside;
}

#endif
