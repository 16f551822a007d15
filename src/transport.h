/* SPDX-License-Identifier: MIT */
/* What the executor needs of whatever moves the bytes: MPI point-to-point in pmpi/transport.c, a
 * simulated network in test/unit/sim.c. */
#ifndef NBC_TRANSPORT_H
#define NBC_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

/* One pending send or receive. Holds an MPI_Request of either kind, integer or pointer. */
typedef uintptr_t nbc_handle;

/* All calls are local, never block, and return 0 or a nonzero error code, which the executor hands
 * on as the result of the operation. Addresses are those of the first element (offset applied);
 * types are slots. Messages between two ranks of one operation match in the order they are posted.
 * send and receive set *h, which lives until poll reports it, or on error leave it alone. */
struct nbc_transport {
    int (*send)(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h);
    int (*recv)(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h);

    /* Which of n handles have completed. Writes their indices, ascending, to done and their number
     * to *ndone; a handle reported is gone. An error of a message is returned after its handle is
     * reported like the others. */
    int (*poll)(void *self, int n, nbc_handle *h, int *done, int *ndone);

    /* Gives a message under way up: an operation has failed. A send is left to end by itself.
     * Returns true when a receive turns out to have its message already; otherwise nothing will be
     * written to its buffer any more, and its message is still to come. The handle is gone. */
    bool (*drop)(void *self, nbc_handle h, bool is_send);

    /* Both sides hold the same number of bytes, in possibly different types and counts. They do not
     * overlap. Done on return. */
    int (*copy)(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src, int64_t scount,
                int stype);

    /* dst = left op right, for count elements of one type. dst may be the same as right, and for
     * commutative operations as left; otherwise there is no overlap. Gaps of dst keep their bytes.
     */
    int (*reduce)(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                  int type);
};

#endif
