/* SPDX-License-Identifier: MIT */
/* NBCSHIM_CHECK=1 checks that the collective calls of all ranks match.
 *
 * Each call is checked by a small nonblocking allreduce, whose operator compares the calls of two
 * groups of ranks. The operation of the call starts when its check has passed; otherwise it
 * completes with an error on every rank. Checks have tags and numbers of their own, in two struct
 * nbc_context called check contexts, because mismatched calls may take different tags, or a
 * different number of tags. */
#ifndef NBC_CHECK_H
#define NBC_CHECK_H

/* Called at init if the variable is set. Each operation launched later has a check as its
 * start condition. Without the lock. Returns an MPI error code. */
int nbc_check_setup(void);

/* The last tag that operations and signals may have, if that of the MPI is `tag_ub`. */
int nbc_check_tag_limit(int tag_ub);

/* Called at finalize. Does nothing without a setup. Without the lock. */
void nbc_check_cleanup(void);

#endif
