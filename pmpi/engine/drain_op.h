/* SPDX-License-Identifier: MIT */
/* A failed operation ends at once, but messages of other ranks may still arrive for it, under its
 * tag. An orphan receives them into memory of its own, and holds the tag until it has: so they
 * cannot reach a later operation. It runs like any other operation, with a schedule of receives. */
#ifndef NBC_DRAIN_OP_H
#define NBC_DRAIN_OP_H

#include "request/request.h"

/* The orphan of a failed operation, ready to be started in its place. NULL: nothing is owed
 * (*error = 0), or there was no memory. */
struct nbc_request *nbc_drain_op_new(const struct nbc_request *failed, int *error);

#endif
