/* SPDX-License-Identifier: MIT */
/* The operations under way, and what moves them on. */
#ifndef NBC_PROGRESS_H
#define NBC_PROGRESS_H

#include "request.h"

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

/* Waits until nothing communicates in a context any more. Nobody starts anything there. Under the
 * lock, but for the waiting. */
void nbc_progress_drain(const struct nbc_context *c);

/* Grows while a thread waits: it polls then, and a progress thread need not. May be read without
 * the lock. */
extern unsigned nbc_pauses;

/* To be called between two polls by whoever waits, without the lock: gives the processor away when
 * waiting gets long. spins: the caller's counter, zero at first. */
void nbc_pause(int *spins);

#endif
