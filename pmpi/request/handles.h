/* SPDX-License-Identifier: MIT */
/* Finds the request object of a handle. Every completion call searches here, possibly among tens of
 * thousands of requests and in any order. The table is therefore one array that contains the
 * handles, and a search costs one cache line. The table only grows, because handles are recycled
 * with their objects. Under the lock. Local. */
#ifndef NBC_HANDLES_H
#define NBC_HANDLES_H

#include <stdbool.h>

#include "below/next.h"

struct nbc_request;

/* The object of a handle, NULL if the handle is not one of nbcshim's. */
struct nbc_request *nbc_handles_find(MPI_Request handle);

/* Adds a handle that is not in the table. Returns false without memory. */
bool nbc_handles_add(MPI_Request handle, struct nbc_request *r);

/* The number of handles that have been added so far. */
extern unsigned nbc_nhandles;

/* Removes all handles and frees the table. */
void nbc_handles_clear(void);

#endif
