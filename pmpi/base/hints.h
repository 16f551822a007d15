/* SPDX-License-Identifier: MIT */
/* Info keys of communicators and of persistent operations:
 *
 *   nbcshim_algorithm     algorithm names as nbcinfo lists them, each with or without a collective:
 *                         "ring", "allreduce:ring,bcast:chain". A name without a collective applies
 *                         to every collective that has the algorithm.
 *   nbcshim_segment_size  segment size of pipelined algorithms in bytes, with K, M or G
 *
 *   nbcshim_reduction_order  order in which reductions combine the ranks: any, ranks or tree
 *
 *   nbcshim_device  what becomes of buffers in the memory of a device: auto, stage, direct or off
 *
 * The value must be the same on every rank of the communicator, but for the last. Other keys and
 * invalid values are ignored, as the standard requires of hints (MPI-4.1 chapter 10). */
#ifndef NBC_HINTS_H
#define NBC_HINTS_H

#include "base/settings.h"
#include "below/next.h"

#include "select.h"

struct nbc_hints {
    const struct nbc_alg *algorithm[NBC_NCOLLS];
    int64_t segment_size;       /* 0: not set */
    enum nbc_order order;       /* NBC_ORDER_ANY: not set */
    enum nbc_device_use device; /* NBC_DEVICE_AUTO: not set */
};

/* Returns MPI_ERR_INFO if the handle is not one of an info object, else MPI_SUCCESS. Under the
 * lock.
 */
int nbc_hints_check(MPI_Info info);

/* Reads the keys of an info object into *hints; hints without a key keep their value. Accepts
 * MPI_INFO_NULL. Local. */
void nbc_hints_read(MPI_Info info, struct nbc_hints *hints);

/* Sets the keys so that nbc_hints_read would read the same, and deletes those of hints that are not
 * set. Returns an MPI error code. */
int nbc_hints_write(const struct nbc_hints *hints, MPI_Info info);

#endif
