/* SPDX-License-Identifier: MIT */
#include "comm/ranges.h"

#include <stddef.h>

#include "base/lock.h"
#include "base/tag_space.h"
#include "below/next.h"

enum { BITS = 64, MOST_WINDOWS = 1024 };

static bool on;
static int nwindows;
static uint64_t
    used[MOST_WINDOWS]; /* the ranges that this rank uses, and those that do not exist */
static const struct nbc_range_search *owner[MOST_WINDOWS]; /* to which a window is on offer */

bool nbc_ranges_on(void)
{
    return on;
}

int nbc_range_tag(int range)
{
    return range * nbc_range_size;
}

static void range_take(int range)
{
    nbc_assert(!(used[range / BITS] >> range % BITS & 1));
    used[range / BITS] |= UINT64_C(1) << range % BITS;
}

void nbc_range_give(int range)
{
    nbc_assert_locked();
    nbc_assert(used[range / BITS] >> range % BITS & 1);
    used[range / BITS] &= ~(UINT64_C(1) << range % BITS);
}

void nbc_ranges_setup(void)
{
    on = nbc_nranges > 0;
    nwindows = (nbc_nranges + BITS - 1) / BITS;
    for (int w = 0; w < nwindows; w++) {
        used[w] = 0;
        owner[w] = NULL;
    }
    for (int i = nbc_nranges; i < nwindows * BITS; i++)
        range_take(i);
    if (on)
        range_take(NBC_WORLD_RANGE);
}

void nbc_ranges_cleanup(void)
{
    on = false;
}

/* The finalizer of splitmix64. */
uint64_t nbc_range_key(uint64_t key, uint64_t also)
{
    uint64_t x = key + (also + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* The first attempt looks in one window. Each of the others looks in a block of windows, and all
 * blocks together are all windows. */
static bool search_advance(struct nbc_range_search *s)
{
    int nblocks = (nwindows + NBC_RANGE_WORDS - 1) / NBC_RANGE_WORDS;
    uint64_t hash = nbc_range_key(s->key, 0);
    if (s->attempt > nblocks)
        return false;
    s->first = (int)(hash % (unsigned)nwindows);
    s->nwindows = 1;
    if (s->attempt > 0) {
        int block = (int)((hash + (unsigned)s->attempt) % (unsigned)nblocks);
        s->first = block * NBC_RANGE_WORDS;
        s->nwindows = nwindows - s->first < NBC_RANGE_WORDS ? nwindows - s->first : NBC_RANGE_WORDS;
    }
    s->attempt++;
    return true;
}

int nbc_ranges_offer(struct nbc_range_search *s, uint64_t words[NBC_RANGE_WORDS])
{
    nbc_assert_locked();
    if (!on || !search_advance(s))
        return 0;
    for (int i = 0; i < s->nwindows; i++) {
        int w = s->first + i;
        words[i] = owner[w] ? 0 : ~used[w];
        if (!owner[w])
            owner[w] = s;
    }
    return s->nwindows;
}

int nbc_ranges_settle(struct nbc_range_search *s, const uint64_t *all)
{
    int range = NBC_NO_RANGE;
    nbc_assert_locked();
    for (int i = s->nwindows - 1; i >= 0; i--) {
        int w = s->first + i;
        if (all && all[i])
            range = w * BITS + __builtin_ctzll(all[i]);
        if (owner[w] == s)
            owner[w] = NULL;
    }
    if (range < 0 || !on)
        return NBC_NO_RANGE;
    range_take(range);
    return range;
}

int nbc_ranges_search(uint64_t key, nbc_words_and *and, void *where, int *range)
{
    struct nbc_range_search s = {.key = key};
    uint64_t mine[NBC_RANGE_WORDS], all[NBC_RANGE_WORDS];
    *range = NBC_NO_RANGE;
    for (int n; *range < 0 && (n = nbc_ranges_offer(&s, mine)) > 0;) {
        int error = and(where, mine, all, n);
        *range = nbc_ranges_settle(&s, error ? NULL : all);
        if (error)
            return error;
    }
    return MPI_SUCCESS;
}
