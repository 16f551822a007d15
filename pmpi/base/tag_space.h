/* SPDX-License-Identifier: MIT */
/* The division of the tags of a hidden communicator. */
#ifndef NBC_TAG_SPACE_H
#define NBC_TAG_SPACE_H

/* Tags 0 ... nbc_tag_ring − 1 serve nonblocking operations in turn; as many tags from
 * nbc_tag_blocking on serve blocking operations, and tags nbc_tag_persistent ... nbc_tag_ub
 * persistent operations. nbc_tag_signal is the tag of signals between two ranks (signal.h), and the
 * tags after it are those of checks (check.h). Set at init, afterwards only read. */
extern int nbc_tag_ub, nbc_tag_ring, nbc_tag_blocking, nbc_tag_persistent, nbc_tag_signal;

/* Divides the tags. tag_ub: the largest tag for operations; at least tag_ub + 1 must be a valid
 * tag. */
void nbc_tag_space_divide(int tag_ub);

#endif
