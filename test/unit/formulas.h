/* SPDX-License-Identifier: MIT */
/* The costs in the comments of the algorithms, as formulas. */
#ifndef NBC_TEST_FORMULAS_H
#define NBC_TEST_FORMULAS_H

#include "cases.h"

struct at {
    int64_t P, R; /* number of ranks; of ranks of the remote group */
    int64_t n;    /* bytes of a block, or of the vector */
    int64_t segment;
    enum nbc_coll coll;
    const struct world *w;
};

/* The numbers of ranks for which `rounds` and `most` are exact; for others they are bounds. */
enum exact { ALWAYS, POWERS_OF_2, POWERS_OF_4, BOUND };

enum { UNKNOWN = -1 }; /* the comment gives no number */

/* Messages one after the other; messages and bytes in all; bytes at one rank. */
struct formula {
    enum exact exact;
    int64_t rounds, messages, bytes, most;
};

/* Returns false if there is none for the algorithm. */
bool formula_of(const struct nbc_alg *alg, const struct at *a, struct formula *f);

/* Returns n / by, rounded up. */
int64_t up(int64_t n, int64_t by);

#endif
