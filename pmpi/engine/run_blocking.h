/* SPDX-License-Identifier: MIT */
/* Blocking operations without a request. While nothing else is pending, a blocking call goes
 * straight from its plan to a run: nothing has to find the operation, or to progress beside it. If
 * the operation is not complete after a short wait, it gets a request and goes on like any other:
 * then reports of hangs show it, and the lock is released while it waits. */
#ifndef NBC_RUN_BLOCKING_H
#define NBC_RUN_BLOCKING_H

#include "comm/context.h"
#include "op/call.h"

/* Executes a blocking call in this way, and sets *error to the result of the operation. Returns
 * false if that is not possible, and then has done nothing: a call like it has not been made
 * before, other operations are pending, or operations are timed or checked. Under the lock, which
 * it may release temporarily. */
bool nbc_run_blocking(const struct nbc_call *call, struct nbc_context *c, int *error);

#endif
