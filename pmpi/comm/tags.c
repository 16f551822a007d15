/* SPDX-License-Identifier: MIT */
#include "comm/tags.h"

#include <stdlib.h>
#include <string.h>

int nbc_tags_words(const struct nbc_tags *t)
{
    return (t->n + NBC_TAG_WORD - 1) / NBC_TAG_WORD;
}

struct nbc_tags *nbc_tags_new(int first, int n)
{
    struct nbc_tags *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->first = first;
    t->n = n;
    size_t words = nbc_tags_words(t);
    t->agreed = malloc(words * sizeof *t->agreed);
    t->held = calloc(words, sizeof *t->held);
    if (!t->agreed || !t->held) {
        nbc_tags_free(t);
        return NULL;
    }
    memset(t->agreed, 0xff, words * sizeof *t->agreed);
    return t;
}

void nbc_tags_free(struct nbc_tags *t)
{
    if (!t)
        return;
    free(t->agreed);
    free(t->held);
    free(t);
}

static uint64_t tag_bit(int i)
{
    return UINT64_C(1) << i % NBC_TAG_WORD;
}

int nbc_tags_take(struct nbc_tags *t)
{
    while (t->next < t->n && !(t->agreed[t->next / NBC_TAG_WORD] & tag_bit(t->next)))
        t->next++;
    if (t->next == t->n)
        return -1;
    int i = t->next++;
    t->held[i / NBC_TAG_WORD] |= tag_bit(i);
    return t->first + i;
}

void nbc_tags_give(struct nbc_tags *t, int tag)
{
    int i = tag - t->first;
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
