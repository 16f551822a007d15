/* SPDX-License-Identifier: MIT */
/* Draining operations. A failed operation completes at once, but messages of other ranks may still
 * arrive for it, under its tag. A draining operation receives them into memory of its own, and
 * holds the tag until all have arrived, so that they cannot reach a later operation. It runs like
 * any other operation; its schedule consists of receives. */
#ifndef NBC_DRAIN_OP_H
#define NBC_DRAIN_OP_H

#include "request/request.h"

/* Creates the draining operation of a failed operation, which the caller starts in its place.
 * Returns NULL if no message is missing (*error is MPI_SUCCESS) or on an error, which *error
 * receives. Under the lock. Local. */
struct nbc_request *nbc_drain_op_new(const struct nbc_request *failed, int *error);

#endif
