/* SPDX-License-Identifier: MIT */
#include "comm/tags.h"

#include <stdlib.h>
#include <string.h>

static int words_of(int n)
{
    return (n + NBC_TAG_WORD - 1) / NBC_TAG_WORD;
}

int nbc_tags_words(const struct nbc_tags *t)
{
    return words_of(t->n);
}

/* Makes room for n tags in one of the sets. */
static bool set_widen(uint64_t **set, int n)
{
    uint64_t *wider = realloc(*set, words_of(n) * sizeof *wider);
    if (wider)
        *set = wider;
    return wider;
}

static uint64_t tag_bit(int i)
{
    return UINT64_C(1) << i % NBC_TAG_WORD;
}

bool nbc_tags_add(struct nbc_tags *t, int first, int n)
{
    int before = t->n;
    struct nbc_tag_span *span = realloc(t->span, (t->nspans + 1) * sizeof *span);
    if (!span)
        return false;
    t->span = span;
    if (!set_widen(&t->agreed, before + n) || !set_widen(&t->held, before + n))
        return false;
    t->span[t->nspans++] = (struct nbc_tag_span){first, n};
    t->n += n;
    for (int i = before; i < words_of(t->n) * NBC_TAG_WORD; i++) {
        t->agreed[i / NBC_TAG_WORD] |= tag_bit(i);
        t->held[i / NBC_TAG_WORD] &= ~tag_bit(i);
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
    free(t->agreed);
    free(t->held);
    free(t);
}

static bool tag_is_agreed(const struct nbc_tags *t, int i)
{
    return t->agreed[i / NBC_TAG_WORD] & tag_bit(i);
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
    t->held[i / NBC_TAG_WORD] |= tag_bit(i);
    const struct nbc_tag_span *span = t->span;
    for (; i >= span->n; span++)
        i -= span->n;
    return span->first + i;
}

void nbc_tags_give(struct nbc_tags *t, int tag)
{
    int i = nbc_tags_number(t, tag);
    t->held[i / NBC_TAG_WORD] &= ~tag_bit(i);
}

void nbc_tags_offer(const struct nbc_tags *t, uint64_t *words)
{
    for (int i = 0; i < nbc_tags_words(t); i++)
        words[i] = ~t->held[i];
}

void nbc_tags_agree(struct nbc_tags *t, const uint64_t *words)
{
    memcpy(t->agreed, words, nbc_tags_words(t) * sizeof *words);
    t->next = 0;
}
