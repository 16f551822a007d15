/* SPDX-License-Identifier: MIT */
/* NBCSHIM_CHECK=1: whether the collective calls of all ranks match.
 *
 * A small allreduce of its own tells all ranks of each call; its operator compares what two groups
 * of ranks have called. It is nonblocking like the operation that it is for, which starts when the
 * check has passed, or else ends with an error on every rank. Checks have tags of their own and a
 * numbering of their own (the two struct nbc_context that are called guards), since the calls that
 * are compared may take different tags, or different numbers of them. */
#ifndef NBC_CHECK_H
#define NBC_CHECK_H

/* At init, where the variable is set. From then on each launch has a check for its prerequisite.
 * Returns an MPI error code. */
int nbc_check_setup(void);

/* The last tag that operations and signals may have, where `tag_ub` is the MPI's. */
int nbc_check_tag_limit(int tag_ub);

/* At finalize. Nothing happens without a setup. */
void nbc_check_cleanup(void);

#endif
