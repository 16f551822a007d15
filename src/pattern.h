/* SPDX-License-Identifier: MIT */
/* Patterns: what the ranks of a node know of one another's edges to other nodes in a neighborhood
 * collective, or in an alltoall, where every rank is a neighbor of all, so that they can send them
 * together. Each rank offers its edges to the other ranks of
 * its node; the other end of an edge knows its bytes too, so that both nodes know all edges between
 * them. */
#ifndef NBC_PATTERN_H
#define NBC_PATTERN_H

#include "sched.h"

/* An edge that carries data. */
struct nbc_edge {
    int32_t from, to;
    int64_t bytes;
};

/* Of all ranks of a node. Edges between the same two ranks are in the order in which both ends list
 * them. */
struct nbc_pattern {
    struct nbc_edge *out, *in;
    int nout, nin;
    bool apart; /* every rank sends to other nodes by itself; only the receivers act together */
};

/* One end of an edge of this rank with data, to or from another rank. */
struct nbc_end {
    int peer;
    struct nbc_ref block;
};

/* Returns the index of the source that is i-th in the order of the senders' lists. On graph
 * topologies the order of the lists determines which ends match: the k-th edge to a process is that
 * process's k-th edge from here. On Cartesian topologies the standard defines the exchange by
 * MPI_Cart_shift: a block sent to the negative neighbor is received there as that of the positive
 * one. If a periodic dimension has 1 or 2 ranks, both neighbors are one process:
 *
 *   sends      to −1, to +1                  to −1 matches the other's from +1,
 *   receives   from −1, from +1              to +1 matches the other's from −1
 *
 * so the receiving side matches the edges of each dimension in the order +1, −1. */
static inline int nbc_source_at(const struct nbc_neighbors *n, int i)
{
    return n->cartesian ? i ^ 1 : i;
}

/* The number of edges of a rank on one side, with those to itself and to MPI_PROC_NULL. */
static inline int nbc_degree(const struct nbc_shape *shape, bool out)
{
    const struct nbc_neighbors *n = shape->neighbors;
    return !n ? shape->size : out ? n->outdegree : n->indegree;
}

/* Lists the outgoing ends, or the incoming ones, in the order that both sides of each edge know.
 * Returns their number. `ends` has room for the degree. */
int nbc_ends_list(const struct nbc_shape *shape, bool out, struct nbc_end *ends);

/* What a rank offers: the numbers of its outgoing and incoming edges to other nodes in the first
 * element, then these edges. */
struct nbc_offer {
    struct nbc_edge *edges;
    int n;       /* of elements */
    int busiest; /* the larger of the two numbers */
};

/* Returns false without memory. The caller frees the edges. */
bool nbc_offer_make(struct nbc_offer *offer, const struct nbc_shape *shape);

/* Makes the pattern of the offers of the ranks of a node, in ascending order, each in a place for
 * `room` elements. Returns false without memory. */
bool nbc_pattern_make(struct nbc_pattern *pattern, const struct nbc_edge *offers, int nranks,
                      int room);
void nbc_pattern_free(struct nbc_pattern *pattern);

/* Whether it is worth it. Each rank gives numbers; the largest of each over all ranks decide. They
 * are guesses of the time of its messages, in nanoseconds, on a fast network, where there is least
 * to gain. */
enum { NBC_PATTERN_NUMBERS = 5 };

enum nbc_pattern_choice { NBC_PATTERN_NEITHER, NBC_PATTERN_APART, NBC_PATTERN_TOGETHER };

/* The numbers of a rank, from its schedules: with a message for each edge, with ranks that send
 * apart, and with ranks that do not. */
void nbc_pattern_numbers(const struct nbc_shape *shape, const struct nbc_sched *linear,
                         const struct nbc_sched *apart, const struct nbc_sched *together,
                         int64_t *numbers);

/* forced: not neither. */
enum nbc_pattern_choice nbc_pattern_choose(const int64_t *largest, bool forced);

/* On no rank fewer edges to other nodes are worth an agreement. */
enum { NBC_PATTERN_LEAST = 4 };

#endif
