/* SPDX-License-Identifier: MIT */
/* From a call on a communicator with a context to a started operation: plan or binding, algorithm,
 * schedule, request, start. Under the lock. All is local. */
#ifndef NBC_LAUNCH_H
#define NBC_LAUNCH_H

#include <stddef.h>
#include <string.h>

#include "base/settings.h"
#include "base/state.h"
#include "op/call.h"
#include "op/plan.h"
#include "request/request.h"

struct nbc_alg;

/* What the user asks of a call. Precedence: environment, call info, communicator info. */
void nbc_launch_ask(const struct nbc_call *call, const struct nbc_context *c,
                    struct nbc_preferences *preferences);
static inline bool nbc_launch_asks(const struct nbc_call *call, const struct nbc_context *c)
{
    return __builtin_expect(call->has_info || c->hints || nbc_offloaded, 0);
}

static inline struct nbc_preferences nbc_launch_preferences(const struct nbc_call *call,
                                                            const struct nbc_context *c)
{
    struct nbc_preferences preferences = {nbc_settings.algorithm[call->coll],
                                          nbc_settings.segment_size, nbc_settings.order};
    if (nbc_launch_asks(call, c))
        nbc_launch_ask(call, c, &preferences);
    return preferences;
}

/* The plan of an earlier equal call, or NULL. Plans for what only the environment asks, which never
 * changes, are found without comparing that. */
static inline struct nbc_plan *nbc_launch_plan(const struct nbc_call *call,
                                               const struct nbc_context *c)
{
    if (!nbc_launch_asks(call, c))
        return nbc_plan_find(c->plans, call, NULL);
    const struct nbc_preferences preferences = nbc_launch_preferences(call, c);
    return nbc_plan_find(c->plans, call, &preferences);
}

/* Chooses the algorithm for a shape as the user asks, by the rules in force. Sets the segment size
 * and the order of the shape. */
const struct nbc_alg *nbc_launch_choose(struct nbc_shape *s,
                                        const struct nbc_preferences *preferences);

/* Adds the program's call to the last ones on its communicator. */
static inline void nbc_launch_note(struct nbc_context *c, const struct nbc_call *call,
                                   int64_t bytes)
{
    struct nbc_recent *note = &c->recent[c->ncalls++ % NBC_NRECENT];
    memcpy(note, call, offsetof(struct nbc_recent, bytes)); /* one load, one store */
    note->bytes = bytes;
}

/* Returned instead of an MPI error code for a blocking call that the MPI is to carry out. */
enum { NBC_LAUNCH_BY_MPI = -2 };

/* Creates the inactive operation of a call, without a tag, and notes the call. Returns an MPI error
 * code. */
int nbc_launch_make(const struct nbc_call *call, struct nbc_context *c, struct nbc_request **out);

/* Starts the operation of a call: all but nonblocking ones take the numbers of blocking ones. If
 * calls are checked, the operation starts after the check of the call `checked`. Returns an MPI
 * error code. */
int nbc_launch_checked(const struct nbc_call *call, struct nbc_context *c,
                       const struct nbc_call *checked, struct nbc_request **out);

/* Starts an operation that nbcshim has made for itself, as one of a blocking call. All ranks make
 * it in the same order relative to the program's blocking calls. */
void nbc_launch_internal(struct nbc_context *c, struct nbc_request *r);

/* Waits for an operation whose request the program does not have, and frees it. Returns the error
 * of the operation. */
int nbc_launch_finish(struct nbc_request *r);

/* Creates the start condition of the operation of a call, number seq on its communicator. *out is
 * NULL if there is none. Returns an MPI error code. */
typedef int nbc_start_condition_maker(struct nbc_context *c, const struct nbc_call *call,
                                      int64_t seq, struct nbc_start_condition **out);

/* Set at init if calls are checked (check.h), else NULL. */
extern NBC_HIDDEN nbc_start_condition_maker *nbc_launch_start_condition;

/* --- run_blocking.c --- */

/* Executes a blocking call without a request, and sets *error to the result of the operation.
 * Returns false if that is not possible, and then has done nothing: a call like it has not been
 * made before, other operations are pending, or operations are timed or checked. Under the lock,
 * which it may release temporarily. */
bool nbc_run_blocking(const struct nbc_call *call, struct nbc_context *c, int *error);

/* --- locality.c --- */

/* In an init call: gives the operation the algorithm `locality` if all ranks gain by it, or the
 * user asks for it. r: the operation, not started; NULL if this rank has no memory for it. Does
 * nothing for other collectives, and where no ranks share a node. Under the lock, which it may
 * release temporarily. Collective. Returns an MPI error code. */
int nbc_locality_agree(const struct nbc_call *call, struct nbc_context *c, struct nbc_request *r);

#endif
