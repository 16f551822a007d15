/* SPDX-License-Identifier: MIT */
/* The processes of a communicator, as far as its collectives depend on them. */
#ifndef NBC_MEMBERS_H
#define NBC_MEMBERS_H

#include <stdbool.h>

struct nbc_members {
    int rank, size;
    int remote_size;               /* 0: intracommunicator */
    bool local, oversubscribed;    /* as those of a shape: nodemap.h */
    bool mixed;                    /* some ranks may share nodes */
    struct nbc_topology *topology; /* neighbor lists, made when first asked for; owned */
    struct nbc_nodes *nodes;       /* made when first asked for: nodemap.h; owned */
};

#endif
