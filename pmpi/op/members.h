/* SPDX-License-Identifier: MIT */
/* The processes of a communicator, as far as its collectives depend on them. */
#ifndef NBC_MEMBERS_H
#define NBC_MEMBERS_H

#include <stdbool.h>

struct nbc_members {
    int rank, size;
    int remote_size;                     /* 0: intracommunicator */
    bool later;                          /* what follows is not known yet: nbc_context_complete */
    bool in_world;                       /* the ranks in MPI_COMM_WORLD are known: */
    struct nbc_world_ranks *world;       /* world_ranks.h; a reference; NULL: the same ranks */
    bool local, sockets, oversubscribed; /* as in struct nbc_shape: nodemap.h */
    bool handshake;                      /* likewise */
    bool mixed;                          /* some ranks may share a node, and not all do */
    struct nbc_topology *topology;       /* neighbor lists; owned, NULL until first needed */
    struct nbc_nodes *nodes;             /* node map: nodemap.h; owned, NULL until first needed */
};

#endif
