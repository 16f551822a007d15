/* SPDX-License-Identifier: MIT */
/* From a call on a communicator with a context to a started operation: plan or binding, algorithm,
 * schedule, request, start. Under the lock. All is local. */
#ifndef NBC_LAUNCH_H
#define NBC_LAUNCH_H

#include "op/call.h"
#include "op/plan.h"
#include "request/request.h"

struct nbc_alg;

/* What the user asks of a call. Precedence: environment, call info, communicator info. */
struct nbc_wishes nbc_launch_wishes(const struct nbc_call *call, const struct nbc_context *c);

/* Chooses the algorithm for a shape as the user asks, by the rules in force. Sets the segment size
 * and the order of the shape. */
const struct nbc_alg *nbc_launch_choose(struct nbc_shape *s, const struct nbc_wishes *wishes);

/* Creates the inactive operation of a call, without a tag. Returns an MPI error code. */
int nbc_launch_make(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out);

/* Starts the nonblocking operation of a call. Returns an MPI error code. */
int nbc_launch(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out);

/* The same for a call of this kind: all but nonblocking calls take the numbers of blocking ones. If
 * calls are checked and `checked` is not NULL, the operation starts after the check of the call
 * `checked`. */
int nbc_launch_checked(const struct nbc_call *call, struct nbc_context *c,
                       const struct nbc_call *checked, enum nbc_kind kind,
                       struct nbc_request **out);

/* Creates the prerequisite of the operation of a call, number seq on its communicator. *out is NULL
 * if there is none. Returns an MPI error code. */
typedef int nbc_prerequisite_maker(struct nbc_context *c, const struct nbc_call *call,
                                   enum nbc_kind kind, int64_t seq, struct nbc_prerequisite **out);

/* Set at init if calls are checked (check.h), else NULL. */
extern nbc_prerequisite_maker *nbc_launch_prerequisite;

#endif
