/* SPDX-License-Identifier: MIT */
/* A model call of a collective, with its shapes and schedules on all ranks: the same number of
 * bytes on every rank, packed elements, rank 0 as the root, a ring as the neighborhood. */
#ifndef NBC_TOOLS_CALL_H
#define NBC_TOOLS_CALL_H

#include "pattern.h"
#include "select.h"

struct tool_call {
    enum nbc_coll coll;
    int size, remote_size; /* ranks of the group, and of the other group of an intercommunicator */
    int64_t bytes;         /* bcast, reductions: of the vector; others: of a block */
    int64_t segment;       /* bytes; 0: the algorithm's default */
    int64_t eager;         /* of the shape */
    int per_node;          /* number of ranks that share a node; 0: all ranks of the group */
    bool sockets;          /* if they do not all share a node: there is no faster network */
    bool oversubscribed;   /* if all share a node: they outnumber its processors */
    bool handshake;        /* if all share a node: messages over 4 KiB begin with a handshake */
    bool ordered;          /* the operator is not commutative */
    enum nbc_order order;  /* of reductions */
};

/* One rank of a call. Ranks of the other group follow those of the first. */
struct tool_rank {
    struct nbc_shape shape;
    struct nbc_sched *sched;
    struct nbc_type *types;
    int64_t *counts, *displs;
    struct nbc_neighbors neighbors;
    struct nbc_nodes nodes;
    struct nbc_pattern pattern;
    int around[2];
};

/* Makes one rank, without its schedule. Returns false if memory ran out. */
bool tool_rank_make(struct tool_rank *r, const struct tool_call *call, int id);
void tool_rank_free(struct tool_rank *r);

/* Returns all ranks with their schedules, to be freed by tool_ranks_free; NULL if memory ran out.
 */
struct tool_rank *tool_ranks_make(const struct tool_call *call, const struct nbc_alg *alg);
void tool_ranks_free(struct tool_rank *ranks, const struct tool_call *call);

static inline int tool_call_ranks(const struct tool_call *call)
{
    return call->size + call->remote_size;
}

/* Returns the id of a peer of rank `id`. Ids number the ranks of both groups. */
int tool_peer(const struct tool_call *call, int id, int peer);

#endif
