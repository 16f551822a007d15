/* SPDX-License-Identifier: MIT */
#include "base/tag_space.h"

int nbc_tag_ub, nbc_tag_ring, nbc_tag_blocking, nbc_tag_persistent, nbc_tag_signal;

/* Half of the tags serve nonblocking and blocking operations, the other half persistent operations.
 * Of these, a program does not hold more than this number at once. */
enum { PERSISTENT_TAGS = 65536 };

void nbc_tag_space_divide(int tag_ub)
{
    nbc_tag_ub = tag_ub;
    nbc_tag_signal = tag_ub + 1;
    nbc_tag_persistent = tag_ub / 2 + 1;
    if (tag_ub - nbc_tag_persistent >= PERSISTENT_TAGS)
        nbc_tag_persistent = tag_ub - PERSISTENT_TAGS + 1;
    nbc_tag_ring = nbc_tag_persistent / 2;
    nbc_tag_blocking = nbc_tag_ring;
}
