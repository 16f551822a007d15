/* SPDX-License-Identifier: MIT */
#include "base/tag_space.h"

#include "ranges.h"

struct nbc_tag_space nbc_tags_whole, nbc_tags_range;
int nbc_range_size, nbc_nranges, nbc_tag_ub;

int nbc_range_tag(int range)
{
    return range * nbc_range_size;
}

/* Half of the tags serve nonblocking and blocking operations, the other half persistent operations.
 * Of these, a program does not hold more than this number at once. */
enum { PERSISTENT_TAGS = 65536 };

static void divide_whole(int tag_ub)
{
    int persistent = tag_ub / 2 + 1;
    if (tag_ub - persistent >= PERSISTENT_TAGS)
        persistent = tag_ub - PERSISTENT_TAGS + 1;
    int ring = 1;
    while (ring <= persistent / 4)
        ring *= 2;
    nbc_tags_whole = (struct nbc_tag_space){
        .ring = ring,
        .persistent = persistent,
        .npersistent = tag_ub - persistent + 1,
        .signal = tag_ub + 1,
    };
}

/* More ranges than MPIs have communicators are of no use, and with fewer than a hundred, duplicates
 * are as good. At most 64 operations of a queue are started at once, so short rings serve. */
enum { LEAST_RANGES = 128, LARGEST = 4096, SMALLEST = 512 };

static void divide_ranges(int tag_ub)
{
    int size = LARGEST;
    while (size > SMALLEST && tag_ub / size < NBC_MOST_RANGES - 1)
        size /= 2;
    int n = tag_ub / size + (tag_ub % size == size - 1);
    int ring = size / 8, persistent = 2 * ring + 1;
    nbc_range_size = size;
    nbc_nranges = n < LEAST_RANGES ? 0 : n < NBC_MOST_RANGES ? n : NBC_MOST_RANGES;
    nbc_tags_range = (struct nbc_tag_space){
        .ring = ring,
        .persistent = persistent,
        .npersistent = size - persistent,
        .signal = 2 * ring,
    };
}

void nbc_tag_space_divide(int tag_ub)
{
    nbc_tag_ub = tag_ub;
    divide_whole(tag_ub);
    divide_ranges(tag_ub);
}
