/* SPDX-License-Identifier: MIT */
/* The operations under way, and what moves them on. */
#ifndef NBC_PROGRESS_H
#define NBC_PROGRESS_H

#include "request/request.h"

/* Operations under way (deferred ones not counted: there are others then); may be read without the
 * lock. */
extern int nbc_nactive;

/* How many have completed so far. Under the lock. */
extern unsigned nbc_ncompleted;

static inline bool nbc_any_active(void)
{
    return __builtin_expect(__atomic_load_n(&nbc_nactive, __ATOMIC_RELAXED) != 0, 0);
}

/* The oldest operation under way; the others follow by next. Under the lock. */
struct nbc_run *nbc_progress_first(void);

/* Starts (or defers) an operation that is set up. Its state is ACTIVE or COMPLETE afterwards. */
void nbc_progress_start(struct nbc_request *r);

/* Moves r on first, if it is active (NULL: none), then a bounded window of the others, a different
 * one each time. Under the lock. */
void nbc_progress(struct nbc_request *r);

/* The same from outside the lock, for callers that wait for something of their own. */
void nbc_progress_all(void);

/* What may still communicate in a context, or for it: NULL for nothing. Under the lock. */
struct nbc_request *nbc_progress_pending(const struct nbc_context *c);

/* Returns when r is not active any more. Under the lock, which it gives away between polls. */
void nbc_request_wait(struct nbc_request *r);

/* Grows while a thread waits: it polls then, and a progress thread need not. May be read without
 * the lock. */
extern unsigned nbc_pauses;

/* To be called between two polls by whoever waits, without the lock: gives the processor away when
 * waiting gets long. spins: the caller's counter, zero at first. */
void nbc_pause(int *spins);

/* The same under the lock, which it gives away meanwhile. */
void nbc_progress_yield(int *spins);

/* Between two looks of a loop at something of the MPI's: nbc_progress_all, then nbc_pause. */
void nbc_progress_pause(int *spins);

#endif
