/* SPDX-License-Identifier: MIT */
#include "base/tag_space.h"

#include <stdlib.h>

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

/* --- of persistent operations ------------------------------------------------------------------
 */

static int words_of(int n)
{
    return (n + NBC_TAG_WORD - 1) / NBC_TAG_WORD;
}

int nbc_tags_words(const struct nbc_tags *t)
{
    return words_of(t->n);
}

static uint64_t tag_bit(int i)
{
    return UINT64_C(1) << i % NBC_TAG_WORD;
}

bool nbc_tags_add(struct nbc_tags *t, int first, int n)
{
    struct nbc_tag_span *span = realloc(t->span, (t->nspans + 1) * sizeof *span);
    struct nbc_tag_word *word = realloc(t->word, words_of(t->n + n) * sizeof *word);
    t->span = span ? span : t->span;
    t->word = word ? word : t->word;
    if (!span || !word)
        return false;
    int before = t->n;
    t->span[t->nspans++] = (struct nbc_tag_span){first, n};
    t->n += n;
    for (int i = before; i < words_of(t->n) * NBC_TAG_WORD; i++) {
        t->word[i / NBC_TAG_WORD].agreed |= tag_bit(i);
        t->word[i / NBC_TAG_WORD].held &= ~tag_bit(i);
    }
    return true;
}

struct nbc_tags *nbc_tags_new(int first, int n)
{
    struct nbc_tags *t = calloc(1, sizeof *t);
    if (t && nbc_tags_add(t, first, n))
        return t;
    nbc_tags_free(t); /* mutants: leave a call out: memory has run out */
    return NULL;
}

void nbc_tags_free(struct nbc_tags *t)
{
    if (!t)
        return;
    free(t->span);
    free(t->word);
    free(t);
}

static bool tag_is_agreed(const struct nbc_tags *t, int i)
{
    return t->word[i / NBC_TAG_WORD].agreed & tag_bit(i);
}

int nbc_tags_left(const struct nbc_tags *t)
{
    int left = 0;
    for (int i = t->next; i < t->n; i++)
        left += tag_is_agreed(t, i);
    return left;
}

int nbc_tags_number(const struct nbc_tags *t, int tag)
{
    int before = 0;
    const struct nbc_tag_span *span = t->span;
    for (; tag < span->first || tag >= span->first + span->n; span++)
        before += span->n;
    return before + tag - span->first;
}

int nbc_tags_take(struct nbc_tags *t)
{
    while (t->next < t->n && !tag_is_agreed(t, t->next))
        t->next++;
    if (t->next == t->n)
        return -1;
    int i = t->next++;
    t->word[i / NBC_TAG_WORD].held |= tag_bit(i);
    const struct nbc_tag_span *span = t->span;
    for (; i >= span->n; span++)
        i -= span->n;
    return span->first + i;
}

void nbc_tags_give(struct nbc_tags *t, int tag)
{
    int i = nbc_tags_number(t, tag);
    t->word[i / NBC_TAG_WORD].held &= ~tag_bit(i);
}

void nbc_tags_offer(const struct nbc_tags *t, uint64_t *words)
{
    for (int i = 0; i < nbc_tags_words(t); i++)
        words[i] = ~t->word[i].held;
}

void nbc_tags_agree(struct nbc_tags *t, const uint64_t *words)
{
    for (int i = 0; i < nbc_tags_words(t); i++)
        t->word[i].agreed = words[i];
    t->next = 0;
}
