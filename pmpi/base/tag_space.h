/* SPDX-License-Identifier: MIT */
/* The division of the tags of a hidden communicator, for one communicator of the program: all its
 * tags, or a range of them (ranges.h of src/). */
#ifndef NBC_TAG_SPACE_H
#define NBC_TAG_SPACE_H

/* Tags relative to the first tag of the space. */
struct nbc_tag_space {
    int ring;        /* number of the tags from 0 on, which nonblocking operations use in turn, and
                      * of those behind them, for blocking ones; a power of two */
    int signal;      /* the tag behind these, of signals between two ranks (signal.h) */
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

#endif
