/* SPDX-License-Identifier: MIT */
/* The interface between the executor and a transport: MPI point-to-point in pmpi/, a simulated
 * network in test/unit/sim.c. */
#ifndef NBC_TRANSPORT_H
#define NBC_TRANSPORT_H

#include <stdint.h>

struct nbc_op;

/* A pending send or receive. It has room for an MPI_Request, be that an integer or a pointer. */
typedef uintptr_t nbc_handle;

/* Returned by send: the message is complete already, and there is no handle. NBC_SENT - error: it
 * is over with an error, a receive's because the message was there already. */
enum { NBC_SENT = -1 };

/* Tells which of n handles have completed. */
typedef int nbc_transport_look(void *self, int n, nbc_handle *h, int *done, int *ndone);

/* All functions are local, never block (except wait), and return 0 or a positive error code, which
 * becomes the result of the operation. `self` is the transport's state of the operation. An address
 * is that of the first element, with the offset applied; a type is a slot. Messages of one
 * operation between two ranks match in the order in which they are posted. send and recv set *h,
 * which is valid until poll reports it; on a positive error nothing is posted, and *h is
 * unchanged. */
struct nbc_transport {
    int (*send)(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h);
    int (*recv)(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h);

    /* Tests n handles. Writes the indices of those that have completed, ascending, to `done` and
     * their number to *ndone; these handles are invalid afterwards. If a message failed, or is
     * shorter than its receive, its handle is reported too, and an error is returned. An error
     * without a handle is final: no message in flight will be reported any more. */
    nbc_transport_look *poll;

    /* Copies elements. Both sides have the same number of bytes, in possibly different types and
     * counts, and do not overlap. The copy is complete on return. */
    int (*copy)(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src, int64_t scount,
                int stype);

    /* Computes dst = left op right for `count` elements of one type. dst may be right and, for
     * commutative operators, left; otherwise there is no overlap. Gaps of dst keep their bytes. */
    int (*reduce)(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                  int type);

    /* Starts an operation of a device (staged.h). Sets *h, which poll reports when it is over.
     * Returns as send does. Only for staged schedules, as the next one. */
    int (*stage)(void *self, const struct nbc_op *op, nbc_handle *h);

    /* Forgets entry i of what is in flight, whose handle is invalid afterwards. Returns whether it
     * is over: whether its memory is not used any more. NULL: no run is given up. */
    bool (*drop)(void *self, int i, nbc_handle h);

    /* All copies and messages of the run are over, and its operations too. */
    void (*release)(void *self);

    /* As poll, but blocks until one has completed. NULL: the transport cannot. */
    nbc_transport_look *wait;
};

#endif
