/* SPDX-License-Identifier: MIT */
/* The neighborhood collectives. Every edge of the topology is a message: block k is sent to
 * destinations[k], block k is received from sources[k]. A rank knows its own edges only. A neighbor
 * MPI_PROC_NULL receives nothing, and its block of the receive buffer is not written. Both ends of
 * an edge know its bytes and omit the message if there are none.
 *
 * Several edges may connect the same two processes. On graph topologies the order of the lists
 * determines which ends match: the k-th edge to a process is that process's k-th edge from here. On
 * Cartesian topologies the standard defines the exchange by MPI_Cart_shift: a block sent to the
 * negative neighbor is received there as that of the positive one. If a periodic dimension has 1 or
 * 2 ranks, both neighbors are one process:
 *
 *   sends      to −1, to +1                  to −1 matches the other's from +1,
 *   receives   from −1, from +1              to +1 matches the other's from −1
 *
 * so the receiving side matches the edges of each dimension in the order +1, −1. */
#include "bytes.h"
#include "select.h"
#include "topo.h"

#include <stdlib.h>

/* Returns the index of the source that is i-th in the order of the senders' lists. */
static int source_at(const struct nbc_neighbors *n, int i)
{
    return n->cartesian ? i ^ 1 : i;
}

static bool something(const struct nbc_shape *shape, struct nbc_ref r)
{
    return nbc_ref_bytes(shape, r) > 0;
}

/* Copies along edges from a rank to itself: the k-th outgoing one is the k-th incoming one. */
static void copy_self(struct nbc_sched *s, const struct nbc_shape *shape)
{
    const struct nbc_neighbors *n = shape->neighbors;
    int in = 0;
    for (int out = 0; out < n->outdegree; out++) {
        if (n->destinations[out] != shape->rank)
            continue;
        while (in < n->indegree && n->sources[source_at(n, in)] != shape->rank)
            in++;
        if (in == n->indegree)
            return;
        struct nbc_ref dst = nbc_recv_block(shape, source_at(n, in++));
        nbc_copy(s, dst, nbc_send_block(shape, out), NBC_NONE);
    }
}

/* Linear: all receives, then all sends, in the order of the lists.
 *
 *   ring of 4:   rank   0      1      2      3
 *                       ↔3 ↔1  ↔0 ↔2  ↔1 ↔3  ↔2 ↔0
 *
 * Cost: α + d (o + nβ), with d edges and o the time to post a message. No temporary memory.
 * Hoefler, Träff, "Sparse collective operations for MPI", 2009. */
struct nbc_sched *nbc_neighbor_linear(const struct nbc_shape *shape)
{
    const struct nbc_neighbors *n = shape->neighbors;
    struct nbc_sched *s = nbc_sched_new(shape, n->indegree + n->outdegree);
    if (!s)
        return NULL;
    for (int i = 0; i < n->indegree; i++) {
        int at = source_at(n, i), from = n->sources[at];
        if (from >= 0 && from != shape->rank && something(shape, nbc_recv_block(shape, at)))
            nbc_recv(s, nbc_recv_block(shape, at), from, NBC_NONE);
    }
    for (int i = 0; i < n->outdegree; i++) {
        int to = n->destinations[i];
        if (to >= 0 && to != shape->rank && something(shape, nbc_send_block(shape, i)))
            nbc_send(s, nbc_send_block(shape, i), to, NBC_NONE);
    }
    copy_self(s, shape);
    return nbc_sched_finish(s);
}

/* Edges between two ranks share a message of at most so many bytes. Up to there the two copies take
 * less time than a message of its own for each, on MPICH 4.0.2 and Open MPI 4.1.4. */
enum { COMBINED_MOST = 4096 };

/* One end of an edge with data, to or from another rank. */
struct edge {
    int peer;
    int order;            /* its position in the order of edges, which both sides know */
    int place;            /* that of the message that carries it */
    struct nbc_ref block; /* its block on this rank */
};

static int compare(int a, int b)
{
    return a < b ? -1 : a > b; /* mutants: <= for <, >= for >: where it matters they differ */
}

static int by_peer(const void *x, const void *y)
{
    const struct edge *a = x, *b = y;
    return a->peer != b->peer ? compare(a->peer, b->peer) : compare(a->order, b->order);
}

static int by_place(const void *x, const void *y)
{
    const struct edge *a = x, *b = y;
    return a->place != b->place ? compare(a->place, b->place) : compare(a->order, b->order);
}

static int list_sources(const struct nbc_shape *shape, struct edge *edges)
{
    const struct nbc_neighbors *n = shape->neighbors;
    int count = 0;
    for (int i = 0; i < n->indegree; i++) {
        int at = source_at(n, i), from = n->sources[at];
        struct nbc_ref block = nbc_recv_block(shape, at);
        if (from >= 0 && from != shape->rank && something(shape, block))
            edges[count++] = (struct edge){from, i, i, block};
    }
    return count;
}

static int list_destinations(const struct nbc_shape *shape, struct edge *edges)
{
    const struct nbc_neighbors *n = shape->neighbors;
    int count = 0;
    for (int i = 0; i < n->outdegree; i++) {
        int to = n->destinations[i];
        struct nbc_ref block = nbc_send_block(shape, i);
        if (to >= 0 && to != shape->rank && something(shape, block))
            edges[count++] = (struct edge){to, i, i, block};
    }
    return count;
}

/* The number of edges, from the first one on, to or from one peer, or in one message. */
static int peer_edges(const struct edge *edges, int n)
{
    int size = 1;
    while (size < n && edges[size].peer == edges[0].peer)
        size++;
    return size;
}

static int message_edges(const struct edge *edges, int n)
{
    int size = 1;
    while (size < n && edges[size].place == edges[0].place)
        size++;
    return size;
}

static int64_t group_bytes(const struct nbc_shape *shape, const struct edge *edges, int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += nbc_ref_bytes(shape, edges[i].block);
    return bytes;
}

/* In an allgather all edges to one peer carry the same block. */
static bool same_block(const struct nbc_shape *shape)
{
    return shape->coll == NBC_NEIGHBOR_ALLGATHER || shape->coll == NBC_NEIGHBOR_ALLGATHERV;
}

/* Whether edges to or from one peer share a message: both ends decide alike. */
static bool share_message(const struct nbc_shape *shape, const struct edge *edges, int n)
{
    return same_block(shape) || group_bytes(shape, edges, n) <= COMBINED_MOST;
}

/* Puts edges that share a message next to each other, at the place of the first of them, and leaves
 * the others where they are. */
static void arrange(const struct nbc_shape *shape, struct edge *edges, int count)
{
    qsort(edges, count, sizeof *edges, by_peer);
    for (int i = 0, size; i < count; i += size) {
        size = peer_edges(edges + i, count - i);
        if (size > 1 && share_message(shape, edges + i, size))
            for (int k = 1; k < size; k++)
                edges[i + k].place = edges[i].place;
    }
    qsort(edges, count, sizeof *edges, by_place);
}

static void receive_group(struct nbc_sched *s, const struct nbc_shape *shape,
                          const struct edge *edges, int n)
{
    if (n == 1 || same_block(shape)) {
        nbc_id received = nbc_recv(s, edges[0].block, edges[0].peer, NBC_NONE);
        for (int i = 1; i < n; i++)
            nbc_copy(s, edges[i].block, edges[0].block, received);
        return;
    }
    struct nbc_ref raw = nbc_temp_bytes(s, group_bytes(shape, edges, n));
    nbc_id received = nbc_recv(s, raw, edges[0].peer, NBC_NONE);
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        int64_t bytes = nbc_ref_bytes(shape, edges[i].block);
        nbc_copy(s, edges[i].block, nbc_byte_range(raw, at, bytes), received);
        at += bytes;
    }
}

static void send_group(struct nbc_sched *s, const struct nbc_shape *shape, const struct edge *edges,
                       int n)
{
    if (n == 1 || same_block(shape)) {
        nbc_send(s, edges[0].block, edges[0].peer, NBC_NONE);
        return;
    }
    struct nbc_ref raw = nbc_temp_bytes(s, group_bytes(shape, edges, n));
    nbc_id first = s->nops;
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        int64_t bytes = nbc_ref_bytes(shape, edges[i].block);
        nbc_copy(s, nbc_byte_range(raw, at, bytes), edges[i].block, NBC_NONE);
        at += bytes;
    }
    nbc_id sent = nbc_send(s, raw, edges[0].peer, NBC_NONE);
    /* mutants: <= for <: nbc_after lets no operation wait for itself */
    for (nbc_id id = first; id < sent; id++)
        nbc_after(s, sent, id);
}

/* Combined: one message for all edges between the same two ranks if their blocks are small, packed
 * in the order of the edges; other edges as in linear. An allgather sends its block once, however
 * large, and the receiver copies it to its places. Both ends of the edges know these and their
 * bytes.
 *
 *   torus of 2 × 2, rank 0:   linear    to 1, 1, 2, 2
 *                             combined  to 1 (two blocks), 2 (two blocks)
 *
 * Cost: α + m (o + nβ) with m messages instead of d, and a copy of the combined blocks on either
 * side, to temporary memory. The default. */
struct nbc_sched *nbc_neighbor_combined(const struct nbc_shape *shape)
{
    const struct nbc_neighbors *n = shape->neighbors;
    int most = n->indegree > n->outdegree ? n->indegree : n->outdegree;
    struct nbc_sched *s = nbc_sched_new(shape, 2 * (n->indegree + n->outdegree));
    /* mutants: forget + 1: so that no size is 0 */
    struct edge *edges = malloc((most + 1) * sizeof *edges);
    if (!s || !edges) {
        free(edges);
        nbc_sched_free(s);
        return NULL;
    }
    int count = list_sources(shape, edges);
    arrange(shape, edges, count);
    for (int i = 0, size; i < count; i += size) {
        size = message_edges(edges + i, count - i);
        receive_group(s, shape, edges + i, size);
    }
    count = list_destinations(shape, edges);
    arrange(shape, edges, count);
    for (int i = 0, size; i < count; i += size) {
        size = message_edges(edges + i, count - i);
        send_group(s, shape, edges + i, size);
    }
    free(edges);
    copy_self(s, shape);
    return nbc_sched_finish(s);
}
