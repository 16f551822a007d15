/* SPDX-License-Identifier: MIT */
/* Lines on standard error that name ranks and their hosts. */
#ifndef NBC_ROSTER_H
#define NBC_ROSTER_H

#include <stddef.h>

#include "below/next.h"

enum { NBC_HOST_LENGTH = 64 };

/* The name of a host, cut off if it is longer. */
struct nbc_host {
    char name[NBC_HOST_LENGTH];
};

struct nbc_line {
    char text[1024];
    size_t n;
};

/* Appends text; what does not fit is left out. */
void nbc_line_put(struct nbc_line *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends "rank 3 (node1)" or "ranks 0-2, 5 (node1, node2)": those of `size` ranks whose group[] is
 * `which`. host[]: of all ranks; NULL leaves hosts out. */
void nbc_line_put_ranks(struct nbc_line *l, int size, const int *group, int which,
                        const struct nbc_host *host);

/* Writes the line, and empties it. */
void nbc_line_print(struct nbc_line *l);

/* MPI_Abort, after the launcher has had time to read what was written: Hydra ends at once, and what
 * it has not read by then is lost (the line, 2 times of 30). Returns only if MPI_Abort does. */
int nbc_line_abort(MPI_Comm comm);

/* The host of this process. */
void nbc_host_own(struct nbc_host *own);

#endif
