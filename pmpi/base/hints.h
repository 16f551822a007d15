/* SPDX-License-Identifier: MIT */
/* Info keys, on communicators and of persistent operations:
 *   nbcshim_algorithm     names from nbcinfo, with the collective or without: "ring",
 *                         "allreduce:ring,bcast:chain". Without: for whichever collectives have it.
 *   nbcshim_segment_size  bytes, with K, M or G, that pipelined algorithms move at a time.
 * The value must be the same on every rank of the communicator. Other keys, and values that name
 * nothing, are ignored, as the standard says of hints (MPI-4.1 section 10). */
#ifndef NBC_HINTS_H
#define NBC_HINTS_H

#include "below/next.h"

#include "select.h"

struct nbc_hints {
    const struct nbc_alg *algorithm[NBC_NCOLLS];
    int64_t segment_size; /* 0: none */
};

/* Adds what an info says to *hints. MPI_INFO_NULL says nothing. */
void nbc_hints_read(MPI_Info info, struct nbc_hints *hints);

#endif
