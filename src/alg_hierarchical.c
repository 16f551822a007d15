/* SPDX-License-Identifier: MIT */
/* Collectives for ranks that share nodes. Data moves within nodes where possible, and crosses the
 * network once. The algorithms consist of subcollectives, within each node and across nodes among
 * one rank of each, for which the rules select algorithms that suit their numbers of ranks.
 *
 * The idea is that of Kielmann, Hofman, Bal, Plaat, Bhoedjang, "MagPIe: MPI's collective
 * communication operations for clustered wide area systems", 1999, and for nodes of Karonis et al.,
 * "Exploiting hierarchy in parallel computer networks to optimize collective operation
 * performance", 2000. */
#include "bytes.h"
#include "nodes.h"
#include "subcollective.h"
#include "select.h"
#include "topo.h"

/* --- groups of ranks -------------------------------------------------------------------------- */

/* The ranks of one node, or one rank of each node: the owner of a part, on the root's node the
 * root. */
struct team {
    const struct nbc_nodes *nodes;
    int node;        /* −1: across nodes */
    int part, parts; /* across: the part, of how many */
    int root;        /* leads its node instead; −1: no root */
};

/* The `here` ranks of a node own `parts` parts in ascending order. Return the first one from the
 * i-th rank's on, and the index of the owner of a part. */
static int first_part(int parts, int here, int i)
{
    return (int)nbc_div_up((int64_t)i * parts, here);
}

static int owner(int parts, int here, int part)
{
    return (int)((int64_t)part * here / parts);
}

static int leader(const struct team *c, int node)
{
    /* mutants: > for >=: rank 0 leads its node anyway */
    if (c->root >= 0 && nbc_node_of(c->nodes, c->root) == node)
        return c->root;
    return nbc_node_member(c->nodes, node, owner(c->parts, nbc_node_size(c->nodes, node), c->part));
}

static int team_member(const void *group, int i)
{
    const struct team *c = group;
    return c->node < 0 ? leader(c, i) : nbc_node_member(c->nodes, c->node, i);
}

/* A rank's place in the hierarchy. */
struct place {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    int node, index, here; /* this rank's node, its index there, the number of ranks there */
    bool leads;            /* this rank is the leader of its node */
    struct team within, across;
};

static struct place place_of(const struct nbc_shape *shape, struct nbc_sched *s, int root)
{
    const struct nbc_nodes *nodes = shape->nodes;
    struct place st = {.shape = shape, .s = s, .node = nbc_node_of(nodes, shape->rank)};
    st.index = nbc_node_index(nodes, shape->rank);
    st.here = nbc_node_size(nodes, st.node);
    st.within = (struct team){nodes, st.node, 0, 1, root};
    st.across = (struct team){nodes, -1, 0, 1, root};
    st.leads = leader(&st.across, st.node) == shape->rank;
    return st;
}

/* Emits a subcollective within this rank's node, with the node's leader as root. */
static nbc_id emit_within(const struct place *st, struct nbc_subcollective sub, nbc_id after)
{
    sub.rank = st->index;
    sub.size = st->here;
    sub.root = nbc_node_index(st->shape->nodes, leader(&st->across, st->node));
    sub.local = true;
    sub.member = team_member;
    sub.group = &st->within;
    return nbc_emit_subcollective(st->s, st->shape, &sub, after);
}

/* Emits one across nodes. */
static nbc_id emit_across(const struct place *st, struct nbc_subcollective sub, nbc_id after)
{
    const struct nbc_nodes *nodes = st->shape->nodes;
    sub.rank = st->node;
    sub.size = nodes->nnodes;
    /* mutants: <= for <: rank 0 is on node 0 */
    sub.root = st->across.root < 0 ? 0 : nbc_node_of(nodes, st->across.root);
    sub.member = team_member;
    sub.group = &st->across;
    return nbc_emit_subcollective(st->s, st->shape, &sub, after);
}

/* --- barrier ---------------------------------------------------------------------------------- */

/* Hierarchical: the ranks of a node signal their leader along a 4-nomial tree; the leaders perform
 * a barrier; the release goes down the tree.
 *
 *   nodes 01, 23:   1 → 0    3 → 2
 *                   0 ↔ 2
 *                   0 → 1    2 → 3
 *
 * Cost: 2 ⌈log₄p⌉ α within a node of p ranks, and a barrier of the leaders. For networks whose
 * latency is much above that within a node. Karonis et al., 2000. */
void nbc_barrier_hierarchical(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct place st = place_of(shape, s, -1);
    struct nbc_knomial tree;
    nbc_knomial(st.index, st.here, 4, &tree);
    struct nbc_ref nothing = nbc_temp_bytes(s, 0);
    nbc_id received[sizeof tree.child / sizeof *tree.child], released;
    for (int i = 0; i < tree.nchild; i++)
        received[i] = nbc_recv(s, nothing, team_member(&st.within, tree.child[i]), NBC_NONE);
    nbc_id all = tree.nchild ? nbc_join_of(s, received, tree.nchild) : NBC_NONE;
    if (st.leads) {
        released = emit_across(&st, nbc_sub_of(NBC_BARRIER, nothing, nothing, false), all);
    } else {
        int parent = team_member(&st.within, tree.parent);
        nbc_send(s, nothing, parent, all);
        released = nbc_recv(s, nothing, parent, NBC_NONE);
    }
    for (int i = 0; i < tree.nchild; i++)
        nbc_send(s, nothing, team_member(&st.within, tree.child[i]), released);
}

/* --- bcast ------------------------------------------------------------------------------------ */

/* Hierarchical: a broadcast among the leaders of the nodes, of which the root is one, then one
 * within each node.
 *
 *   nodes 01, 23, root 0:   0 → 2
 *                           0 → 1    2 → 3
 *
 * Cost: a broadcast on N nodes and one on p ranks; each node receives n bytes once. For ranks that
 * share nodes and their network ports. Karonis et al., 2000. */
void nbc_bcast_hierarchical(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref vector = nbc_recv_block(shape, 0);
    int64_t bytes = nbc_ref_bytes(shape, vector);
    if (bytes == 0)
        return;
    struct place st = place_of(shape, s, shape->root);
    bool root = shape->rank == shape->root;
    struct nbc_bytes data = nbc_bytes_of(s, shape, vector);
    nbc_id there = root ? nbc_bytes_pack(s, &data, bytes) : NBC_NONE;
    const struct nbc_subcollective bcast = nbc_sub_of(NBC_BCAST, data.raw, data.raw, false);
    if (st.leads)
        there = emit_across(&st, bcast, there);
    there = emit_within(&st, bcast, there);
    if (!root)
        nbc_bytes_unpack(s, &data, bytes, there);
}

/* --- reductions ------------------------------------------------------------------------------- */

/* Hierarchical: a reduction to the leader of each node, of which the root is one, then one among
 * the leaders.
 *
 *   nodes 01, 23, root 0:   1 → 0    3 → 2
 *                           2 → 0
 *
 * Cost: a reduction on p ranks and one on N nodes; each node sends n bytes once. For
 * commutative operators, since the root's node need not be the first. Temporary: one vector at
 * leaders, and that of the subcollectives. For ranks that share nodes and their network ports.
 * Karonis et al., 2000. */
void nbc_reduce_hierarchical(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref input = nbc_send_block(shape, 0);
    if (!nbc_has_bytes(shape, input))
        return;
    struct place st = place_of(shape, s, shape->root);
    bool root = shape->rank == shape->root, alone = st.here == 1;
    struct nbc_ref sum = root ? nbc_recv_block(shape, 0) : input;
    if (st.leads && !root && !alone)
        sum = nbc_temp_like(s, input);
    nbc_id there = NBC_NONE;
    if (!alone)
        there =
            emit_within(&st, nbc_sub_of(NBC_REDUCE, input, sum, root && shape->in_place), NBC_NONE);
    bool in_place = root && (!alone || shape->in_place);
    if (st.leads)
        emit_across(&st, nbc_sub_of(NBC_REDUCE, root ? input : sum, sum, in_place), there);
}

/* Hierarchical: a reduction to the leader of each node, an allreduce among the leaders, a broadcast
 * within each node.
 *
 *   nodes 01, 23:   1 → 0    3 → 2
 *                   0 ↔ 2
 *                   0 → 1    2 → 3
 *
 * Cost: a reduction and a broadcast on p ranks and an allreduce on N nodes. For
 * commutative operators. Temporary: that of the subcollectives. For small vectors on ranks that
 * share nodes. Karonis et al., 2000. */
void nbc_allreduce_hierarchical(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    if (!nbc_has_bytes(shape, input))
        return;
    struct place st = place_of(shape, s, -1);
    bool alone = st.here == 1;
    nbc_id there = NBC_NONE;
    if (!alone)
        there = emit_within(&st, nbc_sub_of(NBC_REDUCE, input, result, st.leads && shape->in_place),
                            NBC_NONE);
    bool in_place = !alone || shape->in_place;
    if (st.leads)
        there = emit_across(
            &st, nbc_sub_of(NBC_ALLREDUCE, alone ? input : result, result, in_place), there);
    struct nbc_subcollective bcast = nbc_sub_of(NBC_BCAST, result, result, false);
    bcast.early = !shape->in_place && !st.leads;
    emit_within(&st, bcast, there);
}

/* The numbers of ranks of the largest node and of the smallest. */
static int largest_node(const struct nbc_nodes *nodes, int *least)
{
    int most = *least = nbc_node_size(nodes, 0);
    for (int i = 1; i < nodes->nnodes; i++) {
        int size = nbc_node_size(nodes, i);
        most = size > most ? size : most;
        *least = size < *least ? size : *least;
    }
    return most;
}

/* From so many bytes on a rank may own any number of parts: their messages cost it less than few
 * owners cost the larger nodes. */
enum { MANY_PARTS = 131072 };

/* The number of parts: the ranks of the largest node, unless a rank of the smallest one would own
 * several short ones. */
static int number_of_parts(const struct nbc_shape *shape, int64_t bytes)
{
    int least, most = largest_node(shape->nodes, &least), each = shape->sockets ? 1 : 2;
    return bytes >= MANY_PARTS || each * least >= most ? most : each * least;
}

/* Returns the counts of what this node's ranks own of a vector and, after them, the displacements;
 * NULL if memory ran out. */
static int64_t *cut(const struct place *st, int64_t count)
{
    int n = st->here, parts = st->across.parts;
    int64_t *counts = nbc_scratch(st->s, 2 * (size_t)n, sizeof *counts);
    for (int i = 0; counts && i < n; i++) {
        int64_t end = nbc_part_start(count, parts, first_part(parts, n, i + 1));
        counts[n + i] = nbc_part_start(count, parts, first_part(parts, n, i));
        counts[i] = end - counts[n + i];
    }
    return counts;
}

/* The number of other subcollectives like one across nodes that share its ports. */
static int beside(const struct place *st)
{
    return st->shape->sockets ? st->across.parts - 1 : 0;
}

/* Emits an allreduce of each part of a vector of `count` elements that this rank owns; `mine` has
 * them. Returns an id that is done when all are. */
static nbc_id reduce_parts(const struct place *st, struct nbc_ref mine, int64_t count, nbc_id there)
{
    struct place at = *st;
    int parts = st->across.parts, first = first_part(parts, st->here, st->index);
    int end = first_part(parts, st->here, st->index + 1);
    int64_t before = nbc_part_start(count, parts, first);
    nbc_id done = first < end ? NBC_NONE : there;
    for (int k = first; k < end; k++) {
        int64_t start = nbc_part_start(count, parts, k);
        at.across.part = k;
        struct nbc_ref part = nbc_ref_part(st->shape, mine, start - before,
                                           nbc_part_start(count, parts, k + 1) - start);
        struct nbc_subcollective across = nbc_sub_of(NBC_ALLREDUCE, part, part, true);
        across.beside = beside(st);
        done = nbc_join(st->s, done, emit_across(&at, across, there));
    }
    return done;
}

/* Emits the steps of hierarchical_split for ranks that own these counts. */
static void emit_split(const struct place *st, const int64_t *counts)
{
    const struct nbc_shape *shape = st->shape;
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    struct nbc_ref mine =
        nbc_ref_part(shape, result, counts[st->here + st->index], counts[st->index]);
    struct nbc_ref home = shape->in_place ? nbc_temp_like(st->s, mine) : mine;
    struct nbc_ints sizes = {counts, sizeof *counts}, starts = {counts + st->here, sizeof *counts};

    struct nbc_subcollective scatter = nbc_sub_of(NBC_REDUCE_SCATTER, input, home, false);
    struct nbc_subcollective gather = nbc_sub_of(NBC_ALLGATHERV, result, result, true);
    scatter.counts = gather.counts = sizes;
    gather.displs = starts;
    nbc_id there = emit_within(st, scatter, NBC_NONE);
    there = reduce_parts(st, home, input.count, there);
    if (shape->in_place)
        there = nbc_copy(st->s, mine, home, there);
    emit_within(st, gather, there);
}

/* Hierarchical, with all ranks active: a reduce_scatter within each node, of p parts; for each of
 * them an allreduce among the ranks that have it; an allgather within each node.
 *
 *   nodes 01, 23, parts A, B:   0 ↔ 1 B, A    2 ↔ 3 B, A
 *                               0 ↔ 2 A       1 ↔ 3 B
 *                               0 ↔ 1 A, B    2 ↔ 3 A, B
 *
 * Cost: within a node a reduce_scatter and an allgather of n bytes on p ranks; across nodes p
 * allreduces of n/p bytes at the same time, on N nodes. A node sends as much as in `hierarchical`,
 * but no rank sends or reduces all of it. On nodes with fewer ranks than others a rank has several
 * parts. For commutative operators. Temporary: in place its parts, and that of the subcollectives.
 * For large vectors on ranks that share nodes. Bayatpour et al., "Scalable reduction collectives
 * with data partitioning-based multi-leader design", 2017. */
void nbc_allreduce_hierarchical_split(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref input = nbc_send_block(shape, 0);
    if (!nbc_has_bytes(shape, input))
        return;
    struct place st = place_of(shape, s, -1);
    st.across.parts = number_of_parts(shape, nbc_ref_bytes(shape, input));
    int64_t *counts = cut(&st, input.count);
    if (counts)
        emit_split(&st, counts);
}

/* --- allgather -------------------------------------------------------------------------------- */

/* Returns all blocks of a side, of which the first one is given. */
static struct nbc_ref all_blocks(const struct nbc_shape *shape, struct nbc_ref first)
{
    first.count *= shape->size;
    return first;
}

/* All blocks as bytes, in the order of nodes: in the receive buffer if their order and type allow,
 * else in temporary space. */
struct region {
    struct nbc_ref bytes;
    int64_t each;
    bool direct;
};

static struct region region_of(const struct place *st)
{
    const struct nbc_shape *shape = st->shape;
    struct nbc_ref block = nbc_recv_block(shape, 0);
    struct region r = {.each = nbc_ref_bytes(shape, block)};
    r.direct = shape->types[block.type].packed && shape->nodes->ordered;
    r.bytes = r.direct ? nbc_bytes_of(st->s, shape, all_blocks(shape, block)).raw
                       : nbc_temp_bytes(st->s, r.each * shape->size);
    return r;
}

/* Copies the blocks from the order of nodes to that of ranks, runs of consecutive ranks at once. */
static void deliver(const struct place *st, const struct region *r, nbc_id there)
{
    const struct nbc_shape *shape = st->shape;
    const struct nbc_nodes *nodes = shape->nodes;
    int from = 0;
    for (int node = 0; node < nodes->nnodes; node++)
        for (int i = 0, n; i < nbc_node_size(nodes, node); i += n, from += n) {
            int rank = nbc_node_member(nodes, node, i);
            for (n = 1; i + n < nbc_node_size(nodes, node) &&
                        nbc_node_member(nodes, node, i + n) == rank + n;)
                n++;
            struct nbc_ref blocks = nbc_recv_block(shape, rank);
            blocks.count *= n;
            nbc_copy(st->s, blocks, nbc_byte_range(r->bytes, from * r->each, n * r->each), there);
        }
}

/* Gathers the blocks of each node at its leader and exchanges them among the leaders. counts: an
 * array of two numbers per node. Returns an id that is done when this rank has what it gathers. */
static nbc_id gather_all(const struct place *st, const struct region *r, int64_t *counts)
{
    const struct nbc_shape *shape = st->shape;
    const struct nbc_nodes *nodes = shape->nodes;
    int64_t start = nbc_node_start(nodes, st->node) * r->each;
    struct nbc_ref here = nbc_byte_range(r->bytes, start, r->each);
    bool in_place = st->leads && shape->in_place && r->direct;
    nbc_id there =
        emit_within(st, nbc_sub_of(NBC_GATHER, nbc_send_block(shape, 0), here, in_place), NBC_NONE);
    if (!st->leads)
        return there;
    int n = nodes->nnodes;
    for (int i = 0; i < n; i++) {
        counts[i] = nbc_node_size(nodes, i) * r->each;
        counts[n + i] = nbc_node_start(nodes, i) * r->each;
    }
    struct nbc_subcollective across = nbc_sub_of(NBC_ALLGATHERV, r->bytes, r->bytes, true);
    across.counts = (struct nbc_ints){counts, sizeof *counts};
    across.displs = (struct nbc_ints){counts + n, sizeof *counts};
    return emit_across(st, across, there);
}

/* Hierarchical: a gather to the leader of each node, an allgather among the leaders, a broadcast
 * within each node.
 *
 *   nodes 01, 23:   1 → 0 B       3 → 2 D
 *                   0 ↔ 2 AB, CD
 *                   0 → 1 ABCD    2 → 3 ABCD
 *
 * Cost: a gather of n bytes and a broadcast of Pn on p ranks, and an allgather of pn on N nodes.
 * Temporary: all blocks, if they are not packed or ranks are not in the order of nodes. For small
 * blocks on ranks that share nodes. Karonis et al., 2000. */
void nbc_allgather_hierarchical(struct nbc_sched *s, const struct nbc_shape *shape)
{
    if (!nbc_has_bytes(shape, nbc_recv_block(shape, 0)))
        return;
    struct place st = place_of(shape, s, -1);
    struct region r = region_of(&st);
    int64_t *counts = nbc_scratch(s, 2 * (size_t)shape->nodes->nnodes, sizeof *counts);
    if (!counts)
        return;
    nbc_id there = gather_all(&st, &r, counts);
    there = emit_within(&st, nbc_sub_of(NBC_BCAST, r.bytes, r.bytes, false), there);
    if (!r.direct)
        deliver(&st, &r, there);
}

/* --- alltoall --------------------------------------------------------------------------------- */

/* Two nodes are connected by as many channels as the smaller one has ranks. Channel k is between
 * their k-th ranks, and carries the blocks for the ranks k, k + c, k + 2c, … of the receiving node,
 * where c is the number of channels. */
struct exchange {
    struct place st;
    struct nbc_sched *s;
    const struct nbc_nodes *nodes;
    int64_t each; /* bytes of a block */
    int most;     /* blocks that a rank sends through one rank of its node, at most */
    struct region region;
    struct nbc_ref *relay; /* by node: what this rank's channel brings for several ranks here, the
                            * blocks from each rank there together */
};

static struct nbc_ref blocks(const struct exchange *x, struct nbc_ref raw, int64_t first, int64_t n)
{
    return nbc_byte_range(raw, first * x->each, n * x->each);
}

/* Where the blocks from a node have their place. */
static struct nbc_ref blocks_from(const struct exchange *x, int node)
{
    return blocks(x, x->region.bytes, nbc_node_start(x->nodes, node),
                  nbc_node_size(x->nodes, node));
}

static int channels(const struct exchange *x, int node)
{
    int there = nbc_node_size(x->nodes, node);
    return there < x->st.here ? there : x->st.here;
}

/* The number of ranks of a node of `size` ranks for which channel k of c is. */
static int reached(int size, int c, int k)
{
    return k < c ? (int)nbc_div_up(size - k, c) : 0;
}

/* The number of blocks that a rank here sends to a node through the k-th rank here. */
static int count_through(const struct exchange *x, int node, int k)
{
    return reached(nbc_node_size(x->nodes, node), channels(x, node), k);
}

/* Returns an id that is done when all operations since `first` are. */
static nbc_id done_since(struct nbc_sched *s, nbc_id first)
{
    nbc_id done = nbc_join_of(s, NULL, 0);
    nbc_after_since(s, done, first);
    return done;
}

/* Sorts this rank's blocks by the rank here through which they pass, x->most places for each. */
static nbc_id sort_by_ranks(const struct exchange *x, struct nbc_ref to, struct nbc_ref from,
                            nbc_id after)
{
    nbc_id first = x->s->nops;
    for (int k = 0; k < x->st.here; k++) {
        int64_t at = (int64_t)k * x->most;
        for (int node = 0; node < x->nodes->nnodes; node++) {
            int c = channels(x, node), end = k < c ? nbc_node_size(x->nodes, node) : 0;
            for (int i = k; i < end; i += c)
                nbc_copy(x->s, blocks(x, to, at++, 1),
                         blocks(x, from, nbc_node_member(x->nodes, node, i), 1), after);
        }
    }
    return done_since(x->s, first);
}

/* Sorts what passes through this rank by the node to which it goes. */
static nbc_id sort_by_nodes(const struct exchange *x, struct nbc_ref to, struct nbc_ref from,
                            nbc_id after)
{
    nbc_id first = x->s->nops;
    int64_t at = 0, begin = 0;
    for (int node = 0; node < x->nodes->nnodes; node++) {
        int n = count_through(x, node, x->st.index);
        for (int r = 0; r < x->st.here; r++, at += n)
            nbc_copy(x->s, blocks(x, to, at, n), blocks(x, from, (int64_t)r * x->most + begin, n),
                     after);
        begin += n;
    }
    return done_since(x->s, first);
}

/* Exchanges through this rank's channels. `ready` is done when the receive buffer may be
 * overwritten. */
static nbc_id use_channels(struct exchange *x, struct nbc_ref sorted, nbc_id ready, nbc_id after)
{
    int64_t at = 0;
    int me = x->st.index, here = x->st.here;
    nbc_id first = x->s->nops;
    for (int node = 0; node < x->nodes->nnodes; node++) {
        int n = reached(here, channels(x, node), me);
        struct nbc_ref to = blocks_from(x, node);
        if (n > 1)
            to = x->relay[node] = nbc_temp_bytes(x->s, n * to.count);
        if (n > 0 && node != x->st.node)
            nbc_recv(x->s, to, nbc_node_member(x->nodes, node, me), ready);
    }
    for (int node = 0; node < x->st.node; node++)
        at += (int64_t)here * count_through(x, node, me);
    /* Each node begins with itself, so that not all send to the same one first. */
    for (int i = 0, node = x->st.node; i < x->nodes->nnodes; i++) {
        int64_t n = (int64_t)here * count_through(x, node, me);
        struct nbc_ref from = blocks(x, sorted, at, n);
        if (i == 0)
            nbc_copy(x->s, blocks_from(x, node), from, after);
        else if (n > 0)
            nbc_send(x->s, from, nbc_node_member(x->nodes, node, me), after);
        at += n;
        if (++node == x->nodes->nnodes)
            at = node = 0;
    }
    return done_since(x->s, first);
}

enum {
    FEW_NODES =
        16, /* up to here the number of messages of a rank decides, even if ranks share a port */
    MOST_ROOM = 4 /* times all blocks */
};

/* On nodes of equal size the channels with the same number are an alltoall. */
static nbc_id use_equal_channels(const struct exchange *x, struct nbc_ref sorted, nbc_id after)
{
    struct place st = x->st;
    st.across.part = st.index;
    st.across.parts = st.here;
    struct nbc_subcollective across = nbc_sub_of(NBC_ALLTOALL, blocks(x, sorted, 0, st.here),
                                                 blocks(x, x->region.bytes, 0, st.here), false);
    across.beside = x->nodes->nnodes <= FEW_NODES ? 0 : beside(&st);
    return emit_across(&st, across, after);
}

/* Copies what a channel of this rank has brought for the i-th rank here. */
static void pick(const struct exchange *x, int node, int i, struct nbc_ref to, nbc_id after)
{
    int c = channels(x, node), n = reached(x->st.here, c, x->st.index);
    for (int r = 0; r < c; r++)
        nbc_copy(x->s, blocks(x, to, r, 1), blocks(x, x->relay[node], (int64_t)r * n + i / c, 1),
                 after);
}

/* Takes from a message between two ranks here, or puts into it, all that the k-th rank's channels
 * bring for the i-th rank. Returns the number of blocks. */
static int64_t relay_blocks(const struct exchange *x, int k, int i, const struct nbc_ref *raw,
                            nbc_id after)
{
    int64_t at = 0;
    for (int node = 0; node < x->nodes->nnodes; node++) {
        int c = channels(x, node);
        if (i % c != k)
            continue;
        if (raw && k == x->st.index)
            pick(x, node, i, blocks(x, *raw, at, c), after);
        else if (raw)
            nbc_copy(x->s, blocks_from(x, node), blocks(x, *raw, at, c), after);
        at += c;
    }
    return at;
}

/* The third step, on nodes with more ranks than others. */
static void hand_on(const struct exchange *x, nbc_id ready, nbc_id after)
{
    int me = x->st.index;
    for (int k = 0; k < me; k++) {
        struct nbc_ref raw = nbc_temp_bytes(x->s, x->each * relay_blocks(x, k, me, NULL, NBC_NONE));
        if (raw.count == 0)
            continue;
        nbc_id there = nbc_recv(x->s, raw, team_member(&x->st.within, k), NBC_NONE);
        relay_blocks(x, k, me, &raw, nbc_join(x->s, ready, there));
    }
    for (int i = me + 1; i < x->st.here; i++) {
        struct nbc_ref raw = nbc_temp_bytes(x->s, x->each * relay_blocks(x, me, i, NULL, NBC_NONE));
        nbc_id first = x->s->nops;
        if (raw.count == 0)
            continue;
        relay_blocks(x, me, i, &raw, after);
        nbc_id sent = nbc_send(x->s, raw, team_member(&x->st.within, i), NBC_NONE);
        nbc_after_since(x->s, sent, first);
    }
    for (int node = 0; node < x->nodes->nnodes; node++)
        if (x->relay[node].count > 0)
            pick(x, node, me, blocks_from(x, node), after);
}

/* Hierarchical: within a node, rank k collects the blocks that the node's ranks send to the k-th
 * ranks of all nodes; then the k-th ranks exchange. To a node with more ranks they send those for
 * the ranks that have no partner, too, which the k-th rank there hands on; to one with fewer ranks
 * only the first ranks send.
 *
 *   nodes 01, 23:   0 → 1 the blocks of 0 for 1 and 3
 *                   0 → 2 the blocks of 0 and 1 for 2
 *
 * Cost: on N nodes of p ranks alltoalls of N n bytes on p ranks and of p n bytes on N: N + p
 * messages per rank instead of N p, for twice the bytes and two copies; nodes of fewer ranks cost a
 * step more. Temporary: three times all blocks, with nodes of unequal size up to 15 times; in
 * place, and for data with gaps, up to two times more. For small blocks on ranks that share nodes.
 * The nodes and the indices are the two dimensions of a mesh: Bokhari, Berryman, "Complete exchange
 * on a circuit switched mesh", 1992. */
void nbc_alltoall_hierarchical(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct exchange x = {.st = place_of(shape, s, -1), .s = s, .nodes = shape->nodes};
    x.each = nbc_ref_bytes(shape, nbc_recv_block(shape, 0));
    x.relay = nbc_scratch(s, (size_t)x.nodes->nnodes, sizeof *x.relay);
    if (x.each == 0 || !x.relay)
        return;
    /* What passes through a rank has as much room as through the first one of its node, which has a
     * channel to every node: too much where most nodes are small. */
    int least, most = largest_node(x.nodes, &least);
    if ((int64_t)most * x.nodes->nnodes > (int64_t)MOST_ROOM * shape->size) {
        nbc_alltoall_linear(s, shape);
        return;
    }
    for (int node = 0; node < x.nodes->nnodes; node++) {
        x.most += count_through(&x, node, 0); /* the first rank has all channels */
        x.relay[node] = nbc_temp_bytes(s, 0);
    }
    int64_t here = x.st.here, bytes = x.each * shape->size;
    struct nbc_bytes input = nbc_bytes_of(s, shape, all_blocks(shape, nbc_send_block(shape, 0)));
    x.region = region_of(&x.st);
    struct nbc_ref by_rank = nbc_temp_bytes(s, here * x.most * x.each);
    struct nbc_ref mine = nbc_temp_bytes(s, by_rank.count);
    struct nbc_ref by_node = by_rank; /* whose data have left */
    nbc_id ready = sort_by_ranks(&x, by_rank, input.raw, nbc_bytes_pack(s, &input, bytes));
    const struct nbc_subcollective within = nbc_sub_of(NBC_ALLTOALL, blocks(&x, by_rank, 0, x.most),
                                                       blocks(&x, mine, 0, x.most), false);
    nbc_id there = sort_by_nodes(&x, by_node, mine, emit_within(&x.st, within, ready));
    nbc_id last = s->nops;
    if (nbc_nodes_equal(x.nodes)) {
        there = use_equal_channels(&x, by_node, there);
    } else {
        there = use_channels(&x, by_node, shape->in_place ? ready : NBC_NONE, there);
        hand_on(&x, shape->in_place ? ready : NBC_NONE, there);
        there = done_since(s, last);
    }
    if (!x.region.direct)
        deliver(&x.st, &x.region, there);
}
