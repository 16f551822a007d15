/* SPDX-License-Identifier: MIT */
/* Persistent neighborhood collectives whose ranks send together to other nodes (the algorithm
 * `locality`): the ranks of a node tell one another their edges, and all ranks agree whether it is
 * worth it. MPI_..._init may wait for the other ranks (MPI-4.1, section 6.13: it is nonlocal). */
#ifndef NBC_LOCALITY_H
#define NBC_LOCALITY_H

#include "op/call.h"
#include "request/request.h"

/* In an init call: gives the operation the algorithm `locality` if all ranks gain by it, or the
 * user asks for it. r: the operation, not started; NULL if this rank has no memory for it. Does
 * nothing for other collectives, and where no ranks share a node. Under the lock, which it may
 * release temporarily. Collective. Returns an MPI error code. */
int nbc_locality_agree(const struct nbc_call *call, struct nbc_context *c, struct nbc_request *r);

#endif
