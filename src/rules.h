/* SPDX-License-Identifier: MIT */
/* Tuning rules as text: what nbctune writes and NBCSHIM_TUNING reads. One rule a line,
 *
 *     allreduce  2-4  0-64K  recursive_doubling
 *     bcast      8-   1M-    chain               32K
 *
 * that is the collective, how many ranks, how many bytes (of nbc_shape_bytes), the algorithm and,
 * if not its own choice, the segment size. Words behind say which calls alone the rule is for:
 * those with a "commutative" operation, an "even" number of ranks or one that is a power of two
 * ("pow2"), ranks that share "nodes", an "equal" number of them on each, ranks that are all on one
 * node ("local") or not ("spread"), on one that has fewer processors than ranks ("oversubscribed").
 * A range is one number, two, a number or more ("8-"), or "*" for any; bytes take K, M, G for
 * powers of 1024. From # to the end of a line is comment.
 */
#ifndef NBC_RULES_H
#define NBC_RULES_H

#include <stdio.h>

#include "select.h"

/* What is wrong with a text, and where. */
struct nbc_rules_error {
    int line; /* from 1; 0: no memory */
    char what[128];
};

/* The rules of a text, to be released by nbc_rules_free; NULL with *error set if a line is none.
 * `then`: rules to come behind them, may be NULL. */
struct nbc_rules *nbc_rules_parse(const char *text, const struct nbc_rules *then,
                                  struct nbc_rules_error *error);

/* Rules that decide as these do, faster; to be released by nbc_rules_free. NULL: no memory. */
struct nbc_rules *nbc_rules_sort(const struct nbc_rules *rules);

void nbc_rules_free(struct nbc_rules *rules);

/* A line of that form. */
void nbc_rule_print(FILE *out, const struct nbc_rule *rule);

/* The same number for rules that decide alike; from 0 to 2^31 − 1. */
int nbc_rules_hash(const struct nbc_rules *rules);

#endif
