/* SPDX-License-Identifier: MIT */
/* The costs in the comments of the algorithms, as functions. test_cost fails for a builder without
 * a row in one of the tables. */
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

typedef int64_t formula(const struct at *a);

/* The numbers of ranks for which `rounds` and `most` are exact; for others they are bounds. */
enum exact { ALWAYS, POWERS_OF_2, POWERS_OF_4, BOUND };

enum {
    UNKNOWN = -1, /* the comment gives no number */
    WINDOW = 8
};

struct row {
    nbc_builder *build;
    enum exact exact;
    formula *rounds, *messages, *bytes, *most;
};

/* Returns the row of an algorithm, or NULL. */
const struct row *formulas_of(const struct nbc_alg *alg);

/* The rows of formulas_groups.c: nodes, neighborhoods, two groups. */
const struct row *formulas_of_groups(nbc_builder *build);

/* Functions that both files use. */
int64_t log_ceil(int64_t n, int64_t k);
int64_t up(int64_t n, int64_t by);
int64_t subtrees(int64_t P, int64_t k);
formula zero, one, log2P, rest, P_1_n, twice_P_1_n;

#endif
