/* SPDX-License-Identifier: MIT */
/* How the tags of a hidden communicator are divided. */
#ifndef NBC_TAG_SPACE_H
#define NBC_TAG_SPACE_H

/* Tags 0 … nbc_tag_ring − 1 serve nonblocking operations in turn, nbc_tag_ring … nbc_tag_ub
 * persistent operations, nbc_tag_signal signals between two ranks (signal.h), and the tags after
 * that one checks (check.h). Set at init, read only afterwards. */
extern int nbc_tag_ub, nbc_tag_ring, nbc_tag_signal;

/* Divides the tags 0 … tag_ub + 1. */
void nbc_tag_space_divide(int tag_ub);

#endif
