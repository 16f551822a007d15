/* SPDX-License-Identifier: MIT */
#include "comm/tags.h"

#include <stdlib.h>

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
