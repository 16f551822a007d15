/* SPDX-License-Identifier: MIT */
/* Messages between ranks of a node meet in memory that the two share: a ring (ring.h) from each
 * rank to each other one. A short message is in the ring whole, a longer one comes in pieces, one
 * after the other. Of a long one the ring has only that it was sent: then the MPI moves it. So
 * receives match messages in the order in which both were posted, whatever their lengths, and one
 * of another length than its receive expects is an error and no deadlock. A receive that expects a
 * long one is the MPI's at once, so that nothing has to be kept for it. This is so on the duplicate
 * of MPI_COMM_WORLD, where a rank and a tag name a receive; messages on other communicators, and to
 * other nodes, are the MPI's.
 *
 * Elements with gaps, and those of a device, are for the MPI to load and store: it sends them as if
 * they were long, and those that arrive in a ring it gets as a message of this rank to itself.
 *
 * What a ring has no room for stays with its operation, which is then not complete; what has
 * arrived and is not yet awaited is copied, so that no message blocks those behind it. Under the
 * lock. Local. */
#ifndef NBC_SHARED_H
#define NBC_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "op/rings.h"

#include "transport.h"

struct nbc_run;

/* A message, and if it is not complete at once, its record. */
struct nbc_shared_message {
    struct nbc_shared_message *prev, *next; /* to or from the same rank */
    struct nbc_shared_peer *peer;
    struct nbc_run *run;
    uintptr_t addr;
    int64_t count, bytes;
    int type, tag, rank; /* rank: the peer's in the communicator */
    bool sends;
    bool begun, dropped; /* in pieces: the ring has their number of bytes; they have no data */
    int64_t done;        /* so many bytes of them are in the ring */
    enum {
        NBC_SHARED_POSTED, /* in a list of the peer */
        NBC_SHARED_BELOW,  /* the MPI moves it: */
        NBC_SHARED_OVER
    } state;
    bool early; /* the MPI has its receive, though it has not arrived: */
    int result; /* what that returned */
    nbc_handle below;
    void *copy; /* of the data, which the MPI stores; or NULL */
    int error;
};

/* A message that has arrived before its receive. */
struct nbc_shared_early {
    struct nbc_shared_early *prev, *next;
    uint32_t tag, bytes; /* as in the ring */
    char data[];
};

/* Handles of such messages differ from an MPI_Request in their highest bit, which no address and
 * no int has. */
#define NBC_SHARED_BIT (UINTPTR_MAX - UINTPTR_MAX / 2)

static inline bool nbc_shared_is(nbc_handle h)
{
    return h & NBC_SHARED_BIT;
}

static inline struct nbc_shared_message *nbc_shared_message(nbc_handle h)
{
    return (struct nbc_shared_message *)(h & ~NBC_SHARED_BIT);
}

static inline nbc_handle nbc_shared_handle(const struct nbc_shared_message *m)
{
    return (nbc_handle)m | NBC_SHARED_BIT;
}

/* Whether a poll may find more than the one before. */
static inline bool nbc_shared_may_end(nbc_handle h)
{
    const struct nbc_shared_message *m = nbc_shared_message(h);
    uint32_t tag, bytes;
    return m->sends || m->state != NBC_SHARED_POSTED || nbc_ring_peek(&m->peer->from, &tag, &bytes);
}

/* As send and recv of nbc_transport. rank: the peer's. *h may be a handle of the MPI's. */
int nbc_shared_send(struct nbc_run *run, struct nbc_shared_peer *peer, uintptr_t addr,
                    int64_t count, int type, int rank, nbc_handle *h);
int nbc_shared_receive(struct nbc_run *run, struct nbc_shared_peer *peer, uintptr_t addr,
                       int64_t count, int type, int rank, nbc_handle *h);

/* Whether a message is over; then the handle is invalid, and *error is its error or MPI_SUCCESS. */
bool nbc_shared_test(nbc_handle h, int *error);

/* Whether another rank asks for nbc_shared_receive_all, which receives all that has arrived. The
 * former without the lock. */
static inline bool nbc_shared_is_asked(void)
{
    return __builtin_expect(__atomic_load_n(nbc_shared_asked, __ATOMIC_RELAXED), 0);
}

__attribute__((cold)) void nbc_shared_receive_all(void);

/* Forgets all that has arrived for nobody, at finalize. */
void nbc_shared_cleanup(void);

/* Forgets a message. Returns whether it is over: whether its memory is not used any more. */
bool nbc_shared_drop(nbc_handle h);

#endif
