/* SPDX-License-Identifier: MIT */
/* Tags of persistent operations: one each, from init to free. Ranks free at different times, so
 * which tags are free differs between ranks; all take the next of a set that they have agreed on,
 * and agree anew when it is used up. At first all are free: no agreement is needed then. */
#ifndef NBC_TAGS_H
#define NBC_TAGS_H

#include <stdbool.h>
#include <stdint.h>

enum { NBC_TAG_WORD = 64 };

struct nbc_tags {
    int first, n;     /* tags first … first + n − 1 */
    int next;         /* the next one of `agreed` to be looked at, counted from 0 */
    uint64_t *agreed; /* bit set: was free everywhere; the same on all ranks */
    uint64_t *held;   /* bit set: held by this rank */
};

/* NULL without memory. */
struct nbc_tags *nbc_tags_new(int first, int n);
void nbc_tags_free(struct nbc_tags *t);

/* Takes the next agreed tag, or returns −1: agree and try again. */
int nbc_tags_take(struct nbc_tags *t);
void nbc_tags_give(struct nbc_tags *t, int tag);

/* Number of words of the set, for the agreement. */
int nbc_tags_words(const struct nbc_tags *t);

/* Writes what this rank could offer; the agreement is the AND of all. */
void nbc_tags_offer(const struct nbc_tags *t, uint64_t *words);
void nbc_tags_agree(struct nbc_tags *t, const uint64_t *words);

#endif
