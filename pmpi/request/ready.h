/* SPDX-License-Identifier: MIT */
/* Finds the requests of nbcshim in an array of requests that the program passes, and complete ones
 * without looking through the array: the program completes long arrays one by one, by MPI_Waitany
 * and its kin, and to look through the array in every call would cost more than the operations. A
 * call that looks through an array remembers in each request at which place it was. From then on
 * the request is in a list whenever it is complete: in that of the part of memory where the place
 * is. A later call finds there what is complete in its array, at a cost that does not grow with the
 * array.
 *
 * The program may have changed the array meanwhile. So a request counts only if its place holds its
 * handle, and a call that finds nothing in the lists looks through the array again.
 *
 * Under the lock. Local. */
#ifndef NBC_READY_H
#define NBC_READY_H

#include "request/request.h"

/* A call has found the request at this place. */
void nbc_ready_see(struct nbc_request *r, const MPI_Request *place);

/* A complete request in an array, by its place; NULL if none is known. turn: which part of the
 * array comes first. */
struct nbc_request *nbc_ready_find(const MPI_Request *requests, int n, unsigned turn, int *place);

/* Empties the lists, at finalize. */
void nbc_ready_clear(void);

#endif
