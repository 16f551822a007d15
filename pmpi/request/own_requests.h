/* SPDX-License-Identifier: MIT */
/* Which entries of the array of requests that a program hands over are ours.
 *
 * The handle of ours is for the MPI below a persistent request that is never active. So the arrays
 * are handed down as they are: calls below pass over what is ours, give it the empty status and
 * leave its handle alone, which is all that an inactive request wants. */
#ifndef NBC_OWN_REQUESTS_H
#define NBC_OWN_REQUESTS_H

#include "request/request.h"

struct nbc_own_request {
    struct nbc_request *r;
    int index; /* in the array */
};

struct nbc_own_requests {
    struct nbc_own_request *list; /* by index, ascending */
    int n;
    int others;                      /* entries that are neither ours nor null */
    struct nbc_own_request some[16]; /* room for short lists */
};

/* Finds what is ours: all of it, or only what is active or complete. Under the lock; the list stays
 * valid without it, since no other thread may end a request that this one is about to. Returns
 * false when memory ran out; then there is nothing to end. */
bool nbc_own_requests_find(struct nbc_own_requests *p, int n, const MPI_Request *requests,
                           bool inactive_too);

void nbc_own_requests_release(struct nbc_own_requests *p);

#endif
