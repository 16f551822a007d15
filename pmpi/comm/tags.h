/* SPDX-License-Identifier: MIT */
/* Tags of persistent operations. Each holds one from its creation to its MPI_Request_free. Ranks
 * free requests at different times, so the sets of free tags differ between ranks. All ranks
 * therefore take the next tag of a set on which they have agreed, and agree again when that set is
 * used up. At first all tags are free, and no agreement is needed. Under the lock. Local. */
#ifndef NBC_TAGS_H
#define NBC_TAGS_H

#include <stdbool.h>
#include <stdint.h>

enum { NBC_TAG_WORD = 64 };

/* Tags first … first + n − 1, the span of a range of tags (ranges.h). */
struct nbc_tag_span {
    int first, n;
};

struct nbc_tags {
    struct nbc_tag_span *span;
    int nspans;
    int n;    /* tags of all spans, by which the sets below are indexed */
    int next; /* index of the tag to be tried next */
    struct nbc_tag_word {
        uint64_t agreed; /* bit set: free on all ranks at the agreement; the same on all ranks */
        uint64_t held;   /* bit set: held by this rank */
    } * word;
};

/* Creates a set of n tags from `first` on. NULL without memory. The caller frees it with
 * nbc_tags_free, which accepts NULL. */
struct nbc_tags *nbc_tags_new(int first, int n);
void nbc_tags_free(struct nbc_tags *t);

/* Adds a span of tags, which are free on all ranks. Returns false without memory. */
bool nbc_tags_add(struct nbc_tags *t, int first, int n);

/* The number of agreed tags that are left. */
int nbc_tags_left(const struct nbc_tags *t);

/* The number of a tag that was taken: from 0 on, the same on all ranks. */
int nbc_tags_number(const struct nbc_tags *t, int tag);

/* Takes the next agreed tag that is left. Returns −1 if none is left: the ranks must agree
 * again. */
int nbc_tags_take(struct nbc_tags *t);

/* Returns a tag that this rank has taken. */
void nbc_tags_give(struct nbc_tags *t, int tag);

/* The number of words of a set, for the agreement. */
int nbc_tags_words(const struct nbc_tags *t);

/* Writes the set of tags that are free on this rank. The agreement is the bitwise AND of the sets
 * of all ranks. */
void nbc_tags_offer(const struct nbc_tags *t, uint64_t *words);

/* Sets the agreed tags. */
void nbc_tags_agree(struct nbc_tags *t, const uint64_t *words);

#endif
