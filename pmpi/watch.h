/* SPDX-License-Identifier: MIT */
/* A hang explains itself: NBCSHIM_TIMEOUT makes a thread look for operations that have been pending
 * for too long, and SIGUSR1 shows those that are pending now. Both write what each waits for. */
#ifndef NBC_WATCH_H
#define NBC_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct nbc_request;

/* Whether operations are to be stamped with the time of their start. Set at init, read only
 * afterwards. */
extern bool nbc_stamped;

/* Nanoseconds of a clock that never goes back. */
int64_t nbc_now(void);

/* A signal has come at a time when nothing could be shown. */
extern volatile sig_atomic_t nbc_dump_asked;

/* Before the MPI is initialized: whether the program leaves SIGUSR1 to us. And right behind: which
 * handler is the MPI's. */
void nbc_watch_before(void);
void nbc_watch_after(void);

/* At init, with the thread level of the MPI, before nbc_threaded is looked at by anyone: the thread
 * reads what is pending, so it needs the lock. And at the end. */
void nbc_watch_setup(int level);
void nbc_watch_stop(void);

/* Shows what a signal asked for. Without the lock. */
void nbc_watch_dump(void);

/* Called where the lock is given back, and where a rank waits without it. */
static inline void nbc_watch_poll(void)
{
    if (__builtin_expect(nbc_dump_asked, 0))
        nbc_watch_dump();
}

#endif
