/* SPDX-License-Identifier: MIT */
#include "base/tag_space.h"

#include <stdint.h>

#include "ranges.h"

struct nbc_tag_space nbc_tags_whole, nbc_tags_range;
int nbc_range_size, nbc_nranges, nbc_tag_ub;

int nbc_range_tag(int range)
{
    return range * nbc_range_size;
}

/* A program does not hold more persistent operations of a communicator than this at once. */
enum { PERSISTENT_TAGS = 65536 };

/* Divides n tags, of which at most so many are in a ring. */
static struct nbc_tag_space divided(int64_t n, int64_t most)
{
    int ring = 1;
    while (2 * ring <= most)
        ring *= 2;
    int64_t left = n - 2 * ring - 1;
    return (struct nbc_tag_space){
        .ring = ring,
        .signal = 2 * ring,
        .npersistent = (int)(left < PERSISTENT_TAGS ? left : PERSISTENT_TAGS),
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
    int64_t n = ((int64_t)tag_ub + 1) / size;
    nbc_range_size = size;
    nbc_nranges = n < LEAST_RANGES ? 0 : n < NBC_MOST_RANGES ? (int)n : NBC_MOST_RANGES;
    nbc_tags_range = divided(size, size / 8);
}

void nbc_tag_space_divide(int tag_ub)
{
    nbc_tag_ub = tag_ub;
    nbc_tags_whole = divided((int64_t)tag_ub + 2, ((int64_t)tag_ub + 2) / 4);
    divide_ranges(tag_ub);
}
