/* SPDX-License-Identifier: MIT */
/* Finds the requests of nbcshim in an array of requests that the program passes.
 *
 * For the MPI below, the handle of such a request is an inactive persistent request. Arrays are
 * therefore passed to the MPI below unchanged: its completion calls ignore inactive requests, give
 * them the empty status and leave their handles unchanged. */
#ifndef NBC_OWN_REQUESTS_H
#define NBC_OWN_REQUESTS_H

#include "request/request.h"

struct nbc_own_request {
    struct nbc_request *r;
    int index; /* in the array */
};

struct nbc_own_requests {
    struct nbc_own_request *list; /* in ascending order of the index */
    int n;
    int others;                      /* number of the other entries that are not null */
    struct nbc_own_request some[16]; /* memory of short lists */
};

/* Fills *p with the requests of nbcshim in an array; inactive ones only if inactive_too. The caller
 * ends *p with nbc_own_requests_release. Returns false without memory, and then there is nothing to
 * release. Under the lock; the list remains valid without it, because no other thread may complete
 * a request that this thread is completing. Local. */
bool nbc_own_requests_find(struct nbc_own_requests *p, int n, const MPI_Request *requests,
                           bool inactive_too);

/* Frees the list. */
void nbc_own_requests_release(struct nbc_own_requests *p);

#endif
