/* SPDX-License-Identifier: MIT */
/* The tags of a hidden communicator: their division, for one communicator of the program, which has
 * all of them or a range (ranges.h of src/); and those of persistent operations. */
#ifndef NBC_TAG_SPACE_H
#define NBC_TAG_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Tags relative to the first tag of the space. */
struct nbc_tag_space {
    int ring;        /* number of the tags from 0 on, which nonblocking operations use in turn, and
                      * of those behind them, for blocking ones; a power of two */
    int signal;      /* the tag behind these, of signals between two ranks (barrier_before.h) */
    int npersistent; /* the number of those behind it, of persistent operations */
};

/* Set at init, afterwards only read. */
extern struct nbc_tag_space nbc_tags_whole; /* of a hidden communicator for one communicator */
extern struct nbc_tag_space nbc_tags_range; /* of a range */
extern int nbc_range_size, nbc_nranges;     /* tags in a range; number of ranges, may be 0 */
extern int nbc_tag_ub;

/* Of a receive that nobody sends, and of data that the MPI is to store, on nbc_self_comm. */
static inline int nbc_dummy_tag(void)
{
    return nbc_tag_ub + 2;
}

static inline int nbc_self_tag(void)
{
    return nbc_tag_ub + 3;
}

/* The first tag of a range. Local. */
int nbc_range_tag(int range);

/* Divides the tags. tag_ub: the largest tag for operations; those up to tag_ub + 3 must
 * be valid. */
void nbc_tag_space_divide(int tag_ub);

/* --- of persistent operations ------------------------------------------------------------------
 */

/* Each holds a tag from its creation to its MPI_Request_free. Ranks
 * free requests at different times, so the sets of free tags differ between ranks. All ranks
 * therefore take the next tag of a set on which they have agreed, and agree again when that set is
 * used up. At first all tags are free, and no agreement is needed. Under the lock. Local. */
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
