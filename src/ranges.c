/* SPDX-License-Identifier: MIT */
#include "ranges.h"

#include <stddef.h>

#include "hash.h"

enum { BITS = 64 };

bool nbc_ranges_on(const struct nbc_ranges *r)
{
    return r->nwindows > 0;
}

bool nbc_range_is_used(const struct nbc_ranges *r, int range)
{
    return r->used[range / BITS] >> range % BITS & 1;
}

static void range_take(struct nbc_ranges *r, int range)
{
    r->used[range / BITS] |= UINT64_C(1) << range % BITS;
}

void nbc_range_give(struct nbc_ranges *r, int range)
{
    r->used[range / BITS] &= ~(UINT64_C(1) << range % BITS);
}

void nbc_ranges_begin(struct nbc_ranges *r, int n)
{
    *r = (struct nbc_ranges){.nwindows = (n + BITS - 1) / BITS};
    for (int i = n; i < r->nwindows * BITS; i++)
        range_take(r, i);
    range_take(r, NBC_WORLD_RANGE);
}

void nbc_ranges_end(struct nbc_ranges *r)
{
    r->nwindows = 0;
}

/* The first attempt looks in one window. Each of the others looks in a block of windows, and all
 * blocks together are all windows. */
static bool search_advance(struct nbc_range_search *s, int nwindows)
{
    int nblocks = (nwindows + NBC_RANGE_WORDS - 1) / NBC_RANGE_WORDS;
    uint64_t hash = nbc_hash_pair(s->key, 0);
    if (s->attempt > nblocks)
        return false;
    s->first = (int)(hash % (unsigned)nwindows);
    s->nwindows = 1;
    if (s->attempt > 0) {
        /* mutants: - for +: the same blocks in another order */
        int block = (int)((hash + (unsigned)s->attempt) % (unsigned)nblocks);
        s->first = block * NBC_RANGE_WORDS;
        s->nwindows = nwindows - s->first < NBC_RANGE_WORDS ? nwindows - s->first : NBC_RANGE_WORDS;
    }
    s->attempt++;
    return true;
}

int nbc_ranges_offer(struct nbc_ranges *r, struct nbc_range_search *s,
                     uint64_t words[NBC_RANGE_WORDS])
{
    if (!nbc_ranges_on(r) || !search_advance(s, r->nwindows))
        return 0;
    for (int i = 0; i < s->nwindows; i++) {
        int w = s->first + i;
        words[i] = r->owner[w] ? 0 : ~r->used[w];
        if (!r->owner[w])
            r->owner[w] = s;
    }
    return s->nwindows;
}

int nbc_ranges_settle(struct nbc_ranges *r, const struct nbc_range_search *s, const uint64_t *all)
{
    int range = NBC_NO_RANGE;
    for (int i = s->nwindows - 1; i >= 0; i--) {
        int w = s->first + i;
        if (all && all[i])
            range = w * BITS + __builtin_ctzll(all[i]);
        if (r->owner[w] == s)
            r->owner[w] = NULL;
    }
    if (range < 0 || !nbc_ranges_on(r)) /* mutants: <= for <: range 0 is offered to nobody */
        return NBC_NO_RANGE;
    range_take(r, range);
    return range;
}

/* With fewer free ranges in the window than this, a search takes none to spare. */
enum { MOST_SPARE = 16, PLENTY = 32 };

/* The window of `range`, which the search has found; `all` are its ranges that all ranks offered.
 */
static void spare_fill(struct nbc_ranges *r, struct nbc_spare_ranges *spare, int range,
                       uint64_t all)
{
    int n = spare->want;
    spare->want = n == 0 ? 1 : n < MOST_SPARE ? 2 * n : n;
    if (__builtin_popcountll(all) < PLENTY)
        return;
    spare->first = range - range % BITS;
    for (all &= all - 1; n > 0; n--, all &= all - 1)
        spare->left |= all & -all;
    r->used[range / BITS] |= spare->left;
}

int nbc_spare_take(struct nbc_spare_ranges *spare)
{
    if (!spare->left)
        return NBC_NO_RANGE;
    int range = spare->first + __builtin_ctzll(spare->left);
    spare->left &= spare->left - 1;
    return range;
}

void nbc_spare_give(struct nbc_ranges *r, struct nbc_spare_ranges *spare)
{
    r->used[spare->first / BITS] &= ~spare->left;
    spare->left = 0;
}

int nbc_ranges_search(struct nbc_ranges *r, uint64_t key, nbc_words_and *and, void *where,
                      struct nbc_spare_ranges *spare, int *range)
{
    struct nbc_range_search s = {.key = key};
    uint64_t mine[NBC_RANGE_WORDS], all[NBC_RANGE_WORDS];
    *range = NBC_NO_RANGE;
    /* mutants: <= for <: range 0 is offered to nobody */
    for (int n; *range < 0 && (n = nbc_ranges_offer(r, &s, mine)) > 0;) {
        int error = and(where, mine, all, n);
        *range = nbc_ranges_settle(r, &s, error ? NULL : all);
        if (error)
            return error;
        if (*range >= 0 && spare)
            spare_fill(r, spare, *range, all[*range / BITS - s.first]);
    }
    return 0;
}
