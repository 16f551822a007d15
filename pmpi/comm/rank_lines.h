/* SPDX-License-Identifier: MIT */
/* Lines on standard error, and how they name ranks and their hosts. */
#ifndef NBC_RANK_LINES_H
#define NBC_RANK_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "below/next.h"

/* What a rank states about itself: its host, and a text; cut off if they are longer. Ranks with the
 * same value are named together. */
enum { NBC_HOST_LENGTH = 64 };
struct nbc_rank {
    char host[NBC_HOST_LENGTH], text[56];
    int64_t value;
};

struct nbc_line {
    char text[2048];
    size_t n;
};

/* Appends text; what does not fit is left out. May be called in a signal handler with the formats
 * %s, %c, %d, %ld, %lld and %lx, for which vsnprintf needs neither memory nor a lock. */
void nbc_line_put(struct nbc_line *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends "rank 3" or "ranks 0-2, 5", those of `size` ranks that have the value; with their hosts
 * "ranks 0-2, 5 (node1, node2)". */
void nbc_line_put_ranks(struct nbc_line *l, int size, const struct nbc_rank *ranks, int64_t value,
                        bool hosts);

/* Writes the line, and ends it. In a signal handler, too. */
void nbc_line_print(struct nbc_line *l);

/* MPI_Abort, after the launcher has had time to read what was written. */
_Noreturn void nbc_line_abort(MPI_Comm comm);

/* The host of this process. */
void nbc_host_own(char host[NBC_HOST_LENGTH]);

#endif
