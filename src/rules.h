/* SPDX-License-Identifier: MIT */
/* Tuning rules as text: nbctune and nbcsim write them, NBCSHIM_TUNING names a file of them. One
 * rule per line,
 *
 *     allreduce  2-4  0-64K  recursive_doubling
 *     bcast      8-   1M-    chain               32K
 *
 * that is the collective, the range of ranks, the range of bytes (nbc_shape_bytes), the algorithm
 * and, unless the algorithm's default will do, the segment size. Conditions may follow, which
 * restrict the rule to calls with a "commutative" operator; an "even" number of ranks, or a power
 * of two ("pow2"); ranks that share "nodes", an "equal" number on each node; all ranks on one node
 * ("local"), or not ("spread"), or on one node with fewer processors than ranks ("oversubscribed"),
 * or where messages of more than 4 KiB begin with a "handshake"; on several nodes without a network
 * faster than "sockets".
 *
 * A line "eager 16K" tells the longest message between nodes that the MPI sends without a
 * handshake: segments on several nodes are no longer than that.
 *
 * A range is one number, two ("2-4"), a lower bound ("8-"), or "*" for any number. Bytes may have
 * the suffixes K, M, G, powers of 1024. A comment extends from # to the end of the line. */
#ifndef NBC_RULES_H
#define NBC_RULES_H

#include <stdio.h>

#include "select.h"

/* Reads the number at *p, which may have such a suffix, and advances *p past it. Returns false if
 * there is none. */
bool nbc_number(const char **p, int64_t *n);

/* What is wrong with a text, with the line before it: "line 3: ...". */
struct nbc_rules_error {
    int line; /* from 1; 0: memory ran out, or the file cannot be read */
    char what[144];
};

/* Returns the text of a file up to the first null character, which no text has; free it. It may be
 * empty. Returns NULL and sets errno if the file cannot be read. */
char *nbc_text_read(const char *path);

/* Parses a text. Returns its rules, followed by those of `then`, which may be NULL; free them by
 * nbc_rules_free. Returns NULL and sets *error if a line is not a rule or memory ran out. */
struct nbc_rules *nbc_rules_parse(const char *text, const struct nbc_rules *then,
                                  struct nbc_rules_error *error);

/* Parses the text of a file likewise. */
struct nbc_rules *nbc_rules_read(const char *path, const struct nbc_rules *then,
                                 struct nbc_rules_error *error);

/* Returns a sorted copy, which selects as the original does but faster; free it by nbc_rules_free.
 * NULL: memory ran out. */
struct nbc_rules *nbc_rules_sort(const struct nbc_rules *rules);

void nbc_rules_free(struct nbc_rules *rules);

/* Writes a rule as a line of that form. */
void nbc_rule_print(FILE *out, const struct nbc_rule *rule);

/* Returns a hash of the rules, from 0 to 2^31 − 1, by which ranks compare what they have read. */
int nbc_rules_hash(const struct nbc_rules *rules);

#endif
