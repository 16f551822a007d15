/* SPDX-License-Identifier: MIT */
/* NBCSHIM_CHECK=1: whether the collective calls of all ranks belong together.
 *
 * Each call is told to all ranks by a small allreduce of its own, whose operator compares what two
 * groups of ranks have called. It is nonblocking like the operation that it is for, which starts
 * when the check has passed, or else ends with an error on every rank. Checks have tags of their
 * own and a numbering of their own (the struct nbc_context that is called guard here), since the
 * calls that are compared may take different tags, or different numbers of them.
 *
 * All under the lock, but for setup. */
#ifndef NBC_CHECK_H
#define NBC_CHECK_H

#include "call.h"

struct nbc_check;
struct nbc_context;

/* At init, where the variable is set. Returns an MPI error code. */
int nbc_check_setup(void);

/* The last tag that operations and tokens may have, where `tag_ub` is the MPI's. */
int nbc_check_tag_limit(int tag_ub);

/* Begins the check of a call, number seq on its communicator, which nbc_call_make has found right.
 * *out is NULL where there is nothing to compare. Returns an MPI error code. */
int nbc_check_new(struct nbc_context *c, const struct nbc_call *call, enum nbc_kind kind,
                  int64_t seq, struct nbc_check **out);

/* The operation that has to be moved on for it. */
struct nbc_request *nbc_check_request(const struct nbc_check *check);

/* Whether the check is over. Then it is gone, and *error tells its result. To be called for the
 * oldest of a communicator only. */
bool nbc_check_over(struct nbc_check *check, int *error);

/* The communicator ends. */
void nbc_check_forget(struct nbc_context *c);

/* At finalize. */
void nbc_check_cleanup(void);

#endif
