/* SPDX-License-Identifier: MIT */
/* Collectives on intercommunicators. Every message goes from one group to the other, and a peer is
 * a rank of the remote group. Two ranks of one group can communicate only through a rank of the
 * other, which must know the size of their data.
 *
 * Below, L and R are the numbers of ranks of the local and the remote group, n is the bytes of a
 * block or of a reduction's vector, and o is the time to post a message. The groups of the pictures
 * are a0 a1 and b0 b1. Allgather and alltoall are in alg_alltoall.c. After Silva, Silva,
 * "Implementing MPI-2 extended collective operations", 1999. */
#include "select.h"
#include "topo.h"

/* Returns the i-th remote rank to send to. Ranks begin with different ones. */
static int spread(const struct nbc_shape *shape, int i)
{
    return (int)(((int64_t)shape->rank + i) % shape->remote_size);
}

/* --- one root --- */

/* In the root's group only the root knows the size of the data, since the arguments of the others
 * (MPI_PROC_NULL) are not significant. So they cannot forward messages, and without them the ranks
 * of the remote group cannot reach one another: the root communicates with each of them. */

/* Broadcast, gather(v), scatter(v), linear: the root sends every remote rank its data, or receives
 * the block of each.
 *
 *   root a0   →b0 →b1        gather   ←b0 ←b1
 *
 * Cost: α + R (o + nβ). */
void nbc_one_root_inter_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    bool here = shape->root == NBC_ROOT_HERE, sends = here != nbc_coll_is_to_root(shape->coll);
    int n = here ? shape->remote_size : 1;
    if (shape->root == NBC_ROOT_IDLE)
        return;
    for (int i = 0; i < n; i++) {
        struct nbc_ref block = sends ? nbc_send_block(shape, i) : nbc_recv_block(shape, i);
        if (nbc_has_bytes(shape, block))
            (sends ? nbc_send : nbc_recv)(s, block, here ? i : shape->root, NBC_NONE);
    }
}

/* --- reductions, linear --- */

enum { WINDOW = 8 };

/* A reduction, in rank order, of vectors that remote ranks send. */
struct fold {
    int first, n;          /* remote ranks */
    struct nbc_ref vector; /* what each rank sends has the layout of this vector */
    int64_t at;            /* first element of it that is reduced */
    struct nbc_ref result; /* place of the result */
    bool whole;            /* all elements are reduced: the last vector is received in `result` */
};

/* Emits a fold. Each partial result overwrites the vector that was reduced into it last, so the
 * operands are in rank order and nothing is copied. At most WINDOW vectors are held: the next one
 * is received when one has been reduced. Returns an id that is done when the result is there. */
static nbc_id fold(struct nbc_sched *s, const struct nbc_shape *shape, struct fold f)
{
    struct nbc_ref slot[WINDOW], left = f.result;
    nbc_id empty[WINDOW], ready = NBC_NONE;
    int nslots = f.whole ? f.n - 1 : f.n;
    for (int i = 0; i < WINDOW && i < nslots; i++) {
        slot[i] = nbc_temp_like(s, f.vector);
        empty[i] = NBC_NONE;
    }
    for (int j = 0; j < f.n; j++) {
        bool last = j == f.n - 1, straight = last && f.whole;
        struct nbc_ref in = straight ? f.result : slot[j % WINDOW];
        nbc_id received = nbc_recv(s, in, f.first + j, straight ? NBC_NONE : empty[j % WINDOW]);
        struct nbc_ref right = nbc_ref_part(shape, in, f.at, f.result.count);
        if (j > 0) {
            nbc_id reduced = nbc_reduce(s, last ? f.result : right, left, right, received);
            nbc_after(s, reduced, ready);
            empty[(j - 1) % WINDOW] = ready = reduced;
        } else {
            ready = last ? nbc_copy(s, f.result, right, received) : received;
        }
        left = right;
    }
    return ready;
}

static struct fold fold_all(const struct nbc_shape *shape, struct nbc_ref result)
{
    return (struct fold){0, shape->remote_size, result, 0, result, true};
}

static void send_to_all(struct nbc_sched *s, const struct nbc_shape *shape, struct nbc_ref data)
{
    for (int i = 0; i < shape->remote_size; i++)
        nbc_send(s, data, spread(shape, i), NBC_NONE);
}

/* Reduce, linear: every remote rank sends its vector to the root.
 *
 *   root a0   ←b0 ←b1, b0 + b1
 *
 * Cost: α + R (o + nβ + nγ). Temporary memory: min(R − 1, WINDOW) vectors. */
void nbc_reduce_inter_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    bool here = shape->root == NBC_ROOT_HERE;
    if (shape->root == NBC_ROOT_IDLE)
        return;
    if (!here && nbc_has_bytes(shape, nbc_send_block(shape, 0)))
        nbc_send(s, nbc_send_block(shape, 0), shape->root, NBC_NONE);
    if (here && nbc_has_bytes(shape, nbc_recv_block(shape, 0)))
        fold(s, shape, fold_all(shape, nbc_recv_block(shape, 0)));
}

/* Of a call whose vectors are reduced for all ranks: the elements of the result that this rank
 * keeps, and the place of the first of them. The vector of a reduce_scatter has the same number of
 * elements in both groups, but neither group knows how the other one divides it. */
static int64_t first_kept(const struct nbc_shape *shape)
{
    return shape->coll == NBC_ALLREDUCE ? 0 : nbc_elements_before(&shape->send, shape->rank);
}

static struct nbc_ref input_of(const struct nbc_shape *shape)
{
    return shape->coll == NBC_ALLREDUCE ? nbc_send_block(shape, 0) : nbc_send_vector(shape);
}

/* Allreduce and reduce_scatter, linear: every rank sends its vector to all remote ranks and reduces
 * the elements that it keeps of those it receives.
 *
 *   a0   →b0 →b1, b0 + b1        a1   →b1 →b0, b0 + b1        and likewise from b to a
 *
 * Cost: α + R (2o + nβ + nγ), a reduce_scatter nγ/L. Temporary memory: min(R − 1, WINDOW) vectors,
 * a reduce_scatter up to R. For small vectors and small groups. */
void nbc_all_inter_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref mine = input_of(shape), result = nbc_recv_block(shape, 0), vector = result;
    if (!nbc_has_bytes(shape, mine))
        return;
    vector.count = mine.count;
    bool whole = shape->coll == NBC_ALLREDUCE;
    struct fold all = {0, shape->remote_size, vector, first_kept(shape), result, whole};
    fold(s, shape, all);
    send_to_all(s, shape, mine);
}

/* Reduce_scatter_block, linear: here the number of elements determines the remote group's blocks
 * too, so every rank sends each remote rank only its block of the vector.
 *
 *   a0   block 0→b0, block 1→b1, b0 + b1 for a0        and so on
 *
 * Cost: α + R (2o + nβ/L + nγ/L), which is the least number of bytes. Temporary memory: min(R − 1,
 * WINDOW) blocks. For all sizes. */
void nbc_reduce_scatter_block_inter_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref mine = nbc_send_vector(shape);
    if (!nbc_has_bytes(shape, mine))
        return;
    fold(s, shape, fold_all(shape, nbc_recv_block(shape, 0)));
    for (int i = 0; i < shape->remote_size; i++) {
        int to = spread(shape, i);
        nbc_send(s, nbc_ref_split(shape, mine, shape->remote_size, to), to, NBC_NONE);
    }
}

/* --- reductions of long vectors --- */

/* Vectors are divided into as many parts as the smaller group has ranks. Each of those ranks
 * handles one part in either direction. With more parts, a rank would forward several, each to the
 * whole larger group, and send as many messages as that group has pairs of ranks. */
struct bounce {
    int parts;
    struct nbc_ref mine;   /* this rank's input vector */
    struct nbc_ref all;    /* where the remote group's vectors are reduced */
    struct nbc_ref result; /* where this rank's elements of `all` go; may be `all` itself */
    int64_t at;            /* the first of these elements */
};

static int smaller_group(const struct nbc_shape *shape)
{
    return shape->size < shape->remote_size ? shape->size : shape->remote_size;
}

/* When part k of the result is there, copies this rank's elements of it to the result. */
static void bounce_keep(struct nbc_sched *s, const struct nbc_shape *shape, const struct bounce *b,
                        int k, nbc_id ready)
{
    int64_t from = nbc_part_start(b->all.count, b->parts, k);
    int64_t to = nbc_part_start(b->all.count, b->parts, k + 1);
    int64_t end = b->at + b->result.count;
    from = from > b->at ? from : b->at;
    to = to < end ? to : end;
    if (from < to) /* mutants: <= for <: a copy of nothing is none */
        nbc_copy(s, nbc_ref_part(shape, b->result, from - b->at, to - from),
                 nbc_ref_part(shape, b->all, from, to - from), ready);
}

/* Sends the parts of this rank's vector to the ranks that reduce them. */
static void send_parts(struct nbc_sched *s, const struct nbc_shape *shape, const struct bounce *b)
{
    for (int i = 0; i < b->parts; i++) {
        int to = (shape->rank % b->parts + i) % b->parts;
        struct nbc_ref part = nbc_ref_split(shape, b->mine, b->parts, to);
        if (nbc_has_bytes(shape, part))
            nbc_send(s, part, to, NBC_NONE);
    }
}

/* Forwards one part of the remote group's result: from the remote rank of the same number to all
 * others. */
static void pass_on(struct nbc_sched *s, const struct nbc_shape *shape, const struct bounce *b)
{
    struct nbc_ref part = nbc_ref_split(shape, b->mine, b->parts, shape->rank);
    if (!nbc_has_bytes(shape, part))
        return;
    struct nbc_ref passing = nbc_temp_like(s, part);
    nbc_id received = nbc_recv(s, passing, shape->rank, NBC_NONE);
    for (int i = 1; i < shape->remote_size; i++)
        nbc_send(s, passing, spread(shape, i), received);
}

/* Rank k reduces part k of the remote vectors. Remote rank k forwards the result to the other ranks
 * of this group, as this rank does for the remote group. Two ranks exchange, in this order, a part
 * to be reduced, a part to be forwarded, and a forwarded part. */
static void bounce(struct nbc_sched *s, const struct nbc_shape *shape, const struct bounce *b)
{
    int rank = shape->rank;
    bool reduces = rank < b->parts;
    struct nbc_ref part = {0};
    nbc_id reduced = NBC_NONE;
    if (reduces)
        part = nbc_ref_split(shape, b->all, b->parts, rank);
    if (reduces && nbc_has_bytes(shape, part)) {
        reduced = fold(s, shape, fold_all(shape, part));
        bounce_keep(s, shape, b, rank, reduced);
    }
    send_parts(s, shape, b);
    if (reduces && nbc_has_bytes(shape, part))
        nbc_send(s, part, rank, reduced);
    if (reduces)
        pass_on(s, shape, b);
    for (int k = 0; k < b->parts; k++) {
        struct nbc_ref other = nbc_ref_split(shape, b->all, b->parts, k);
        if (k != rank && nbc_has_bytes(shape, other))
            bounce_keep(s, shape, b, k, nbc_recv(s, other, k, NBC_NONE));
    }
}

/* Allreduce and reduce_scatter, bounced: a reduce_scatter of the remote vectors over min(L, R)
 * ranks of this group, then an allgather of the parts, each through one remote rank. In a
 * reduce_scatter every rank then keeps its elements of the result. They cannot be sent to it alone,
 * since the remote ranks do not know how this group divides the vector.
 *
 *   a0   half 0→b0, half 1→b1   half 0 of b0 + b1   →b0→a1
 *   a1   half 0→b0, half 1→b1   half 1 of b0 + b1   →b1→a0        and likewise from b to a
 *
 * With S and M ranks in the smaller and the larger group, the cost is about 3α + 2 (S + M) o +
 * (2M/S + 1) nβ + (M/S) nγ, where linear moves M nβ. Half of these bytes come in and half go
 * out, after the part to be forwarded has arrived. All data of the larger group passes through the
 * smaller one, so (M/S) nβ is a lower bound. With a group of one rank, linear is used instead.
 * Temporary memory: (min(M − 1, WINDOW) + 1) / S vectors, in a reduce_scatter one more. For long
 * vectors. */
void nbc_all_inter_bounce(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref mine = input_of(shape), result = nbc_recv_block(shape, 0), all = result;
    int parts = smaller_group(shape);
    if (parts == 1) {
        nbc_all_inter_linear(s, shape);
        return;
    }
    all.count = mine.count;
    if (shape->coll != NBC_ALLREDUCE)
        all = nbc_temp_like(s, all);
    struct bounce b = {parts, mine, all, result, first_kept(shape)};
    bounce(s, shape, &b);
}

/* --- teams: logarithmic algorithms --- */

/* Both groups are divided into the same number of runs of consecutive ranks, of nearly equal
 * length. The t-th runs of both groups form team t; the first rank of each run is a leader, so that
 * a team has a leader in either group. The ranks of a run send their contributions to the leader of
 * the other run, and the two leaders exchange them: then both have those of the whole team. Now two
 * leaders, of different teams and different groups, can act for their teams. In the end, each
 * leader sends the result to the other run. */
struct teams {
    int count, team; /* number of teams; that of this rank */
    bool leads;
    int leader;        /* the leader in the remote group */
    int local, remote; /* ranks of the team in either group */
    bool sends_back;   /* whether the other leader must learn what its own run has contributed, */
    bool gets_back;    /* and whether this one must */
};

static int run_length(int ranks, int count, int t)
{
    return (int)(nbc_part_start(ranks, count, t + 1) - nbc_part_start(ranks, count, t));
}

/* Returns the leader of team t in the remote group. */
static int leader_of(const struct nbc_shape *shape, int count, int t)
{
    return (int)nbc_part_start(shape->remote_size, count, t);
}

static struct teams teams(const struct nbc_shape *shape, int count)
{
    int each = shape->size / count, rest = shape->size % count, big = rest * (each + 1);
    int rank = shape->rank;
    struct teams t = {.count = count};
    /* mutants: <= for <: both ways give one number */
    t.team = rank < big ? rank / (each + 1) : rest + (rank - big) / each;
    t.leads = rank == nbc_part_start(shape->size, count, t.team);
    t.leader = leader_of(shape, count, t.team);
    t.local = run_length(shape->size, count, t.team);
    t.remote = run_length(shape->remote_size, count, t.team);
    t.sends_back = t.remote > 1 && count > 1;
    t.gets_back = t.local > 1 && count > 1;
    return t;
}

/* Barrier, linear: every rank signals all remote ranks, and leaves when the whole remote group has
 * entered.
 *
 *   a0   →b0 →b1        a1   →b1 →b0        and likewise from b to a
 *
 * Cost: α + 2R o. For small groups. */
void nbc_barrier_inter_linear(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref nothing = nbc_temp_bytes(s, 0);
    for (int i = 0; i < shape->remote_size; i++)
        nbc_recv(s, nothing, i, NBC_NONE);
    send_to_all(s, shape, nothing);
}

/* Barrier, dissemination over min(L, R) teams: in round k a leader signals the other group's leader
 * of the team 2^k above. Afterwards it has signals of 2^(k+1) whole teams.
 *
 *   a0 ↔ b0, a1 ↔ b1;   k = 0: a0→b1, a1→b0, b0→a1, b1→a0
 *
 * Cost: (1 + ⌈log₂ min(L, R)⌉) α, and 2α + (L/R or R/L) o more if a team has more than two
 * ranks. For large groups. Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization",
 * 1988. */
void nbc_barrier_inter_dissemination(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct teams t = teams(shape, smaller_group(shape));
    int rounds = nbc_log2_ceil(t.count);
    struct nbc_ref nothing = nbc_temp_bytes(s, 0);
    nbc_id all = NBC_NONE, own_run = NBC_NONE, received[31];
    if (!t.leads) {
        nbc_recv(s, nothing, t.leader, NBC_NONE);
        nbc_send(s, nothing, t.leader, NBC_NONE);
        return;
    }
    for (int i = 0; i < t.remote; i++)
        all = nbc_join(s, all, nbc_recv(s, nothing, t.leader + i, NBC_NONE));
    if (t.gets_back)
        own_run = nbc_recv(s, nothing, t.leader, NBC_NONE);
    for (int k = 0; k < rounds; k++) {
        int below = nbc_relative(t.team, 1 << k, t.count);
        received[k] = nbc_recv(s, nothing, leader_of(shape, t.count, below), NBC_NONE);
    }
    nbc_send(s, nothing, t.leader, NBC_NONE);
    if (t.sends_back)
        nbc_send(s, nothing, t.leader, all);
    all = nbc_join(s, all, own_run);
    for (int k = 0; k < rounds; k++) {
        int above = nbc_absolute(1 << k, t.team, t.count);
        nbc_send(s, nothing, leader_of(shape, t.count, above), all);
        all = nbc_join(s, all, received[k]);
    }
    for (int i = 1; i < t.remote; i++)
        nbc_send(s, nothing, t.leader + i, all);
}

/* The partial results of a leader: of the local runs' vectors, and of the remote runs'. They are
 * sent as two messages. They could not be contiguous, since elements of a type may reach beyond its
 * extent, into those of another vector. */
struct partial {
    struct nbc_ref local, remote;
    nbc_id local_ready, remote_ready;
};

static struct partial make_room(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct nbc_ref like = nbc_recv_block(shape, 0);
    struct nbc_ref local = nbc_temp_like(s, like), remote = nbc_temp_like(s, like);
    return (struct partial){local, remote, NBC_NONE, NBC_NONE};
}

/* Emits what a leader does within its team. If there is one team only, that is all. */
static struct partial reduce_team(struct nbc_sched *s, const struct nbc_shape *shape,
                                  const struct teams *t)
{
    struct nbc_ref mine = nbc_send_block(shape, 0), result = nbc_recv_block(shape, 0);
    struct partial p = {mine, result, NBC_NONE, NBC_NONE};
    if (t->count > 1)
        p.remote = nbc_temp_like(s, result);
    struct fold run = {t->leader, t->remote, p.remote, 0, p.remote, true};
    p.remote_ready = fold(s, shape, run);
    if (t->gets_back) {
        p.local = nbc_temp_like(s, result);
        p.local_ready = nbc_recv(s, p.local, t->leader, NBC_NONE);
    }
    nbc_send(s, mine, t->leader, NBC_NONE);
    if (t->sends_back)
        nbc_send(s, p.remote, t->leader, p.remote_ready);
    return p;
}

/* Reduces `mine` and the vector of `peer`, received in `in`, to dst; the lower team is the left
 * operand. */
static nbc_id merge(struct nbc_sched *s, struct nbc_ref dst, struct nbc_ref mine, nbc_id ready,
                    struct nbc_ref in, int peer, bool mine_left)
{
    nbc_id received = nbc_recv(s, in, peer, NBC_NONE);
    nbc_id done =
        mine_left ? nbc_reduce(s, dst, mine, in, received) : nbc_reduce(s, dst, in, mine, received);
    nbc_after(s, done, ready);
    return done;
}

/* Merges this rank's team with the one whose number differs in `bit`. Local vectors here are remote
 * ones there. In the last round, a leader that has no rank to send the result to needs no more
 * contributions of its own group. */
static struct partial merge_teams(struct nbc_sched *s, const struct nbc_shape *shape,
                                  const struct teams *t, int bit, const struct partial *p)
{
    int other = t->team ^ bit, peer = leader_of(shape, t->count, other);
    bool last = 2 * bit == t->count, mine_left = !(t->team & bit);
    struct partial in = make_room(s, shape), next = make_room(s, shape);
    if (last)
        next.remote = nbc_recv_block(shape, 0);
    next.remote_ready =
        merge(s, next.remote, p->remote, p->remote_ready, in.remote, peer, mine_left);
    if (!last || t->remote > 1)
        next.local_ready =
            merge(s, next.local, p->local, p->local_ready, in.local, peer, mine_left);
    nbc_send(s, p->local, peer, p->local_ready);
    if (!last || run_length(shape->size, t->count, other) > 1)
        nbc_send(s, p->remote, peer, p->remote_ready);
    return next;
}

/* Allreduce, recursive doubling over teams, whose number is the largest possible power of two: in
 * each round the leaders of two teams exchange, across the groups, their partial results of both
 * groups.
 *
 *   a0 ↔ b0, a1 ↔ b1;   a0 ↔ b1, a1 ↔ b0
 *
 * Teams are runs of ranks and the lower one is the left operand: rank order, the same bits
 * everywhere. Cost: α + nβ + log₂T (α + o + 2nβ + 2nγ) with T teams, and
 * 2 (α + nβ) + max(L, R) / T (o + nβ + nγ) more if a team has more than two ranks. Temporary
 * memory: 4 log₂T + 2 + WINDOW vectors. For small vectors and large groups. After Thakur,
 * Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005. */
void nbc_allreduce_inter_recursive_doubling(struct nbc_sched *s, const struct nbc_shape *shape)
{
    struct teams t = teams(shape, nbc_pow2_floor(smaller_group(shape)));
    if (!nbc_has_bytes(shape, nbc_send_block(shape, 0)))
        return;
    if (!t.leads) {
        nbc_recv(s, nbc_recv_block(shape, 0), t.leader, NBC_NONE);
        nbc_send(s, nbc_send_block(shape, 0), t.leader, NBC_NONE);
        return;
    }
    struct partial p = reduce_team(s, shape, &t);
    for (int bit = 1; bit < t.count; bit *= 2)
        p = merge_teams(s, shape, &t, bit, &p);
    for (int i = 1; i < t.remote; i++)
        nbc_send(s, p.local, t.leader + i, p.local_ready);
}
