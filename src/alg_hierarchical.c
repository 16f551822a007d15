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

/* The ranks of one node, or one rank of each node: its `index`-th rank, on the root's node the
 * root. */
struct team {
    const struct nbc_nodes *nodes;
    int node;  /* −1: across nodes */
    int index; /* across: which of each node */
    int root;  /* leads its node instead of the `index`-th rank; −1: no root */
};

static int leader(const struct team *c, int node)
{
    /* mutants: > for >=: rank 0 leads its node anyway */
    if (c->root >= 0 && nbc_node_of(c->nodes, c->root) == node)
        return c->root;
    return nbc_node_member(c->nodes, node, c->index);
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
    st.within = (struct team){nodes, st.node, 0, root};
    st.across = (struct team){nodes, -1, 0, root};
    st.leads = leader(&st.across, st.node) == shape->rank;
    return st;
}

/* A subcollective within this rank's node; its root is the node's leader. */
static struct nbc_subcollective sub_within(const struct place *st, enum nbc_coll coll)
{
    int lead = nbc_node_index(st->shape->nodes, leader(&st->across, st->node));
    return (struct nbc_subcollective){.coll = coll,
                                      .rank = st->index,
                                      .size = st->here,
                                      .root = lead,
                                      .local = true,
                                      .member = team_member,
                                      .group = &st->within};
}

/* A subcollective across nodes. */
static struct nbc_subcollective sub_across(const struct place *st, enum nbc_coll coll)
{
    /* mutants: <= for <: rank 0 is on node 0 */
    int root = st->across.root < 0 ? 0 : nbc_node_of(st->shape->nodes, st->across.root);
    return (struct nbc_subcollective){.coll = coll,
                                      .rank = st->node,
                                      .size = st->shape->nodes->nnodes,
                                      .root = root,
                                      .member = team_member,
                                      .group = &st->across};
}

static nbc_id emit_sub(const struct place *st, const struct nbc_subcollective *sub, nbc_id after)
{
    return nbc_emit_subcollective(st->s, st->shape, sub, after);
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
        struct nbc_subcollective across = sub_across(&st, NBC_BARRIER);
        released = emit_sub(&st, &across, all);
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
    if (st.leads) {
        struct nbc_subcollective across = sub_across(&st, NBC_BCAST);
        across.recv = data.raw;
        there = emit_sub(&st, &across, there);
    }
    struct nbc_subcollective within = sub_within(&st, NBC_BCAST);
    within.recv = data.raw;
    there = emit_sub(&st, &within, there);
    if (!root)
        nbc_bytes_unpack(s, &data, bytes, there);
}

/* --- reductions ------------------------------------------------------------------------------- */

/* Reduces the node's vectors to `result` at its leader. Returns an id that is done when it is
 * there. */
static nbc_id reduce_within(const struct place *st, struct nbc_ref input, struct nbc_ref result,
                            bool in_place)
{
    struct nbc_subcollective within = sub_within(st, NBC_REDUCE);
    within.send = input;
    within.recv = result;
    within.in_place = in_place;
    return emit_sub(st, &within, NBC_NONE);
}

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
        there = reduce_within(&st, input, sum, root && shape->in_place);
    if (!st.leads)
        return;
    struct nbc_subcollective across = sub_across(&st, NBC_REDUCE);
    across.send = root ? input : sum;
    across.recv = sum;
    across.in_place = root && (!alone || shape->in_place);
    emit_sub(&st, &across, there);
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
        there = reduce_within(&st, input, result, st.leads && shape->in_place);
    if (st.leads) {
        struct nbc_subcollective across = sub_across(&st, NBC_ALLREDUCE);
        across.send = alone ? input : result;
        across.recv = result;
        across.in_place = !alone || shape->in_place;
        there = emit_sub(&st, &across, there);
    }
    struct nbc_subcollective within = sub_within(&st, NBC_BCAST);
    within.recv = result;
    within.early = !shape->in_place && !st.leads;
    emit_sub(&st, &within, there);
}

/* Returns the counts and, after them, the displacements of n nearly equal parts of a vector; NULL
 * if memory ran out. */
static int64_t *cut(struct nbc_sched *s, int64_t count, int n)
{
    int64_t *counts = nbc_scratch(s, 2 * (size_t)n, sizeof *counts);
    for (int i = 0; counts && i < n; i++) {
        counts[n + i] = nbc_part_start(count, n, i);
        counts[i] = nbc_part_start(count, n, i + 1) - counts[n + i];
    }
    return counts;
}

/* Emits the steps of hierarchical_split for parts of these counts. */
static void emit_split(const struct place *st, const int64_t *counts)
{
    const struct nbc_shape *shape = st->shape;
    struct nbc_ref input = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    struct nbc_ref mine =
        nbc_ref_part(shape, result, counts[st->here + st->index], counts[st->index]);
    struct nbc_ref home = shape->in_place ? nbc_temp_like(st->s, mine) : mine;
    struct nbc_ints sizes = {counts, sizeof *counts}, starts = {counts + st->here, sizeof *counts};

    struct nbc_subcollective scatter = sub_within(st, NBC_REDUCE_SCATTER);
    scatter.send = input;
    scatter.recv = home;
    scatter.counts = sizes;
    nbc_id there = emit_sub(st, &scatter, NBC_NONE);

    struct nbc_subcollective across = sub_across(st, NBC_ALLREDUCE);
    across.send = across.recv = home;
    across.in_place = true;
    there = emit_sub(st, &across, there);
    if (shape->in_place)
        there = nbc_copy(st->s, mine, home, there);

    struct nbc_subcollective gather = sub_within(st, NBC_ALLGATHERV);
    gather.send = gather.recv = result;
    gather.in_place = true;
    gather.counts = sizes;
    gather.displs = starts;
    emit_sub(st, &gather, there);
}

/* Hierarchical, with all ranks active: a reduce_scatter within each node; for each of its p parts
 * an allreduce among the ranks that have it; an allgather within each node.
 *
 *   nodes 01, 23, parts A, B:   0 ↔ 1 B, A    2 ↔ 3 B, A
 *                               0 ↔ 2 A       1 ↔ 3 B
 *                               0 ↔ 1 A, B    2 ↔ 3 A, B
 *
 * Cost: within a node a reduce_scatter and an allgather of n bytes on p ranks; across nodes p
 * allreduces of n/p bytes at the same time, on N nodes. A node sends as much as in `hierarchical`,
 * but no rank sends or reduces all of it. For commutative operators and nodes of equal size.
 * Temporary: in place one part, and that of the subcollectives. For large vectors on ranks that
 * share nodes. Bayatpour et al., "Scalable reduction collectives with data partitioning-based
 * multi-leader design", 2017. */
void nbc_allreduce_hierarchical_split(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref input = nbc_send_block(shape, 0);
    if (!nbc_has_bytes(shape, input))
        return;
    struct place st = place_of(shape, s, -1);
    st.across.index = st.index; /* the ranks of the same index on their nodes */
    int64_t *counts = cut(s, input.count, st.here);
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
    r.direct = shape->types[block.type].packed && nbc_nodes_ordered(shape->nodes);
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
    struct nbc_subcollective within = sub_within(st, NBC_GATHER);
    within.send = nbc_send_block(shape, 0);
    within.recv = nbc_byte_range(r->bytes, start, r->each);
    within.in_place = st->leads && shape->in_place && r->direct;
    nbc_id there = emit_sub(st, &within, NBC_NONE);
    if (!st->leads)
        return there;
    int n = nodes->nnodes;
    for (int i = 0; i < n; i++) {
        counts[i] = nbc_node_size(nodes, i) * r->each;
        counts[n + i] = nbc_node_start(nodes, i) * r->each;
    }
    struct nbc_subcollective across = sub_across(st, NBC_ALLGATHERV);
    across.send = across.recv = r->bytes;
    across.in_place = true;
    across.counts = (struct nbc_ints){counts, sizeof *counts};
    across.displs = (struct nbc_ints){counts + n, sizeof *counts};
    return emit_sub(st, &across, there);
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
    struct nbc_subcollective within = sub_within(&st, NBC_BCAST);
    within.recv = r.bytes;
    there = emit_sub(&st, &within, there);
    if (!r.direct)
        deliver(&st, &r, there);
}

/* --- alltoall --------------------------------------------------------------------------------- */

/* Transposes a matrix of blocks, to[c][r] = from[r][c], by copies of single blocks. Returns an id
 * that is done when all copies are. */
static nbc_id turn(struct nbc_sched *s, struct nbc_ref to, struct nbc_ref from, int rows,
                   int columns, int64_t each, nbc_id after)
{
    nbc_id first = s->nops;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            nbc_copy(s, nbc_byte_range(to, ((int64_t)c * rows + r) * each, each),
                     nbc_byte_range(from, ((int64_t)r * columns + c) * each, each), after);
    nbc_id done = nbc_join_of(s, NULL, 0);
    nbc_after_since(s, done, first);
    return done;
}

/* Hierarchical, on N nodes of p ranks: within a node, rank j collects the blocks that the node's
 * ranks send to the j-th ranks of all nodes; then the j-th ranks exchange p blocks at a time.
 *
 *   nodes 01, 23:   0 → 1 the blocks of 0 for 1 and 3
 *                   0 → 2 the blocks of 0 and 1 for 2
 *
 * Cost: alltoalls of N n bytes on p ranks and of p n bytes on N: N + p messages per rank instead of
 * N p, for twice the bytes and two copies. For nodes of equal size. Temporary: four times all
 * blocks; in place, and for data with gaps, up to two times more. For small blocks on ranks that
 * share nodes. The nodes and the indices are the two dimensions of a mesh: Bokhari, Berryman,
 * "Complete exchange on a circuit switched mesh", 1992. */
void nbc_alltoall_hierarchical(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int64_t each = nbc_ref_bytes(shape, nbc_recv_block(shape, 0)), bytes = each * shape->size;
    if (each == 0)
        return;
    struct place st = place_of(shape, s, -1);
    int N = shape->nodes->nnodes, p = st.here;
    st.across.index = st.index;
    struct nbc_bytes input = nbc_bytes_of(s, shape, all_blocks(shape, nbc_send_block(shape, 0)));
    nbc_id there = nbc_bytes_pack(s, &input, bytes);
    struct nbc_ref by_place = nbc_temp_bytes(s, bytes), mine = nbc_temp_bytes(s, bytes);
    struct nbc_ref by_node = nbc_temp_bytes(s, bytes);
    there = turn(s, by_place, input.raw, N, p, each, there);

    struct nbc_subcollective within = sub_within(&st, NBC_ALLTOALL);
    within.send = nbc_byte_range(by_place, 0, N * each);
    within.recv = nbc_byte_range(mine, 0, N * each);
    there = turn(s, by_node, mine, p, N, each, emit_sub(&st, &within, there));

    struct nbc_bytes output = nbc_bytes_of(s, shape, all_blocks(shape, nbc_recv_block(shape, 0)));
    struct nbc_subcollective across = sub_across(&st, NBC_ALLTOALL);
    across.send = nbc_byte_range(by_node, 0, p * each);
    across.recv = nbc_byte_range(output.raw, 0, p * each);
    there = emit_sub(&st, &across, there);
    nbc_bytes_unpack(s, &output, bytes, there);
}
