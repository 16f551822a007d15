/* SPDX-License-Identifier: MIT */
/* What the MPI below calls in its progress loop, where it can: below/hook.h. It polls the
 * operations of nbcshim, and goes home at once if none is active, or if this thread, or another
 * one, is in nbcshim already. It never waits. */
#ifndef NBC_CALLBACK_H
#define NBC_CALLBACK_H

#include <stdbool.h>

/* Hooks nbcshim into the progress loop of the MPI: returns the way as nbc_hook_install does, and
 * nbc_hook_remove ends it. level: the thread level of the MPI. To be called at init, without the
 * lock. Local. */
int nbc_callback_start(int level, bool any_version);

/* The number of calls that have polled operations. May be read without the lock. */
extern unsigned nbc_callback_polls;

#endif
