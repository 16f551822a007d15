/* SPDX-License-Identifier: MIT */
/* The schedules of all ranks of a call seen together: which send meets which receive, how many
 * messages follow one another, and a picture of it for Graphviz. */
#ifndef NBC_TOOLS_PICTURE_H
#define NBC_TOOLS_PICTURE_H

#include <stdio.h>

#include "call.h"

struct picture {
    const struct tool_call *call;
    const struct tool_rank *ranks;
    int nranks, nops;
    int *first; /* of each rank, its first operation in the arrays below; one more at the end */
    int *rank;  /* by operation: whose it is */
    int *meets; /* by receive: its send; else −1 */
    int *level; /* by operation: how many others must come before, one after the other */
    int *round; /* by operation: how many messages, this one included */
    int rounds; /* of the whole call */
    int nlevels;
    int messages;
    int64_t bytes; /* sent by all ranks together */
    int64_t most;  /* sent by the rank that sends most */
};

/* NULL and a picture, or what is wrong with the schedules (then there is nothing to free). */
const char *picture_make(struct picture *p, const struct tool_call *call,
                         const struct tool_rank *ranks);
void picture_free(struct picture *p);

/* A graph in Graphviz's language: a column for each rank, time downwards. */
void picture_dot(const struct picture *p, const char *title, FILE *out);

#endif
