/* SPDX-License-Identifier: MIT */
/* The schedules of all ranks of a call together: the matching of sends and receives, the number of
 * rounds, and a drawing for Graphviz. */
#ifndef NBC_TOOLS_PICTURE_H
#define NBC_TOOLS_PICTURE_H

#include <stdio.h>

#include "call.h"

struct picture {
    const struct tool_call *call;
    const struct tool_rank *ranks;
    int nranks, nops;
    int *first; /* of each rank, its first operation in the arrays below; one more at the end */
    int *rank;  /* per operation: its rank */
    int *meets; /* per operation: of a receive, the matching send; else −1 */
    int *level; /* per operation: length of the longest path that leads to it */
    int *round; /* per operation: messages on that path, this operation included */
    int rounds; /* of the whole call */
    int nlevels;
    int messages;
    int64_t bytes; /* sent by all ranks together */
    int64_t most;  /* sent by the rank that sends most */
};

/* Fills *p, to be freed by picture_free, and returns NULL; or returns what is wrong with the
 * schedules, and *p need not be freed. */
const char *picture_make(struct picture *p, const struct tool_call *call,
                         const struct tool_rank *ranks);
void picture_free(struct picture *p);

/* Writes the picture as a graph in Graphviz's language: a column per rank, time downwards. */
void picture_dot(const struct picture *p, const char *title, FILE *out);

#endif
