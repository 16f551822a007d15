/* SPDX-License-Identifier: MIT */
/* From a call on a known communicator to an operation under way: plan or binding, algorithm,
 * schedule, request, start. All under the lock. */
#ifndef NBC_LAUNCH_H
#define NBC_LAUNCH_H

#include "op/call.h"
#include "request/request.h"

struct nbc_alg;

/* The algorithm and the segment size that the user asks for. Precedence: environment, call info,
 * communicator info. NULL, and 0, where nothing does. */
void nbc_launch_overrides(const struct nbc_call *call, const struct nbc_context *c,
                          const struct nbc_alg **override, int64_t *segment);

/* The algorithm for a shape with these overrides, by the rules in force. Sets the segment size of
 * the shape. */
const struct nbc_alg *nbc_launch_choose(struct nbc_shape *s, const struct nbc_alg *override,
                                        int64_t segment);

/* Makes the inactive operation of a call, without a tag yet. Local. Returns an MPI error code. */
int nbc_launch_make(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out);

/* Starts the nonblocking operation of a call. Local. Returns an MPI error code. */
int nbc_launch(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out);

/* The same, where calls are checked after the check of the call `checked` of this kind has passed.
 */
int nbc_launch_checked(const struct nbc_call *call, struct nbc_context *c,
                       const struct nbc_call *checked, enum nbc_kind kind,
                       struct nbc_request **out);

/* Makes what has to be over before the operation of a call may start, number seq of its
 * communicator; *out is NULL for nothing. Returns an MPI error code. */
typedef int nbc_prerequisite_maker(struct nbc_context *c, const struct nbc_call *call,
                                   enum nbc_kind kind, int64_t seq, struct nbc_prerequisite **out);

/* Set at init where calls are checked (check.h), else NULL. */
extern nbc_prerequisite_maker *nbc_launch_prerequisite;

#endif
