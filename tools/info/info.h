/* SPDX-License-Identifier: MIT */
/* What the parts of nbcinfo share. */
#ifndef NBC_TOOLS_INFO_H
#define NBC_TOOLS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "emit.h"
#include "select.h"

enum section {
    ABOUT = 1,
    FUNCTIONS = 2,
    VARIABLES = 4,
    ALGORITHMS = 8,
    RULES = 16,
    EVERYTHING = ABOUT | FUNCTIONS | VARIABLES | ALGORITHMS | RULES
};

struct info_options {
    int sections;
    bool json, dot, svg, selftest, threads, cures;
    int seconds; /* of the selftest; 0: not given */
    const char *choose, *costs, *schedule;
    struct tool_call call;
    int only; /* rank; −1: all */
};

extern struct info_options info_options;

/* Says what is wrong, and returns the exit status for that. */
int info_fail(const char *what, const char *why);

/* Reads a number with an optional suffix K, M or G. */
bool info_read_number(const char *word, int64_t most, int64_t *number);

/* --- installed.c: this installation --- */

/* The version, the MPI and what else every report begins with. */
void info_about(struct emit *e);

/* The sections that the options name. Returns the exit status, as the others do. */
int info_show(struct emit *e);
int info_cures(struct emit *e);

/* Returns the value of a variable; NULL if it is not set or not accepted. */
const char *info_accepted(const char *name);

/* The tuning rules that the library would use. */
const struct nbc_rules *info_in_force(void);

/* Writes "64 to 128", or "64 or more" where the most is the limit. */
void info_range(char *text, size_t size, int64_t least, int64_t most, int64_t limit);

/* Writes the preconditions of an algorithm that a call does not meet, including that of a single
 * group, and returns them. */
const char *info_lacks_text(const struct nbc_alg *alg, const struct nbc_shape *shape, char *text,
                            size_t size);

/* --- predicted.c: calls --- */

/* --choose, --costs and --schedule. */
int info_choose(struct emit *e);
int info_costs(struct emit *e);
int info_schedule(void);

#endif
