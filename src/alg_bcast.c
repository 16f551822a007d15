/* SPDX-License-Identifier: MIT */
/* Broadcast: the vector of the root goes to all ranks, as a whole, in segments or in parts. */
#include "bytes.h"
#include "select.h"
#include "topo.h"

/* A rank's place in a tree. */
struct place {
    int parent; /* −1: the root */
    int nchild;
    const int *child;
};

/* Moves the whole vector at once: received from the parent, sent to all children. */
static void whole(struct nbc_sched *s, const struct nbc_shape *shape, struct place at)
{
    struct nbc_ref data = nbc_recv_block(shape, 0);
    if (!nbc_has_bytes(shape, data))
        return;
    nbc_id got = at.parent < 0 ? NBC_NONE : nbc_recv(s, data, at.parent, NBC_NONE);
    for (int i = 0; i < at.nchild; i++)
        nbc_send(s, data, at.child[i], got);
}

enum { MAX_PIPELINE_CHILDREN = 2 };

/* A rank's place in a pipeline, and its messages. */
struct pipe {
    struct place at;
    struct nbc_window in, out[MAX_PIPELINE_CHILDREN];
};

/* Moves the vector in segments, which alternate between the pipes. Each is forwarded as soon as it
 * has arrived, while the next ones are in flight. hops: from the root to the last rank. */
static void pipelined(struct nbc_sched *s, const struct nbc_shape *shape, struct pipe *pipes,
                      int npipes, int hops)
{
    int64_t bytes = nbc_shape_bytes(shape);
    int64_t segment = nbc_segment_bytes(shape, bytes, hops, NBC_SEGMENT);
    if (bytes <= segment || shape->size == 1) { /* mutants: < for <=: one segment is the whole */
        whole(s, shape, pipes->at);
        return;
    }
    int nsegments = (int)nbc_div_up(bytes, segment);
    struct nbc_bytes data = nbc_bytes_of(s, shape, nbc_recv_block(shape, 0));
    for (int g = 0; g < nsegments; g++) {
        int64_t first = g * segment, end = g + 1 < nsegments ? first + segment : bytes;
        struct nbc_ref piece = nbc_byte_range(data.raw, first, end - first);
        struct pipe *pipe = &pipes[g % npipes];
        const struct place *at = &pipe->at;
        nbc_id there;
        if (at->parent < 0) {
            there = nbc_bytes_pack(s, &data, end);
        } else {
            there = nbc_recv(s, piece, at->parent, NBC_NONE);
            nbc_window_add(s, &pipe->in, there);
        }
        for (int i = 0; i < at->nchild; i++)
            nbc_window_add(s, &pipe->out[i], nbc_send(s, piece, at->child[i], there));
        if (at->parent >= 0)
            nbc_bytes_unpack(s, &data, end, there);
    }
}

static void along_knomial(struct nbc_sched *s, const struct nbc_shape *shape, int radix)
{
    struct nbc_knomial tree;
    int root = shape->root, size = shape->size;
    nbc_knomial(nbc_relative(shape->rank, root, size), size, radix, &tree);
    for (int i = 0; i < tree.nchild; i++) /* mutants: <= for <: an entry that nobody reads */
        tree.child[i] = nbc_absolute(tree.child[i], root, size);
    int parent = tree.parent < 0 ? -1 : nbc_absolute(tree.parent, root, size);
    whole(s, shape, (struct place){parent, tree.nchild, tree.child});
}

/* Binomial tree. The root sends to the rank half-way around; then each of the two serves its half
 * in the same way. The child with the largest subtree is served first, as it has most left to do.
 *
 *   0 → 2, 1
 *   2 → 3
 *
 * Cost: ⌈log₂P⌉ (α + nβ). For small vectors, and for 2 ranks. Thakur, Rabenseifner, Gropp,
 * "Optimization of collective communication operations in MPICH", 2005. */
NBC_VARIANT(bcast_binomial, along_knomial, 2)

/* 4-nomial tree: as binomial, but with up to three children per level and half the depth.
 *
 *   0 → 1, 2, 3
 *
 * Cost: ⌈log₄P⌉ (α + 2o + 3nβ), o the time the sender is busy with a message. For small vectors
 * where o is much less than α. Bar-Noy, Kipnis, "Designing broadcasting algorithms in the postal
 * model for message-passing systems", 1992. */
NBC_VARIANT(bcast_knomial4, along_knomial, 4)

/* Bine tree (nbc_knomial): the binomial tree with nearer partners.
 *
 *   8 ranks:  0 → 3, 7, 1    3 → 4, 2    7 → 6    4 → 5
 *
 * Cost: ⌈log₂P⌉ (α + nβ). For small vectors on ranks in groups with few
 * links between them, if the groups do not begin at multiples of a power of two: there a fifth
 * fewer messages go from one to another, on average over 256 ranks (doc/scaling.md). No built-in
 * rule selects it. De Sensi et al., "Bine trees: enhancing collective operations by optimizing
 * communication locality", 2025. */
NBC_VARIANT(bcast_bine, along_knomial, NBC_BINE)

/* Linear: the root sends to every rank.
 *
 *   0 → 1, 2, 3
 *
 * Cost: α + (P − 2) o + (P − 1) nβ. For a few ranks, and for ranks so late that any
 * forwarding would wait for them. */
void nbc_bcast_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int root = shape->root, size = shape->size;
    if (shape->rank != root) {
        whole(s, shape, (struct place){root, 0, NULL});
        return;
    }
    struct nbc_ref data = nbc_recv_block(shape, 0);
    if (!nbc_has_bytes(shape, data))
        return;
    for (int i = 1; i < size; i++)
        nbc_send(s, data, nbc_absolute(i, root, size), NBC_NONE);
}

/* Pipelined chain. The vector moves from rank to rank in segments of b bytes. Each is forwarded as
 * soon as it has arrived, so every link is busy all the time.
 *
 *   0 → 1 → 2 → 3        time    1    2    3    4
 *                        0 → 1   a    b    c
 *                        1 → 2        a    b    c
 *                        2 → 3             a    b …
 *
 * Cost: (P − 2 + n/b) (α + bβ). For large vectors on few ranks. Watts, van de Geijn, "A pipelined
 * broadcast for multidimensional meshes", 1995. */
void nbc_bcast_chain(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int root = shape->root, size = shape->size;
    int me = nbc_relative(shape->rank, root, size);
    int next = nbc_absolute((me + 1) % size, root, size);
    int parent = me ? nbc_absolute(me - 1, root, size) : -1;
    struct pipe pipe = {.at = {parent, me + 1 < size, &next}};
    pipelined(s, shape, &pipe, 1, size - 1);
}

/* Pipelined binary tree: as the chain, but rank r, counted from the root, sends to 2r + 1 and
 * 2r + 2.
 *
 *   0 → 1, 2
 *   1 → 3
 *
 * Cost: (2 log₂P + 2n/b) (α + bβ): twice the traffic of a chain at the inner ranks, but a much
 * shorter latency. For medium vectors on many ranks. Pješivac-Grbović et al., "Performance
 * analysis of MPI collective operations", 2007. */
void nbc_bcast_binary_tree(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int root = shape->root, size = shape->size;
    int64_t me = nbc_relative(shape->rank, root, size);
    int child[2], nchild = 0;
    for (int64_t c = 2 * me + 1; c <= 2 * me + 2 && c < size; c++)
        child[nchild++] = nbc_absolute((int)c, root, size);
    int parent = me ? nbc_absolute((int)(me - 1) / 2, root, size) : -1;
    struct pipe pipe = {.at = {parent, nchild, child}};
    pipelined(s, shape, &pipe, 1, nbc_log2_ceil(size + 1) - 1);
}

/* Two trees (nbc_two_tree) on the ranks other than the root. Segments alternate between the trees.
 * A rank that has children in one tree has none in the other, so it sends no more than it receives.
 *
 *   first    0 → 2    2 → 1, 3
 *   second   0 → 3    3 → 2, 1
 *
 * Cost: (2 log₂P + n/b) (α + bβ). For large vectors on many ranks. Sanders, Speck, Träff,
 * "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009. */
void nbc_bcast_two_tree(struct nbc_sched *s, const struct nbc_shape *shape)
{
    int root = shape->root, size = shape->size, me = nbc_relative(shape->rank, root, size);
    struct nbc_branch branch[NBC_TREES];
    struct pipe pipes[NBC_TREES] = {{.at = {.parent = -1}}, {.at = {.parent = -1}}};
    for (int t = 0; t < NBC_TREES; t++) {
        struct nbc_branch *b = &branch[t];
        *b = nbc_two_tree_below(me, size, t);
        for (int i = 0; i < b->nchild; i++)
            b->child[i] = nbc_absolute(b->child[i], root, size);
        int parent = me > 0 ? nbc_absolute(b->parent, root, size) : -1;
        pipes[t].at = (struct place){parent, b->nchild, b->child};
    }
    pipelined(s, shape, pipes, NBC_TREES, 2 * nbc_log2_ceil(size));
}

/* A vector that moves in chunks of bytes. Ranks are counted from the root. */
struct chunks {
    const struct nbc_shape *shape;
    struct nbc_sched *s;
    struct nbc_bytes data;
    int64_t bytes;
    int me, size;
    int pieces;       /* two_rounds: of a chunk */
    nbc_id scattered; /* done when this rank has what the scatter leaves it with; the root: all */
    nbc_id complete;  /* done when all receives so far are; set only if data must be unpacked */
};

/* Returns false if nothing moves. */
static bool chunks_begin(struct chunks *c, struct nbc_sched *s, const struct nbc_shape *shape)
{
    *c = (struct chunks){.s = s, .shape = shape, .size = shape->size, .complete = NBC_NONE};
    c->bytes = nbc_shape_bytes(shape);
    c->me = nbc_relative(shape->rank, shape->root, shape->size);
    if (c->bytes == 0 || c->size == 1)
        return false;
    c->data = nbc_bytes_of(s, shape, nbc_recv_block(shape, 0));
    c->scattered = c->me == 0 ? nbc_bytes_pack(s, &c->data, c->bytes) : NBC_NONE;
    return true;
}

static void chunks_end(struct chunks *c)
{
    if (c->me > 0)
        nbc_bytes_unpack(c->s, &c->data, c->bytes, c->complete);
}

/* With fewer bytes than ranks some chunks are empty, which both sides know. */
static nbc_id chunks_recv(struct chunks *c, struct nbc_ref data, int peer)
{
    if (data.count == 0)
        return NBC_NONE;
    nbc_id got = nbc_recv(c->s, data, nbc_absolute(peer, c->shape->root, c->size), NBC_NONE);
    if (!c->data.direct)
        c->complete = nbc_join(c->s, c->complete, got);
    return got;
}

static nbc_id chunks_send(const struct chunks *c, struct nbc_ref data, int peer, nbc_id after)
{
    if (data.count == 0)
        return NBC_NONE;
    return nbc_send(c->s, data, nbc_absolute(peer, c->shape->root, c->size), after);
}

/* A piece of the chunk of a rank, of which all but the root have one. */
static struct nbc_ref piece_of(const struct chunks *c, int rank, int g)
{
    struct nbc_ref chunk = nbc_ref_split(c->shape, c->data.raw, c->size - 1, rank - 1);
    return nbc_ref_split(c->shape, chunk, c->pieces, g);
}

/* The g-th pieces of all chunks, at a rank other than the root: from the root to all others, and
 * from them. */
static void swap_pieces(struct chunks *c, int g)
{
    struct nbc_ref own = piece_of(c, c->me, g);
    nbc_id there = chunks_recv(c, own, 0);
    for (int i = 1; i < c->size - 1; i++)
        chunks_send(c, own, 1 + (c->me - 1 + i) % (c->size - 1), there);
    for (int i = 1; i < c->size - 1; i++) {
        int peer = 1 + nbc_relative(c->me - 1, i, c->size - 1);
        chunks_recv(c, piece_of(c, peer, g), peer);
    }
}

/* Two rounds: the root sends a chunk of the vector to every rank, which sends it to all others.
 * Chunks move in pieces, each forwarded as soon as it has arrived.
 *
 *   0 → 1 A, 2 B, 3 C
 *   1 → 2, 3 A    2 → 3, 1 B    3 → 1, 2 C
 *
 * Cost: 2 (α + (P − 2) o) + (2P − 3)/(P − 1) nβ. For large vectors on a few ranks, where the
 * latency is high. Barnett et al., "Interprocessor collective communication library (InterCom)",
 * 1994, with all partners at once. */
void nbc_bcast_two_rounds(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct chunks c;
    if (!chunks_begin(&c, s, shape))
        return;
    int64_t segment = nbc_segment_bytes(shape, c.bytes, 0, NBC_SEGMENT);
    c.pieces = (int)nbc_div_up(nbc_div_up(c.bytes, c.size - 1), segment);
    for (int g = 0; g < c.pieces; g++) {
        for (int i = 1; i < c.size && c.me == 0; i++)
            chunks_send(&c, piece_of(&c, i, g), i, c.scattered);
        if (c.me > 0)
            swap_pieces(&c, g);
    }
    chunks_end(&c);
}

/* One chunk for each rank. */
static struct nbc_ref chunks_at(const struct chunks *c, int first, int n)
{
    int64_t low = nbc_part_start(c->bytes, c->size, first);
    return nbc_byte_range(c->data.raw, low, nbc_part_start(c->bytes, c->size, first + n) - low);
}

/* The scatter of the two scatter + allgather broadcasts leaves each rank with the chunks of its
 * whole binomial subtree; the allgather does not send these to it again. Returns as chunks_begin
 * does. */
static bool scatter_chunks(struct chunks *c, struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_knomial tree;
    if (!chunks_begin(c, s, shape))
        return false;
    nbc_knomial(c->me, c->size, 2, &tree);
    if (c->me > 0)
        c->scattered = chunks_recv(c, chunks_at(c, c->me, tree.below.n), tree.parent);
    for (int i = 0; i < tree.nchild; i++) {
        int child = tree.child[i], n = nbc_knomial_subtree(child, c->size, 2).n;
        chunks_send(c, chunks_at(c, child, n), child, c->scattered);
    }
    return true;
}

/* Whether the scatter leaves a rank with a chunk. */
static bool holds(const struct chunks *b, int rank, int chunk)
{
    /* mutants: > for >=: blocks count from 1 */
    return chunk >= rank && chunk - rank < nbc_knomial_subtree(rank, b->size, 2).n;
}

/* Scatter + allgather, ring. A binomial scatter; then every rank forwards the chunks that it
 * receives from its left to its right, except those that its right has from the scatter.
 *
 *   after the scatter  0 ABCD     1 .B..    2 ..CD       3 ...D
 *   the ring           0 → 1 ADC  1 → 2 BA  2 → 3 CBA    3 → 0 nothing
 *
 * Cost: (⌈log₂P⌉ + P − 1) α + 2 (P − 1)/P nβ. For large vectors. Barnett et al.,
 * "Interprocessor collective communication library (InterCom)", 1994; without the chunks of the
 * scatter: Zhou et al., "A bandwidth-saving optimization for MPI broadcast collective operation",
 * 2015. */
void nbc_bcast_scatter_allgather(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct chunks b;
    if (!scatter_chunks(&b, s, shape))
        return;
    struct nbc_window in = {0};
    int me = b.me, size = b.size, left = (me + size - 1) % size, right = (me + 1) % size;
    nbc_id there = b.scattered; /* done when the chunk to be sent is here */
    /* mutants: <= for <, forget - 1: a round more moves nothing */
    for (int i = 0; i < size - 1; i++) {
        int out = nbc_relative(me, i, size), next = nbc_relative(me, i + 1, size);
        if (!holds(&b, right, out))
            chunks_send(&b, chunks_at(&b, out, 1), right, there);
        there = b.scattered;
        if (holds(&b, me, next))
            continue;
        there = chunks_recv(&b, chunks_at(&b, next, 1), left);
        if (there != NBC_NONE)
            nbc_window_add(s, &in, there);
    }
    chunks_end(&b);
}

/* Scatter + allgather, recursive doubling. After the scatter, in round k ranks that differ in bit k
 * exchange the 2^k chunks of their group, except those of the scatter.
 *
 *   after the scatter  0 ABCD    1 .B..    2 ..CD   3 ...D
 *   k = 0              0 → 1 A   2 → 3 C
 *   k = 1              0 → 2 AB  1 ↔ 3 AB, CD
 *
 * Cost: 2 log₂P α + 2 (P − 1)/P nβ, powers of two. For medium vectors. Thakur,
 * Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005. */
void nbc_bcast_scatter_doubling(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct chunks b;
    if (!scatter_chunks(&b, s, shape))
        return;
    nbc_id got[31];
    int ngot = 0;
    for (int bit = 1; bit < b.size; bit *= 2) {
        int partner = b.me ^ bit, mine = b.me & -bit, theirs = partner & -bit;
        int before = ngot;
        if (!holds(&b, b.me, theirs))
            got[ngot++] = chunks_recv(&b, chunks_at(&b, theirs, bit), partner);
        if (holds(&b, partner, mine))
            continue;
        nbc_id sent = chunks_send(&b, chunks_at(&b, mine, bit), partner, b.scattered);
        nbc_after_all(s, sent, got, before);
    }
    chunks_end(&b);
}
