/* SPDX-License-Identifier: MIT */
/* A call of a collective as the tools make it up: every rank with the same number of bytes, packed
 * elements, rank 0 as root, ring neighbors; its shapes and schedules on all ranks. */
#ifndef NBC_TOOLS_CALL_H
#define NBC_TOOLS_CALL_H

#include "select.h"

struct tool_call {
    enum nbc_coll coll;
    int size, remote_size; /* ranks of the group, and of the other group of an intercommunicator */
    int64_t bytes;         /* bcast, reductions: of the vector; others: of a block */
    int64_t segment;       /* 0: the algorithm's own */
    int per_node;          /* so many ranks of the group share a node; 0: all */
    bool oversubscribed;   /* if that is all, they are more than its processors */
    bool ordered;          /* the operator is not commutative */
};

/* One rank of it. Ranks of the other group follow those of the first. */
struct tool_rank {
    struct nbc_shape shape;
    struct nbc_sched *sched;
    struct nbc_type *types;
    int64_t *counts, *displs;
    struct nbc_neighbors neighbors;
    struct nbc_nodes nodes;
    int around[2];
};

/* Fills one rank in, without a schedule. False: no memory. */
bool tool_rank_make(struct tool_rank *r, const struct tool_call *call, int id);
void tool_rank_free(struct tool_rank *r);

/* All ranks with their schedules, or NULL. */
struct tool_rank *tool_ranks_make(const struct tool_call *call, const struct nbc_alg *alg);
void tool_ranks_free(struct tool_rank *ranks, const struct tool_call *call);

static inline int tool_call_ranks(const struct tool_call *call)
{
    return call->size + call->remote_size;
}

/* The rank, counted over both groups, that `peer` is to rank id. */
int tool_peer(const struct tool_call *call, int id, int peer);

#endif
