/* SPDX-License-Identifier: MIT */
/* The processes of a communicator, as far as its collectives depend on them: how many, where, their
 * ranks in MPI_COMM_WORLD, and the neighbor lists of a process topology, in the order of MPI-4.1
 * section 8.6. Under the lock, except where stated. Local. */
#ifndef NBC_MEMBERS_H
#define NBC_MEMBERS_H

#include "below/next.h"

#include "coll.h"

struct nbc_topology {
    struct nbc_neighbors neighbors;
    int list[]; /* sources, then destinations; or what is both */
};

/* The ranks in MPI_COMM_WORLD of the processes to which a communicator sends: those of its group,
 * with an intercommunicator those of the remote group. A table has references, so that duplicates
 * share it. */
struct nbc_world_ranks {
    int refs;
    int of[]; /* by rank */
};

/* The group of MPI_COMM_WORLD, from nbc_nodemap_setup to nbc_nodemap_cleanup. */
extern MPI_Group nbc_world_group;

struct nbc_members {
    int rank, size;
    int remote_size;                     /* 0: intracommunicator */
    bool later;                          /* what follows is not known yet: nbc_context_complete */
    bool in_world;                       /* the ranks in MPI_COMM_WORLD are known: */
    struct nbc_world_ranks *world;       /* a reference; NULL: the same ranks */
    bool local, sockets, oversubscribed; /* as in struct nbc_shape: nodemap.h */
    bool handshake;                      /* likewise */
    bool mixed;                          /* some ranks may share a node, and not all do */
    struct nbc_topology *topology;       /* neighbor lists; owned, NULL until first needed */
    struct nbc_nodes *nodes;             /* node map: nodemap.h; owned, NULL until first needed */
};

/* Queries the neighbors of this rank in a communicator. The caller frees the result. Returns
 * NULL on an error, which *error receives: MPI_ERR_TOPOLOGY if the communicator has no topology. */
struct nbc_topology *nbc_topology_new(MPI_Comm comm, int *error);

/* Creates the table of a communicator, whose processes are all in MPI_COMM_WORLD, or else returns
 * MPI_ERR_GROUP. *ranks is NULL if each process has the same rank in both. n: the number of ranks.
 * Without the lock. Returns an MPI error code. */
int nbc_world_ranks_new(MPI_Comm comm, int inter, int n, struct nbc_world_ranks **ranks);

/* Drops a reference; accepts NULL. */
void nbc_world_ranks_release(struct nbc_world_ranks *ranks);

#endif
