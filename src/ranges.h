/* SPDX-License-Identifier: MIT */
/* Ranges of tags. The messages of most communicators travel on one hidden communicator, the
 * duplicate of MPI_COMM_WORLD, and each communicator has a range of its tags for itself. Its ranks
 * agree on the range when it is created: each rank of the parent offers ranges that it does not
 * use, and they take the first one that all offer (a bitwise AND). So two communicators with a rank
 * in common never have the same range at the same time, while the parts of a split may.
 *
 * Why no message of an earlier communicator can reach a later one with the same range: take two
 * ranks that are in both. Each has offered the range after it gave it back, that is after all its
 * operations in the earlier communicator were complete, and with them its receives: all messages
 * between the two have been matched. The later communicator's messages are sent after the
 * agreement, and its receives posted after it. If a message of an operation may be left over
 * (enum nbc_delivery of pmpi/), the rank keeps the range forever. It gives the range back if the
 * constructor fails: the MPI then has made no communicator on any rank, or else a program may not
 * go on (MPI-4.1, section 9.3). A rank that leaves the constructor early may start operations at
 * once; their messages wait at the others, which receive from this hidden communicator only with
 * the ranks and tags of their own operations.
 *
 * A rank may take part in several searches at once, in several threads or by MPI_Comm_idup. It
 * offers a range to one of them at a time. So that each search finds ranges, searches begin in
 * different windows of 64 ranges; a key that all ranks of the search know determines which.
 *
 * A parent of many communicators keeps spare ranges: its searches take some more than they need, on
 * all ranks the same, and the next constructors take those in turn and need no search. They are in
 * use as far as other searches can tell.
 *
 * The caller lets one thread in at a time. */
#ifndef NBC_RANGES_H
#define NBC_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NBC_NO_RANGE = -1,
    NBC_WORLD_RANGE = 0, /* of MPI_COMM_WORLD itself */
    NBC_MOST_RANGES = 65536,
    NBC_RANGE_WORDS = 64 /* most words of an offer; a word is the set of free ranges of a window */
};

/* The ranges of a process. */
struct nbc_ranges {
    int nwindows;                        /* 0: no range is given to anyone any more */
    uint64_t used[NBC_MOST_RANGES / 64]; /* those that this process uses, or that do not exist */
    const struct nbc_range_search *owner[NBC_MOST_RANGES / 64]; /* to which a window is on offer */
};

/* A search: attempts, until one finds a range. Initialized with its key, the rest zero. */
struct nbc_range_search {
    uint64_t key;
    int attempt;
    int first, nwindows; /* the windows on offer */
};

/* Spare ranges of one parent, the same on all its ranks. All zero: none yet. */
struct nbc_spare_ranges {
    uint64_t left; /* of a window of 64 ranges */
    int first;     /* range of the window */
    int want;      /* how many the next search takes, which doubles each time */
};

/* Begins with the ranges 0 ... n - 1, n > 0, all of them free except that of MPI_COMM_WORLD. */
void nbc_ranges_begin(struct nbc_ranges *r, int n);

/* From now on no search finds a range. Ranges in use are given back as before. */
void nbc_ranges_end(struct nbc_ranges *r);

/* Whether searches may find a range. */
bool nbc_ranges_on(const struct nbc_ranges *r);

/* The next attempt: writes the offer of this process. Returns its number of words, the same on all
 * ranks of the search; 0 if there is no further attempt. */
int nbc_ranges_offer(struct nbc_ranges *r, struct nbc_range_search *s,
                     uint64_t words[NBC_RANGE_WORDS]);

/* Ends the attempt. all: the AND of the offers of all ranks; NULL if it is not known because of an
 * error. Takes the first range of it and returns its number, or NBC_NO_RANGE if there is none. */
int nbc_ranges_settle(struct nbc_ranges *r, const struct nbc_range_search *s, const uint64_t *all);

/* The bitwise AND of the words of all ranks of a search. Returns 0 or an error. Other searches may
 * take place meanwhile. */
typedef int nbc_words_and(void *where, const uint64_t *mine, uint64_t *all, int words);

/* The whole search. Sets *range to NBC_NO_RANGE if there is none, on all ranks. Returns 0 or the
 * error of the AND. Fills *spare, which has none left, if many are free; spare may be NULL. */
int nbc_ranges_search(struct nbc_ranges *r, uint64_t key, nbc_words_and *and, void *where,
                      struct nbc_spare_ranges *spare, int *range);

/* Takes the next spare range; NBC_NO_RANGE if none is left. */
int nbc_spare_take(struct nbc_spare_ranges *spare);

/* Gives all spare ranges back. */
void nbc_spare_give(struct nbc_ranges *r, struct nbc_spare_ranges *spare);

/* Gives a range back, which must be in use. */
void nbc_range_give(struct nbc_ranges *r, int range);
bool nbc_range_is_used(const struct nbc_ranges *r, int range);

#endif
