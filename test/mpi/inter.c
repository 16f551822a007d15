/* SPDX-License-Identifier: MIT */
/* Collectives between the two groups of an intercommunicator: all 15, nonblocking and persistent,
 * groups of different sizes, every rank of either group as root, every algorithm, sizes from
 * nothing to large, receiving with and without gaps. Compared with the definition, byte by byte. */
#include "library.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum coll {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER_BLOCK,
    REDUCE_SCATTER,
    NCOLLS
};

static const char *const coll_names[NCOLLS] = {
    "barrier",        "bcast",
    "gather",         "gatherv",
    "scatter",        "scatterv",
    "allgather",      "allgatherv",
    "alltoall",       "alltoallv",
    "alltoallw",      "reduce",
    "allreduce",      "reduce_scatter_block",
    "reduce_scatter",
};

/* Hints; a name that a collective doesn't have is as good as none. */
static const char *const algorithms[] = {"",
                                         "inter_linear",
                                         "inter_throttled",
                                         "inter_dissemination",
                                         "inter_recursive_doubling",
                                         "inter_bounce"};
enum { NALGORITHMS = sizeof algorithms / sizeof *algorithms, MAX_BATCH = 64 };

static const int sizes[] = {0, 1, 5, 300, 3000};
enum { NSIZES = sizeof sizes / sizeof *sizes };

static const uint64_t untouched = UINT64_C(0x5A5A5A5A5A5A5A5A);

/* --- the groups --- */

/* Ranks of the world below `split` are group 0, the others group 1. */
static struct {
    MPI_Comm comm;
    int side, rank, size; /* of this rank: its group, its rank in there, how many they are */
    int remote;           /* how many the others are */
    int first[2];         /* world rank of the first of either group */
} groups;

static MPI_Datatype sparse; /* an element, and a gap as wide */
static MPI_Op affine;

static int world_rank(int side, int rank)
{
    return groups.first[side] + rank;
}

static int group_size(int side)
{
    return side == groups.side ? groups.size : groups.remote;
}

static void make_groups(int split)
{
    MPI_Comm local;
    groups.side = test_rank >= split;
    groups.first[0] = 0;
    groups.first[1] = split;
    MPI_Comm_split(MPI_COMM_WORLD, groups.side, test_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, groups.first[!groups.side], 7, &groups.comm);
    MPI_Comm_free(&local);
    MPI_Comm_rank(groups.comm, &groups.rank);
    MPI_Comm_size(groups.comm, &groups.size);
    MPI_Comm_remote_size(groups.comm, &groups.remote);
}

/* --- data --- */

/* Maps x → ax + b modulo a prime: a below, b above. Left one first. */
static uint64_t apply(uint64_t left, uint64_t right)
{
    uint64_t a = left & 0xFFFFFFFF, b = left >> 32, c = right & 0xFFFFFFFF, d = right >> 32;
    return a * c % 65521 | (c * b + d) % 65521 << 32;
}

static void apply_all(void *in, void *inout, int *n, MPI_Datatype *type)
{
    uint64_t *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *n; i++)
        right[i] = apply(left[i], right[i]);
}

/* One side of a call on this rank: n blocks. */
struct blocks {
    int n;
    int *counts, *displs;
    int unit; /* words from one element to the next */
    size_t words;
    uint64_t *data, *want;
    MPI_Datatype *types;
};

struct op {
    enum coll coll;
    int root_side, root; /* of rooted ones */
    int size;
    int algorithm;
    bool sparse;
    struct blocks out, in;
    MPI_Info info;
};

static bool is_rooted(enum coll coll)
{
    return (coll >= BCAST && coll <= SCATTERV) || coll == REDUCE;
}

static bool is_uneven(enum coll coll)
{
    return coll == GATHERV || coll == SCATTERV || coll == ALLGATHERV || coll == ALLTOALLV ||
           coll == ALLTOALLW;
}

static bool is_here(const struct op *op)
{
    return groups.side == op->root_side && groups.rank == op->root;
}

/* Gives to, or takes from, the root. */
static bool is_leaf(const struct op *op)
{
    return groups.side != op->root_side;
}

/* Elements that go from one rank to another, both of the world. The size of a block of a gather
 * depends on its source alone, of a scatter on its destination. */
static int amount(const struct op *op, int from, int to)
{
    if (!is_uneven(op->coll))
        return op->size;
    if (op->coll == GATHERV || op->coll == ALLGATHERV)
        to = 0;
    if (op->coll == SCATTERV)
        from = 0;
    return op->size * ((2 * from + to) % 3);
}

/* Of a vector of reduce_scatter, the part of a rank. */
static int scattered(const struct op *op, int side, int rank)
{
    int n = group_size(side);
    if (op->coll == REDUCE_SCATTER_BLOCK)
        return op->size * group_size(!side);
    int total = 3 * op->size * test_size;
    return rank < n - 1 ? op->size * (rank % 3)
                        : total - op->size * ((n - 1) / 3 * 3) - op->size * ((n - 1) % 3 == 2);
}

static void add_block(struct blocks *b, int count, int slack)
{
    int last = b->n ? b->displs[b->n - 1] + b->counts[b->n - 1] : 0;
    b->counts[b->n] = count;
    b->displs[b->n++] = last + slack;
    b->words = (size_t)(last + slack + count) * (size_t)b->unit;
}

static struct blocks blocks_new(const struct op *op, bool gaps)
{
    size_t most = (size_t)test_size + 1;
    struct blocks b = {.unit = gaps && op->sparse && op->coll < REDUCE ? 2 : 1};
    b.counts = test_alloc(most * sizeof *b.counts);
    b.displs = test_alloc(most * sizeof *b.displs);
    b.types = test_alloc(most * sizeof *b.types);
    for (size_t i = 0; i < most; i++)
        b.types[i] = b.unit == 2 ? sparse : MPI_UNSIGNED_LONG_LONG;
    return b;
}

static int vector_size(const struct op *op)
{
    if (op->coll != REDUCE_SCATTER && op->coll != REDUCE_SCATTER_BLOCK)
        return op->size;
    int sum = 0;
    for (int i = 0; i < groups.size; i++)
        sum += scattered(op, groups.side, i);
    return sum;
}

static bool each_sends_each(enum coll coll)
{
    return coll >= ALLTOALL && coll <= ALLTOALLW;
}

static void make_out(struct op *op)
{
    bool scatter = op->coll == SCATTER || op->coll == SCATTERV;
    op->out = blocks_new(op, false);
    if (op->coll <= BCAST)
        return;
    if (each_sends_each(op->coll) || (scatter && is_here(op))) {
        for (int i = 0; i < groups.remote; i++)
            add_block(&op->out, amount(op, test_rank, world_rank(!groups.side, i)),
                      is_uneven(op->coll));
        return;
    }
    if (scatter || (is_rooted(op->coll) && !is_leaf(op)))
        return;
    add_block(&op->out, op->coll < REDUCE ? amount(op, test_rank, 0) : vector_size(op), 0);
}

static void make_in(struct op *op)
{
    bool gather = op->coll == GATHER || op->coll == GATHERV;
    op->in = blocks_new(op, op->coll != BCAST);
    if (op->coll == BARRIER)
        return;
    if (op->coll == REDUCE_SCATTER || op->coll == REDUCE_SCATTER_BLOCK) {
        add_block(&op->in, scattered(op, groups.side, groups.rank), 0);
    } else if (op->coll == REDUCE || op->coll == ALLREDUCE) {
        if (op->coll == ALLREDUCE || is_here(op))
            add_block(&op->in, op->size, 0);
    } else if (op->coll == BCAST) {
        if (is_leaf(op) || is_here(op))
            add_block(&op->in, op->size, 0);
    } else if (op->coll == SCATTER || op->coll == SCATTERV) {
        if (is_leaf(op))
            add_block(&op->in, amount(op, 0, test_rank), 0);
    } else if (!gather || is_here(op)) {
        for (int i = 0; i < groups.remote; i++)
            add_block(&op->in, amount(op, world_rank(!groups.side, i), test_rank),
                      is_uneven(op->coll));
    }
}

static struct op *op_new(enum coll coll, int root_side, int root, int size, int algorithm,
                         bool gaps)
{
    struct op *op = test_alloc(sizeof *op);
    *op = (struct op){coll, root_side, root, size, algorithm, gaps, .info = MPI_INFO_NULL};
    make_out(op);
    make_in(op);
    for (int i = 0; i < 2; i++) {
        struct blocks *b = i ? &op->in : &op->out;
        b->data = test_alloc((b->words + 1) * sizeof *b->data);
        b->want = test_alloc((b->words + 1) * sizeof *b->want);
    }
    if (*algorithms[algorithm]) {
        MPI_Info_create(&op->info);
        MPI_Info_set(op->info, "nbcshim_algorithm", algorithms[algorithm]);
    }
    return op;
}

static void op_free(struct op *op)
{
    for (int i = 0; i < 2; i++) {
        struct blocks *b = i ? &op->in : &op->out;
        free(b->counts);
        free(b->displs);
        free(b->types);
        free(b->data);
        free(b->want);
    }
    if (op->info != MPI_INFO_NULL)
        MPI_Info_free(&op->info);
    free(op);
}

/* Element i of what one rank of the world has for another one (0: for all). */
static uint64_t element(int from, int to, int i, int round)
{
    uint64_t x = mix_in(mix_in(mix_in(test_seed + (uint64_t)round, from), to), i);
    return (x % 65520 + 1) | x / 65536 % 65521 << 32;
}

static uint64_t *place(const struct blocks *b, uint64_t *data, int block, int i)
{
    return &data[(b->displs[block] + i) * b->unit];
}

static bool addressed(enum coll coll)
{
    return each_sends_each(coll) || coll == SCATTER || coll == SCATTERV;
}

/* What element i of block k must be. */
static uint64_t definition(const struct op *op, int k, int i, int round)
{
    int root = world_rank(op->root_side, op->root);
    switch (op->coll) {
    case BCAST:
        return element(root, 0, i, round);
    case SCATTER:
    case SCATTERV:
        return element(root, test_rank, i, round);
    case GATHER:
    case GATHERV:
    case ALLGATHER:
    case ALLGATHERV:
        return element(world_rank(!groups.side, k), 0, i, round);
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        return element(world_rank(!groups.side, k), test_rank, i, round);
    default:
        break;
    }
    for (int r = 0; r < groups.rank && op->coll > ALLREDUCE; r++)
        i += scattered(op, groups.side, r);
    uint64_t x = element(world_rank(!groups.side, 0), 0, i, round);
    for (int r = 1; r < groups.remote; r++)
        x = apply(x, element(world_rank(!groups.side, r), 0, i, round));
    return x;
}

static void fill(struct op *op, int round)
{
    struct blocks *out = &op->out, *in = &op->in;
    for (size_t i = 0; i < out->words; i++)
        out->data[i] = untouched;
    for (size_t i = 0; i < in->words; i++)
        in->data[i] = in->want[i] = untouched;
    for (int k = 0; k < out->n; k++)
        for (int i = 0; i < out->counts[k]; i++)
            *place(out, out->data, k, i) =
                element(test_rank, addressed(op->coll) ? world_rank(!groups.side, k) : 0, i, round);
    for (int k = 0; k < in->n; k++)
        for (int i = 0; i < in->counts[k]; i++)
            *place(in, in->want, k, i) = definition(op, k, i, round);
    if (op->coll == BCAST && is_here(op))
        memcpy(in->data, in->want, in->words * sizeof *in->data);
    memcpy(out->want, out->data, out->words * sizeof *out->data);
}

static void check(const struct op *op, const char *how)
{
    for (int s = 0; s < 2; s++) {
        const struct blocks *b = s ? &op->in : &op->out;
        size_t i = 0;
        while (i < b->words && b->data[i] == b->want[i])
            i++;
        EXPECT(i == b->words,
               "%s %s, groups of %d and %d, root %d of group %d, size %d, %s: %s %zu", how,
               coll_names[op->coll], groups.size, groups.remote, op->root, op->root_side, op->size,
               algorithms[op->algorithm], s ? "received word" : "sent word", i);
    }
}

/* --- calls --- */

static int *make_parts(const struct op *op)
{
    int *parts = test_alloc((size_t)groups.size * sizeof *parts);
    for (int i = 0; i < groups.size; i++)
        parts[i] = scattered(op, groups.side, i);
    return parts;
}

/* Displacements of alltoallw. */
static int *in_bytes(const struct blocks *b)
{
    int *displs = test_alloc((size_t)(b->n + 1) * sizeof *displs);
    for (int i = 0; i < b->n; i++)
        displs[i] = b->displs[i] * b->unit * (int)sizeof *b->data;
    return displs;
}

/* The arguments that do not count on a rank are rubbish there. */
static int op_post(struct op *op, bool init, MPI_Request *request)
{
    MPI_Comm comm = groups.comm;
    MPI_Info info = op->info;
    MPI_Datatype word = MPI_UNSIGNED_LONG_LONG;
    struct blocks *o = &op->out, *n = &op->in;
    void *out = o->data, *in = n->data;
    MPI_Datatype intype = n->types[0];
    int *oc = o->counts, *od = o->displs, *ic = n->counts, *id = n->displs;
    int ocount = o->n ? oc[0] : -1, icount = n->n ? ic[0] : -1;
    int root = is_leaf(op) ? op->root : is_here(op) ? MPI_ROOT : MPI_PROC_NULL;
    int count = n->n ? icount : ocount, error;
    int *parts = make_parts(op), *obytes = in_bytes(o), *ibytes = in_bytes(n);

#define CALL(Name, name, ...)                                   \
    (init ? MPI_##Name##_init(__VA_ARGS__, comm, info, request) \
          : MPI_I##name(__VA_ARGS__, comm, request))
    switch (op->coll) {
    case BARRIER:
        error = init ? MPI_Barrier_init(comm, info, request) : MPI_Ibarrier(comm, request);
        break;
    case BCAST:
        error = CALL(Bcast, bcast, in, icount, word, root);
        break;
    case GATHER:
        error = CALL(Gather, gather, out, ocount, word, in, icount, intype, root);
        break;
    case GATHERV:
        error = CALL(Gatherv, gatherv, out, ocount, word, in, ic, id, intype, root);
        break;
    case SCATTER:
        error = CALL(Scatter, scatter, out, ocount, word, in, icount, intype, root);
        break;
    case SCATTERV:
        error = CALL(Scatterv, scatterv, out, oc, od, word, in, icount, intype, root);
        break;
    case ALLGATHER:
        error = CALL(Allgather, allgather, out, ocount, word, in, icount, intype);
        break;
    case ALLGATHERV:
        error = CALL(Allgatherv, allgatherv, out, ocount, word, in, ic, id, intype);
        break;
    case ALLTOALL:
        error = CALL(Alltoall, alltoall, out, ocount, word, in, icount, intype);
        break;
    case ALLTOALLV:
        error = CALL(Alltoallv, alltoallv, out, oc, od, word, in, ic, id, intype);
        break;
    case ALLTOALLW:
        error = CALL(Alltoallw, alltoallw, out, oc, obytes, o->types, in, ic, ibytes, n->types);
        break;
    case REDUCE:
        error = CALL(Reduce, reduce, out, in, count, word,
                     root == MPI_PROC_NULL ? MPI_OP_NULL : affine, root);
        break;
    case ALLREDUCE:
        error = CALL(Allreduce, allreduce, out, in, count, word, affine);
        break;
    case REDUCE_SCATTER_BLOCK:
        error = CALL(Reduce_scatter_block, reduce_scatter_block, out, in, icount, word, affine);
        break;
    case REDUCE_SCATTER:
        error = CALL(Reduce_scatter, reduce_scatter, out, in, parts, word, affine);
        break;
    default:
        error = MPI_ERR_OTHER;
    }
#undef CALL
    free(parts);
    free(obytes);
    free(ibytes);
    return error;
}

/* Operations that run at the same time. */
struct batch {
    int n;
    struct op *op[MAX_BATCH];
};

static void batch_run(struct batch *b, bool persistent)
{
    MPI_Request request[MAX_BATCH];
    for (int i = 0; i < b->n; i++) {
        fill(b->op[i], 0);
        test_place("%s between groups", coll_names[b->op[i]->coll]);
        int error = op_post(b->op[i], persistent, &request[i]);
        EXPECT_INT(error, 0, "%s", coll_names[b->op[i]->coll]);
    }
    for (int round = 0; round < (persistent ? 2 : 1); round++) {
        /* Starts in any order. */
        struct rng rng = rng_private(round);
        int order[MAX_BATCH];
        for (int i = 0; i < b->n; i++)
            order[i] = i;
        rng_shuffle(&rng, order, b->n);
        for (int i = 0; persistent && i < b->n; i++) {
            fill(b->op[order[i]], round);
            MPI_Start(&request[order[i]]);
        }
        MPI_Waitall(b->n, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < b->n; i++)
            check(b->op[i], persistent ? "persistent" : "nonblocking");
    }
    for (int i = 0; i < b->n; i++) {
        if (persistent)
            MPI_Request_free(&request[i]);
        op_free(b->op[i]);
    }
    b->n = 0;
}

static void batch_add(struct batch *b, struct op *op, bool persistent)
{
    b->op[b->n++] = op;
    if (b->n == MAX_BATCH)
        batch_run(b, persistent);
}

static void try_collective(enum coll coll, bool persistent)
{
    struct batch b = {0};
    int nroots = is_rooted(coll) ? test_size : 1;
    for (int root = 0; root < nroots; root++)
        for (int s = 0; s < (coll == BARRIER ? 1 : NSIZES); s++)
            for (int a = 0; a < (persistent ? NALGORITHMS : 1); a++) {
                int side = root >= groups.first[1];
                batch_add(
                    &b,
                    op_new(coll, side, root - groups.first[side], sizes[s], a, (root + s + a) % 2),
                    persistent);
            }
    batch_run(&b, persistent);
}

/* A rank leaves a barrier when all of the other group have entered: not while `late` stays away,
 * which it does until all of the other group have looked. */
static void try_late(int late, int algorithm, bool persistent)
{
    enum { LOOKS = 50, LOOKED = 9 };
    int side = late >= groups.first[1], done = 0;
    struct op *op = op_new(BARRIER, 0, 0, 0, algorithm, false);
    MPI_Request request;
    if (persistent)
        op_post(op, true, &request);
    for (int i = 0; test_rank == late && i < groups.remote; i++)
        MPI_Recv(NULL, 0, MPI_INT, world_rank(!side, i), LOOKED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (persistent)
        MPI_Start(&request);
    else
        op_post(op, false, &request);
    if (groups.side != side) {
        for (int i = 0; i < LOOKS && !done; i++)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        EXPECT(!done, "barrier %s, groups of %d and %d: left before world rank %d entered",
               algorithms[algorithm], groups.size, groups.remote, late);
        MPI_Send(NULL, 0, MPI_INT, late, LOOKED, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent)
        MPI_Request_free(&request);
    op_free(op);
}

/* nbcshim has no record of a communicator that is made without it. The leaders of the two groups
 * must tell each other so. unknown: 1 for the first group, 2 for the second, 3 for both. */
static void try_unknown(int unknown)
{
    int (*dup)(MPI_Comm, MPI_Comm *) =
        (int (*)(MPI_Comm, MPI_Comm *))library_below("PMPI_Comm_dup");
    MPI_Comm half, local, inter;
    int side = test_rank > 0, remote, one = 1, sum = 0;
    EXPECT(dup, "there is no PMPI_Comm_dup");
    MPI_Comm_split(MPI_COMM_WORLD, side, test_rank, &half);
    (unknown >> side & 1 ? dup : MPI_Comm_dup)(half, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, !side, 7, &inter);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT_INT(sum, remote, "unknown %d", unknown);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    test_init(&argc, &argv);
    MPI_Type_create_resized(MPI_UNSIGNED_LONG_LONG, 0, 16, &sparse);
    MPI_Type_commit(&sparse);
    MPI_Op_create(apply_all, 0, &affine);
    for (int split = 1; split < test_size; split++) {
        if (test_size > 5 && split != 1 && split != test_size / 2 && split != test_size - 1 &&
            !test_soak)
            continue;
        make_groups(split);
        for (int c = 0; c < NCOLLS; c++) {
            try_collective(c, false);
            if (test_has_persistent())
                try_collective(c, true);
        }
        for (int late = 0; late < test_size; late++) {
            try_late(late, 0, false);
            for (int a = 0; a < NALGORITHMS && test_has_persistent(); a++)
                try_late(late, a, true);
        }
        MPI_Comm_free(&groups.comm);
    }
    for (int unknown = 0; unknown < 4 && test_size > 1; unknown++)
        try_unknown(unknown);
    MPI_Op_free(&affine);
    MPI_Type_free(&sparse);
    return test_done();
}
