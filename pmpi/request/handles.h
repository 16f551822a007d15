/* SPDX-License-Identifier: MIT */
/* From the handle of a request to our object. Every completion call looks here, among tens of
 * thousands maybe, in any order: so the table is one array that has the handles themselves, and a
 * look-up costs one line of cache. It only grows: handles are recycled with their objects. Under
 * the lock. */
#ifndef NBC_HANDLES_H
#define NBC_HANDLES_H

#include <stdbool.h>

#include "below/next.h"

struct nbc_request;

/* NULL when it is none of ours. */
struct nbc_request *nbc_handles_find(MPI_Request handle);

/* False when memory ran out. The handle is not there yet. */
bool nbc_handles_add(MPI_Request handle, struct nbc_request *r);

/* Forgets all of them. */
void nbc_handles_clear(void);

#endif
