/* SPDX-License-Identifier: MIT */
/* Memory that the ranks of a node share: a ring (ring.h) from each to each other one. Set up at
 * init; afterwards under the lock. */
#ifndef NBC_RINGS_H
#define NBC_RINGS_H

#include "below/next.h"

#include "coll.h"
#include "ring.h"

/* Another rank of the node, and the messages to and from it that shared.h knows, oldest first. */
struct nbc_shared_peer {
    struct nbc_ring to, from;
    int *asked; /* where to ask it to receive what is in its rings */
    struct nbc_shared_message *unsent, *posted;
    struct nbc_shared_early *early;
    struct nbc_shared_pieces {
        char *at;     /* where the next one goes; NULL: nowhere */
        int64_t left; /* bytes */
        struct nbc_shared_message *message;
        struct nbc_shared_early *early; /* one of the two, or none */
    } pieces;                           /* that come from it now */
};

/* The communicator whose messages meet in the rings; MPI_COMM_NULL: none. */
extern NBC_HIDDEN MPI_Comm nbc_shared_comm;

/* The most bytes of a message that is in a ring whole, and of one that goes through it in pieces of
 * so many bytes. */
extern NBC_HIDDEN int64_t nbc_shared_piece, nbc_shared_most;

/* By rank in MPI_COMM_WORLD: its index among the peers, or -1. */
extern NBC_HIDDEN int16_t *nbc_shared_index;
extern NBC_HIDDEN struct nbc_shared_peer *nbc_shared_peers;
extern NBC_HIDDEN int nbc_shared_npeers;

/* Makes the rings, on all ranks or on none; world: the nodes of MPI_COMM_WORLD. Collective over it.
 * Without the lock. Returns an MPI error code. nbc_rings_begin: from now on they are used on the
 * duplicate of MPI_COMM_WORLD; MPI_COMM_NULL: no more. Local. */
int nbc_rings_setup(const struct nbc_nodes *world, int rank);
void nbc_rings_begin(MPI_Comm duplicate);
void nbc_rings_cleanup(void);

/* Where others ask this rank, since their rings to it are full: what it does not await yet is to be
 * copied then, as the MPI does, so that they need not wait for it. */
extern NBC_HIDDEN int *nbc_shared_asked;

/* NULL if the rank is on another node, or this one. */
static inline struct nbc_shared_peer *nbc_shared_peer_of(int world_rank)
{
    int i = nbc_shared_index[world_rank];
    return i < 0 ? NULL : &nbc_shared_peers[i];
}

#endif
