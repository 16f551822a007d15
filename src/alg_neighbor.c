/* SPDX-License-Identifier: MIT */
/* The neighborhood collectives, and with `locality` alltoall, alltoallv and alltoallw. Every edge
 * of the topology is a message: block k is sent to destinations[k], block k is received from
 * sources[k]. A rank knows its own edges only, unless there is a pattern. A neighbor MPI_PROC_NULL
 * receives nothing, and its block of the receive buffer is not written. Both ends of an edge know
 * its bytes and omit the message if there are none. Several edges may connect the same two
 * processes: pattern.h says which ends match. */
#include "bytes.h"
#include "nodes.h"
#include "pattern.h"
#include "select.h"

#include <stdlib.h>
#include <string.h>

/* Copies along edges from a rank to itself: the k-th outgoing one is the k-th incoming one. */
static void copy_self(struct nbc_sched *s, const struct nbc_shape *shape)
{
    const struct nbc_neighbors *n = shape->neighbors;
    int in = 0;
    if (!n) {
        nbc_copy(s, nbc_recv_block(shape, shape->rank), nbc_send_block(shape, shape->rank),
                 NBC_NONE);
        return;
    }
    for (int out = 0; out < n->outdegree; out++) {
        if (n->destinations[out] != shape->rank)
            continue;
        while (in < n->indegree && n->sources[nbc_source_at(n, in)] != shape->rank)
            in++;
        if (in == n->indegree)
            return;
        struct nbc_ref dst = nbc_recv_block(shape, nbc_source_at(n, in++));
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
void nbc_neighbor_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    const struct nbc_neighbors *n = shape->neighbors;
    for (int i = 0; i < n->indegree; i++) {
        int at = nbc_source_at(n, i), from = n->sources[at];
        if (from >= 0 && from != shape->rank && nbc_has_bytes(shape, nbc_recv_block(shape, at)))
            nbc_recv(s, nbc_recv_block(shape, at), from, NBC_NONE);
    }
    for (int i = 0; i < n->outdegree; i++) {
        int to = n->destinations[i];
        if (to >= 0 && to != shape->rank && nbc_has_bytes(shape, nbc_send_block(shape, i)))
            nbc_send(s, nbc_send_block(shape, i), to, NBC_NONE);
    }
    copy_self(s, shape);
}

/* --- routes ----------------------------------------------------------------------------------- */

/* The way of the data of an edge: from its source to a rank of the same node, from that to a rank
 * of the other node, and to the destination. Often these are two ranks, or three. */
struct route {
    struct nbc_edge edge;
    int node;  /* the other node; −1: the data go straight to the destination */
    int order; /* among the edges between the same ranks */
    int out, in;
    int alone;            /* not 0: its message has no other data */
    struct nbc_ref block; /* at one of its ends: the data */
    struct nbc_ref place; /* where the data are on this rank, when `there` is done */
    nbc_id there;
    int key[6]; /* by which routes are sorted; a group has the first three in common */
};

/* In an allgather all edges from one rank carry the same block. */
static bool sends_one_block(const struct nbc_shape *shape)
{
    return shape->coll == NBC_NEIGHBOR_ALLGATHER || shape->coll == NBC_NEIGHBOR_ALLGATHERV;
}

struct routes {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    struct route *out, *in; /* which leave this rank's node, or reach it */
    int nout, nin;
    int *ranks; /* room for as many as there are routes on one side */
};

/* A group has the same two ends, the same ranks in between, or is a message of one of the three
 * steps. Both ends of a message sort its routes alike. */
enum grouping { ENDS, RANKS_BETWEEN, FIRST_STEP, SECOND_STEP, THIRD_STEP };

static void set_key(const struct routes *all, struct route *r, enum grouping by)
{
    const struct nbc_pattern *p = all->shape->pattern;
    int from = r->edge.from, to = r->edge.to;
    const int keys[][6] = {
        [ENDS] = {from, to, r->node, r->order},
        [RANKS_BETWEEN] = {r->node, p && p->apart ? from : 0, 0, from, to, r->order},
        [FIRST_STEP] = {r->out, from, 0, r->in, to, r->order},
        [SECOND_STEP] = {r->out, r->in, r->alone, from, to, r->order},
        [THIRD_STEP] = {r->in, to, r->alone, r->out, from, r->order},
    };
    memcpy(r->key, keys[by], sizeof r->key);
}

static int by_key(const void *x, const void *y)
{
    const struct route *a = x, *b = y;
    int i = 0;
    while (i < 5 && a->key[i] == b->key[i])
        i++;
    return a->key[i] < b->key[i] ? -1 : a->key[i] > b->key[i]; /* mutants: <= for <: they differ */
}

typedef void group_user(const struct routes *all, struct route *r, int n);

static void each_group(const struct routes *all, struct route *r, int n, enum grouping by,
                       group_user *use)
{
    for (int i = 0; i < n; i++)
        set_key(all, &r[i], by);
    qsort(r, (size_t)n, sizeof *r, by_key);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && memcmp(r[i].key, r[end].key, 3 * sizeof *r->key) == 0;)
            end++;
        use(all, r + i, end - i);
    }
}

/* Of ints, or of structs that begin with one. */
static int by_value(const void *x, const void *y)
{
    int a = *(const int *)x, b = *(const int *)y;
    return a < b ? -1 : a > b; /* mutants: <= for <: which of two equal ones is first */
}

/* Chooses one of the sources of some routes, or of their destinations: neighboring turns choose
 * different ones, and so do those that are as far apart as there are ranks. */
static int choose(const struct route *r, int n, bool source, int turn, int *ranks)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        ranks[i] = source ? r[i].edge.from : r[i].edge.to;
    qsort(ranks, (size_t)n, sizeof *ranks, by_value);
    for (int i = 0; i < n; i++)
        if (i == 0 || ranks[i] != ranks[i - 1])
            ranks[count++] = ranks[i];
    return ranks[(turn + turn / count) % count];
}

/* Chooses the ranks between the ends of a group of routes. */
static void choose_ranks(const struct routes *all, struct route *r, int n)
{
    const struct nbc_shape *shape = all->shape;
    if (r[0].node < 0)
        return;
    int from = r[0].edge.from, to = nbc_node_of(shape->nodes, r[0].edge.to);
    int turn = to + (shape->pattern->apart ? from : nbc_node_of(shape->nodes, from));
    int out = choose(r, n, true, turn, all->ranks), in = choose(r, n, false, turn, all->ranks);
    for (int i = 0; i < n; i++) {
        r[i].out = out;
        r[i].in = in;
    }
}

/* Edges between two ranks share a message of at most so many bytes. Up to there the two copies take
 * less time than a message of its own for each, on MPICH 4.0.2 and Open MPI 4.1.4. */
enum { SHARED_MOST = 4096 };

/* Whether n edges between two ranks, which carry so many bytes, share a message. */
static bool is_shared(const struct nbc_shape *shape, int n, int64_t bytes)
{
    return n > 1 && (sends_one_block(shape) || bytes <= SHARED_MOST);
}

/* Gives the data of a group of routes with the same ends a message each, unless they share one. */
static void keep_apart(const struct routes *all, struct route *r, int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += r[i].edge.bytes;
    if (r[0].node >= 0 || is_shared(all->shape, n, bytes))
        return;
    for (int i = 0; i < n; i++)
        r[i].alone = i + 1;
}

/* With so few bytes a block, it gains more to send it with others than its copies cost. */
enum { SHORT = 1024 };

static struct route route_of(const struct nbc_shape *shape, struct nbc_edge e, bool out, int order)
{
    struct route r = {
        .edge = e, .node = -1, .order = order, .out = e.from, .in = e.to, .there = NBC_NONE};
    if (!shape->pattern || e.bytes > SHORT)
        return r;
    int other = nbc_node_of(shape->nodes, out ? e.to : e.from);
    if (other != nbc_node_of(shape->nodes, shape->rank))
        r.node = other;
    return r;
}

/* Lists the routes of one side: this rank's own edges, and those of the other ranks of its node to
 * other nodes. */
static int list_routes(const struct nbc_shape *shape, bool out, struct nbc_end *ends,
                       struct route *r)
{
    const struct nbc_pattern *p = shape->pattern;
    const struct nbc_edge *edges = !p ? NULL : out ? p->out : p->in;
    int nedges = !p ? 0 : out ? p->nout : p->nin, nends = nbc_ends_list(shape, out, ends), n = 0;
    for (int i = 0; i < nends; i++) {
        struct nbc_edge e = {.from = out ? shape->rank : ends[i].peer,
                             .to = out ? ends[i].peer : shape->rank,
                             .bytes = nbc_ref_bytes(shape, ends[i].block)};
        r[n] = route_of(shape, e, out, i);
        r[n].block = r[n].place = ends[i].block;
        n++;
    }
    for (int i = 0; i < nedges; i++)
        if ((out ? edges[i].from : edges[i].to) != shape->rank)
            r[n++] = route_of(shape, edges[i], out, i);
    return n;
}

/* Returns false without memory. */
static bool routes_make(struct routes *all, struct nbc_sched *s, const struct nbc_shape *shape)
{
    const struct nbc_pattern *p = shape->pattern;
    size_t out = (size_t)nbc_degree(shape, true) + (p ? (size_t)p->nout : 0);
    size_t in = (size_t)nbc_degree(shape, false) + (p ? (size_t)p->nin : 0);
    size_t most = out > in ? out : in;
    struct nbc_end *ends = nbc_scratch(s, most, sizeof *ends);
    *all = (struct routes){.s = s,
                           .shape = shape,
                           .out = nbc_scratch(s, out, sizeof *all->out),
                           .in = nbc_scratch(s, in, sizeof *all->in),
                           .ranks = nbc_scratch(s, most, sizeof *all->ranks)};
    if (!ends || !all->ranks || !all->out || !all->in)
        return false;
    all->nout = list_routes(shape, true, ends, all->out);
    all->nin = list_routes(shape, false, ends, all->in);
    each_group(all, all->out, all->nout, ENDS, keep_apart);
    each_group(all, all->in, all->nin, ENDS, keep_apart);
    each_group(all, all->out, all->nout, RANKS_BETWEEN, choose_ranks);
    each_group(all, all->in, all->nin, RANKS_BETWEEN, choose_ranks);
    return true;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Whether a route's data are in its message already, with the previous route's. */
static bool repeats(const struct routes *all, const struct route *r, int i)
{
    return i > 0 && sends_one_block(all->shape) && r[i].edge.from == r[i - 1].edge.from;
}

/* The pieces and bytes of a message with the data of n routes. */
static int count_pieces(const struct routes *all, const struct route *r, int n, int64_t *bytes)
{
    int pieces = 0;
    *bytes = 0;
    for (int i = 0; i < n; i++)
        if (!repeats(all, r, i)) {
            *bytes += r[i].edge.bytes;
            pieces++;
        }
    return pieces;
}

/* Whether b lies behind a, and they arrive together. */
static bool continues(const struct route *a, const struct route *b)
{
    return a->place.type == NBC_TYPE_BYTE && b->place.type == NBC_TYPE_BYTE &&
           a->place.buf == NBC_BUF_TEMP && b->place.buf == NBC_BUF_TEMP && a->there == b->there &&
           a->place.off + a->place.count == b->place.off;
}

/* Returns the bytes that begin with a route's and lie together, and sets *next to the route after
 * them. */
static struct nbc_ref run_of(const struct routes *all, const struct route *r, int n, int first,
                             int *next)
{
    struct nbc_ref run = r[first].place;
    int last = first;
    for (*next = first + 1; *next < n; ++*next) {
        if (repeats(all, r, *next))
            continue;
        if (!continues(&r[last], &r[*next]))
            break;
        last = *next;
        run.count += r[last].place.count;
    }
    return run;
}

/* Sends the data of n routes to a peer, from where they are. */
static void send_routes(const struct routes *all, const struct route *r, int n, int peer)
{
    struct nbc_sched *s = all->s;
    int next;
    struct nbc_ref run = run_of(all, r, n, 0, &next);
    if (next == n) {
        nbc_send(s, run, peer, r[0].there);
        return;
    }
    int64_t bytes, at = 0;
    count_pieces(all, r, n, &bytes);
    struct nbc_ref raw = nbc_temp_bytes(s, bytes);
    nbc_id first = s->nops;
    for (int i = 0; i < n; i = next) {
        run = run_of(all, r, n, i, &next);
        int64_t length = nbc_ref_bytes(all->shape, run);
        nbc_copy(s, nbc_byte_range(raw, at, length), run, r[i].there);
        at += length;
    }
    nbc_id sent = nbc_send(s, raw, peer, NBC_NONE);
    nbc_after_since(s, sent, first);
}

/* Whether one block is all of a message, and is received in its place: for this rank alone, and in
 * the form in which its source sends it, or packed. */
static bool is_direct(const struct routes *all, const struct route *r, int n, int peer)
{
    for (int i = 0; i < n; i++)
        if (r[i].edge.to != all->shape->rank)
            return false;
    return peer == r[0].edge.from || all->shape->types[r[0].block.type].packed;
}

static void receive_routes(const struct routes *all, struct route *r, int n, int peer)
{
    int64_t bytes, at = 0;
    int pieces = count_pieces(all, r, n, &bytes);
    bool direct = pieces == 1 && is_direct(all, r, n, peer);
    struct nbc_ref raw = direct ? r[0].block : nbc_temp_bytes(all->s, bytes);
    nbc_id received = nbc_recv(all->s, raw, peer, NBC_NONE);
    for (int i = 0; i < n; i++) {
        bool again = repeats(all, r, i);
        r[i].place = direct  ? raw
                     : again ? r[i - 1].place
                             : nbc_byte_range(raw, at, r[i].edge.bytes);
        r[i].there = received;
        at += again ? 0 : r[i].edge.bytes;
    }
}

/* --- the three steps -------------------------------------------------------------------------- */

/* The source's messages to the ranks of its node that send to other nodes. */
static void first_step(const struct routes *all, struct route *r, int n)
{
    int me = all->shape->rank;
    if (r[0].edge.from == me && r[0].out != me)
        send_routes(all, r, n, r[0].out);
    if (r[0].edge.from != me && r[0].out == me)
        receive_routes(all, r, n, r[0].edge.from);
}

static void second_send(const struct routes *all, struct route *r, int n)
{
    if (r[0].out == all->shape->rank)
        send_routes(all, r, n, r[0].in);
}

static void second_receive(const struct routes *all, struct route *r, int n)
{
    if (r[0].in == all->shape->rank)
        receive_routes(all, r, n, r[0].out);
}

/* The messages to the destinations from the ranks of their node that have received the data. */
static void third_step(const struct routes *all, struct route *r, int n)
{
    int me = all->shape->rank;
    if (r[0].in == me && r[0].edge.to != me)
        send_routes(all, r, n, r[0].edge.to);
    if (r[0].in != me && r[0].edge.to == me)
        receive_routes(all, r, n, r[0].in);
    for (int i = 0; i < n && r[0].edge.to == me; i++)
        nbc_copy(all->s, r[i].block, r[i].place, r[i].there);
}

/* Whether edges of one side share a message. */
static bool any_shared(struct nbc_sched *s, const struct nbc_shape *shape, bool out)
{
    bool shared = false;
    struct nbc_end *ends = nbc_scratch(s, (size_t)nbc_degree(shape, out), sizeof *ends);
    if (!ends)
        return false;
    int count = nbc_ends_list(shape, out, ends);
    qsort(ends, (size_t)count, sizeof *ends, by_value); /* by peer */
    for (int i = 0, end; i < count && !shared; i = end) {
        int64_t bytes = 0;
        for (end = i; end < count && ends[end].peer == ends[i].peer; end++)
            bytes += nbc_ref_bytes(shape, ends[end].block);
        shared = is_shared(shape, end - i, bytes);
    }
    return shared;
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
void nbc_neighbor_combined(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_shape alone = *shape;
    alone.pattern = NULL;
    bool shared = any_shared(s, &alone, true) || any_shared(s, &alone, false);
    (shared ? nbc_neighbor_locality : nbc_neighbor_linear)(s, &alone);
}

/* Locality: one message for all short edges from one node to another. One of the sources collects
 * the blocks of the others, and one of the destinations hands the blocks to the others; which ranks
 * do so differs from node to node. An allgather sends a block once to each node. Long blocks, and
 * those within the node, go straight to their destinations.
 *
 *   nodes 01, 23, all to all of the other node:   1 → 0           3 → 2
 *                                                 0 → 2           2 → 0
 *                                                 2 → 3           0 → 1
 *
 * If the pattern says so, every rank sends one message to each node by itself, and only the
 * destinations hand on what they receive: two steps.
 *
 * In an alltoall(v, w) there is an edge from each rank to every other.
 *
 * Cost: with nodes of p ranks that each have edges to m nodes, at most 2 (p − 1) messages within a
 * node and about m/p between nodes on every rank (in two steps p − 1 and m), where linear has one
 * for each edge; each block is sent, and copied, up to three times. For many small blocks, of
 * persistent operations: the ranks of a node must know one another's edges. Collom, Li, Bienz,
 * "Optimizing irregular communication with neighborhood collectives and locality-aware
 * parallelism", 2023; Bienz, Gropp, Olson, "Node aware sparse matrix–vector multiplication", 2019.
 */
void nbc_neighbor_locality(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct routes all;
    if (!routes_make(&all, s, shape))
        return;
    /* Between two ranks of a node, both ends emit the messages of the steps in this order. */
    each_group(&all, all.out, all.nout, FIRST_STEP, first_step);
    each_group(&all, all.in, all.nin, SECOND_STEP, second_receive);
    each_group(&all, all.out, all.nout, SECOND_STEP, second_send);
    each_group(&all, all.in, all.nin, THIRD_STEP, third_step);
    copy_self(s, shape);
}
