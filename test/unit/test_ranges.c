/* SPDX-License-Identifier: MIT */
/* Ranges of tags: processes with ranges of their own agree on one for each communicator, and no two
 * communicators with a process in common have the same. */
#include "hash.h"
#include "ranges.h"

#include <string.h>

#include "unit.h"

enum { MOST_PROCESSES = 6 };

static struct nbc_ranges process[MOST_PROCESSES];

/* The processes of a communicator, as bits. */
typedef unsigned group_set;

static bool is_in(group_set group, int p)
{
    return group >> p & 1;
}

static void all_begin(int n)
{
    for (int p = 0; p < MOST_PROCESSES; p++)
        nbc_ranges_begin(&process[p], n);
}

/* A search by all processes of a group, each of which sees only its own ranges and the AND. */
struct search {
    group_set group;
    struct nbc_range_search of[MOST_PROCESSES];
    uint64_t all[NBC_RANGE_WORDS];
};

static struct search search_begin(group_set group, uint64_t key)
{
    struct search s = {.group = group};
    for (int p = 0; p < MOST_PROCESSES; p++)
        s.of[p].key = key;
    return s;
}

/* Returns whether there is a further attempt. */
static bool search_offers(struct search *s)
{
    int words = -1;
    memset(s->all, 0xff, sizeof s->all);
    for (int p = 0; p < MOST_PROCESSES; p++) {
        uint64_t mine[NBC_RANGE_WORDS];
        if (!is_in(s->group, p))
            continue;
        int n = nbc_ranges_offer(&process[p], &s->of[p], mine);
        need(words < 0 || n == words);
        words = n;
        for (int i = 0; i < n; i++)
            s->all[i] &= mine[i];
    }
    return words > 0;
}

static int search_settles(struct search *s, bool failed)
{
    int range = -2;
    for (int p = 0; p < MOST_PROCESSES; p++) {
        if (!is_in(s->group, p))
            continue;
        int found = nbc_ranges_settle(&process[p], &s->of[p], failed ? NULL : s->all);
        need(range == -2 || found == range);
        range = found;
    }
    return range;
}

static int find(group_set group, uint64_t key)
{
    struct search s = search_begin(group, key);
    int range = NBC_NO_RANGE;
    while (range < 0 && search_offers(&s))
        range = search_settles(&s, false);
    return range;
}

static void give(group_set group, int range)
{
    for (int p = 0; p < MOST_PROCESSES; p++)
        if (is_in(group, p))
            nbc_range_give(&process[p], range);
}

/* Whether the range is free in each process of the group, and not that of MPI_COMM_WORLD. */
static bool is_free(group_set group, int range)
{
    for (int p = 0; p < MOST_PROCESSES; p++)
        if (is_in(group, p) && nbc_range_is_used(&process[p], range))
            return false;
    return range != NBC_WORLD_RANGE;
}

static const int numbers[] = {1,    2,    63,   64,   65,    127,   128,  129,
                              1000, 4095, 4096, 4097, 65472, 65535, 65536};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

UNIT(each_range_is_found_once, .times = NUMBERS)
{
    int n = numbers[_i];
    bool *seen = calloc((size_t)n, sizeof *seen);
    need(seen);
    all_begin(n);
    for (int i = 1; i < n; i++) {
        int range = find(1, (uint64_t)i);
        need(range > NBC_WORLD_RANGE && range < n && !seen[range]);
        seen[range] = true;
    }
    for (uint64_t key = 0; key < 50; key++)
        ck_assert_int_eq(find(1, key), NBC_NO_RANGE);
    free(seen);
}

UNIT(the_only_free_range_is_found, .times = NUMBERS)
{
    int n = numbers[_i];
    all_begin(n);
    while (find(1, 0) >= 0)
        continue;
    for (int range = 1; range < n; range += 1 + n / 100) {
        give(1, range);
        ck_assert(!nbc_range_is_used(&process[0], range));
        ck_assert_int_eq(find(1, (uint64_t)range), range);
        ck_assert(nbc_range_is_used(&process[0], range));
    }
}

/* Communicators of random groups come and go. The ranges are few, so that they run out at times. */
UNIT(communicators_with_a_process_in_common_differ)
{
    enum { LIVE = 500, STEPS = 20000, RANGES = 133 };
    static struct {
        group_set group; /* 0: none */
        int range;
    } live[LIVE];
    int failures = 0;
    srand(1);
    all_begin(RANGES);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % LIVE;
        if (live[i].group) {
            give(live[i].group, live[i].range);
            live[i].group = 0;
            continue;
        }
        group_set group = 1 + (unsigned)rand() % ((1 << MOST_PROCESSES) - 1);
        int range = find(group, (uint64_t)rand());
        if (range < 0) {
            failures++;
            for (int free_one = 0; free_one < RANGES; free_one++)
                need(!is_free(group, free_one));
            continue;
        }
        need(range > NBC_WORLD_RANGE && range < RANGES);
        for (int k = 0; k < LIVE; k++)
            need(!(live[k].group & group) || live[k].range != range);
        live[i].group = group;
        live[i].range = range;
    }
    ck_assert_int_gt(failures, STEPS / 100);
    ck_assert_int_lt(failures, STEPS / 2);
}

/* Of the searches of a process, one has a window on offer. */
UNIT(searches_at_once_find_different_ranges)
{
    all_begin(128);
    for (uint64_t key = 0; key < 100; key++) {
        struct search first = search_begin(3, key), second = search_begin(6, key);
        need(search_offers(&first));
        need(search_offers(&second));
        int one = search_settles(&first, false);
        ck_assert_int_ge(one, 1);
        ck_assert_int_eq(search_settles(&second, false), NBC_NO_RANGE);
        need(search_offers(&second));
        int other = search_settles(&second, false);
        ck_assert_int_ge(other, 1);
        ck_assert_int_ne(one, other);
        give(3, one);
        give(6, other);
    }
}

UNIT(a_search_that_fails_takes_nothing)
{
    all_begin(1000);
    for (uint64_t key = 0; key < 100; key++) {
        struct search s = search_begin(3, key);
        need(search_offers(&s));
        ck_assert_int_eq(search_settles(&s, true), NBC_NO_RANGE);
        int range = find(3, key);
        struct search again = search_begin(3, key);
        need(search_offers(&again)); /* the window is on offer again, in its first attempt */
        give(3, range);
        ck_assert_int_ge(search_settles(&again, false), 1);
        all_begin(1000);
    }
}

/* The other ranks of a search: in which attempt they offer all ranges, and in which one fails. */
struct others {
    int offer, fail, calls;
};

static int words_and(void *where, const uint64_t *mine, uint64_t *all, int words)
{
    struct others *others = where;
    ck_assert_int_gt(words, 0);
    if (++others->calls == others->fail)
        return 7;
    for (int i = 0; i < words; i++)
        all[i] = others->calls == others->offer ? mine[i] : 0;
    return 0;
}

UNIT(a_search_goes_on_until_a_range_is_found)
{
    struct others third = {.offer = 3}, never = {0}, failing = {.fail = 2};
    int range = 5;
    all_begin(65536);
    ck_assert_int_eq(nbc_ranges_search(&process[0], 1, words_and, &third, NULL, &range), 0);
    ck_assert_int_eq(third.calls, 3);
    ck_assert(range > NBC_WORLD_RANGE && nbc_range_is_used(&process[0], range));
    ck_assert_int_eq(nbc_ranges_search(&process[0], 1, words_and, &never, NULL, &range), 0);
    ck_assert_int_eq(never.calls, 1 + 65536 / 64 / NBC_RANGE_WORDS);
    ck_assert_int_eq(range, NBC_NO_RANGE);
    ck_assert_int_eq(nbc_ranges_search(&process[0], 1, words_and, &failing, NULL, &range), 7);
    ck_assert_int_eq(failing.calls, 2);
    ck_assert_int_eq(range, NBC_NO_RANGE);
}

/* The AND of others that offer nothing: a search ends after each window has been looked at. */
UNIT(a_search_looks_at_each_window, .times = NUMBERS)
{
    int n = numbers[_i];
    int nwindows = (n + 63) / 64;
    int nblocks = (nwindows + NBC_RANGE_WORDS - 1) / NBC_RANGE_WORDS;
    all_begin(n);
    for (uint64_t key = 0; key < 20; key++) {
        static const uint64_t nothing[NBC_RANGE_WORDS];
        bool seen[1024] = {false};
        uint64_t mine[NBC_RANGE_WORDS];
        struct nbc_range_search s = {.key = key};
        int attempts = 0;
        for (int words; (words = nbc_ranges_offer(&process[0], &s, mine)) > 0; attempts++) {
            ck_assert_int_eq(words, s.nwindows);
            ck_assert(attempts > 0 || words == 1);
            ck_assert(s.first >= 0 && s.first + words <= nwindows);
            for (int i = 0; i < words && attempts > 0; i++) {
                need(!seen[s.first + i]);
                seen[s.first + i] = true;
            }
            ck_assert_int_eq(nbc_ranges_settle(&process[0], &s, nothing), NBC_NO_RANGE);
        }
        ck_assert_int_eq(attempts, 1 + nblocks);
        for (int w = 0; w < nwindows; w++)
            need(seen[w]);
    }
}

/* Searches with different keys seldom begin in the same window, or go on in the same order. */
UNIT(keys_spread_searches)
{
    enum { KEYS = 4096, WINDOWS = 1024 };
    static int first[WINDOWS], second[WINDOWS / NBC_RANGE_WORDS];
    uint64_t mine[NBC_RANGE_WORDS];
    all_begin(65536);
    for (uint64_t i = 0; i < KEYS; i++) {
        struct nbc_range_search s = {.key = nbc_hash_pair(i / 64, i % 64)};
        nbc_ranges_offer(&process[0], &s, mine);
        first[s.first]++;
        nbc_ranges_settle(&process[0], &s, NULL);
        nbc_ranges_offer(&process[0], &s, mine);
        second[s.first / NBC_RANGE_WORDS]++;
        nbc_ranges_settle(&process[0], &s, NULL);
    }
    for (int w = 0; w < WINDOWS; w++)
        ck_assert_int_le(first[w], 20); /* 4 in the mean */
    for (int b = 0; b < WINDOWS / NBC_RANGE_WORDS; b++)
        ck_assert(second[b] > 170 && second[b] < 350); /* 256 in the mean */
}

/* A parent of communicators, and what each of its processes has to spare. */
struct parent {
    group_set group;
    struct nbc_spare_ranges spare[MOST_PROCESSES];
};

/* A search as the other processes of the group see it: what they offer in each attempt. */
struct search_of_group {
    group_set group;
    uint64_t key;
    int attempt;
    const struct nbc_ranges *before; /* of all processes */
};

static int and_of_group(void *where, const uint64_t *mine, uint64_t *all, int words)
{
    struct search_of_group *g = where;
    memcpy(all, mine, (size_t)words * sizeof *all);
    for (int p = 0; p < MOST_PROCESSES; p++) {
        static struct nbc_ranges copy;
        struct nbc_range_search s = {.key = g->key};
        uint64_t offer[NBC_RANGE_WORDS];
        if (!is_in(g->group, p))
            continue;
        copy = g->before[p];
        for (int i = 0; i < g->attempt; i++) {
            nbc_ranges_offer(&copy, &s, offer);
            nbc_ranges_settle(&copy, &s, NULL);
        }
        need(nbc_ranges_offer(&copy, &s, offer) == words);
        for (int i = 0; i < words; i++)
            all[i] &= offer[i];
    }
    g->attempt++;
    return 0;
}

/* A constructor: the range of a child of all processes of the parent. */
static int child_range(struct parent *parent, uint64_t key, int *searches)
{
    static struct nbc_ranges before[MOST_PROCESSES];
    int range = -2;
    memcpy(before, process, sizeof before);
    for (int p = 0; p < MOST_PROCESSES; p++) {
        if (!is_in(parent->group, p))
            continue;
        struct search_of_group g = {.group = parent->group, .key = key, .before = before};
        int found = nbc_spare_take(&parent->spare[p]);
        if (found < 0) {
            need(nbc_ranges_search(&process[p], key, and_of_group, &g, &parent->spare[p], &found) ==
                 0);
            ++*searches;
        }
        need(range == -2 || found == range);
        need(found < 0 || nbc_range_is_used(&process[p], found));
        range = found;
    }
    return range;
}

static void parent_ends(struct parent *parent)
{
    for (int p = 0; p < MOST_PROCESSES; p++)
        nbc_spare_give(&process[p], &parent->spare[p]);
    *parent = (struct parent){.group = 1 + (unsigned)rand() % ((1 << MOST_PROCESSES) - 1)};
}

static int ranges_used(int p)
{
    int used = 0;
    for (int i = 0; i < process[p].nwindows; i++)
        used += __builtin_popcountll(process[p].used[i]);
    return used;
}

/* Parents and children of random groups come and go. Children of different parents with a process
 * in common differ, also in those that the parents have taken to spare, and none is lost. */
UNIT(spare_ranges_belong_to_one_parent)
{
    enum { PARENTS = 9, LIVE = 60, STEPS = 6000, RANGES = 640 };
    static struct parent parents[PARENTS];
    static struct {
        group_set group; /* 0: none */
        int range;
    } live[LIVE];
    int searches = 0, children = 0;
    srand(2);
    all_begin(RANGES);
    for (int i = 0; i < PARENTS; i++)
        parent_ends(&parents[i]);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % LIVE;
        struct parent *parent = &parents[rand() % PARENTS];
        if (rand() % 100 == 0)
            parent_ends(parent);
        if (live[i].group) {
            give(live[i].group, live[i].range);
            live[i].group = 0;
            continue;
        }
        int range = child_range(parent, (uint64_t)rand(), &searches);
        need(range > NBC_WORLD_RANGE && range < RANGES);
        for (int k = 0; k < LIVE; k++)
            need(!(live[k].group & parent->group) || live[k].range != range);
        live[i].group = parent->group;
        live[i].range = range;
        children += __builtin_popcount(parent->group);
    }
    ck_assert_int_lt(searches, children / 4);
    for (int i = 0; i < LIVE; i++)
        give(live[i].group, live[i].range);
    for (int i = 0; i < PARENTS; i++)
        parent_ends(&parents[i]);
    for (int p = 0; p < MOST_PROCESSES; p++)
        ck_assert_int_eq(ranges_used(p), 1);
}

/* Where few ranges are free, all of them are found: none is kept to spare. */
UNIT(few_ranges_are_not_spared)
{
    enum { RANGES = 64 };
    static struct parent parents[2];
    int searches = 0;
    all_begin(RANGES);
    parents[0] = (struct parent){.group = 1};
    parents[1] = (struct parent){.group = 3};
    for (int i = 1; i < RANGES / 2; i++)
        need(child_range(&parents[0], (uint64_t)i, &searches) > NBC_WORLD_RANGE);
    int spare = __builtin_popcountll(parents[0].spare[0].left);
    for (int i = RANGES / 2; i < RANGES - spare; i++) {
        need(child_range(&parents[1], (uint64_t)i, &searches) > NBC_WORLD_RANGE);
        ck_assert(parents[1].spare[0].left == 0);
    }
    ck_assert_int_eq(child_range(&parents[1], 1, &searches), NBC_NO_RANGE);
}

UNIT(after_the_end)
{
    all_begin(200);
    int range = find(1, 3);
    struct search s = search_begin(1, 4);
    need(nbc_ranges_on(&process[0]) && search_offers(&s));
    nbc_ranges_end(&process[0]);
    ck_assert(!nbc_ranges_on(&process[0]));
    ck_assert_int_eq(search_settles(&s, false), NBC_NO_RANGE);
    ck_assert_int_eq(find(1, 3), NBC_NO_RANGE);
    nbc_range_give(&process[0], range);
    nbc_ranges_begin(&process[0], 2);
    ck_assert_int_eq(find(1, 3), 1);
    ck_assert_int_eq(find(1, 3), NBC_NO_RANGE);
}
