/* SPDX-License-Identifier: MIT */
/* All collectives with plain numbers, for an MPI that simulates its ranks (SMPI). The other
 * programs use derived datatypes, intercommunicators, graphs or statuses in ways in which SMPI 3.32
 * itself fails. Blocking, nonblocking and persistent calls on two communicators, all pending at
 * once, and completed one by one or all together. */
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 6000, NCOMMS = 2, NCALLS = 22 };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, NFORMS };

struct place {
    MPI_Comm comm;
    int rank, size, left, right; /* neighbors on a ring */
};

/* One call. in, out, want: n numbers for each rank, and what out must become. */
struct call {
    const struct place *at;
    int n, root, round;
    int *in, *out, *want, *counts, *displs;
    MPI_Datatype *types;
    MPI_Request request;
};

static int value(const struct call *c, int src, int dst, int i)
{
    return (src * 31 + dst * 7 + i * 3 + c->round) % 1000;
}

/* The sum of what ranks first..last-1 give to dst. */
static int sum(const struct call *c, int first, int last, int dst, int i)
{
    int all = 0;
    for (int r = first; r < last; r++)
        all += value(c, r, dst, i);
    return all;
}

/* What each rank has in `in`, by destination, and what it expects. */
typedef void expects(struct call *c);

static void put(struct call *c, int block, int src, int dst)
{
    for (int i = 0; i < c->n; i++)
        c->want[block * c->n + i] = value(c, src, dst, i);
}

static void want_nothing(struct call *c)
{
    (void)c;
}

static void want_roots(struct call *c)
{
    put(c, 0, c->root, 0);
}

static void want_all(struct call *c)
{
    for (int r = 0; r < c->at->size; r++)
        put(c, r, r, 0);
}

static void want_all_at_root(struct call *c)
{
    if (c->at->rank == c->root)
        want_all(c);
}

static void want_part_of_root(struct call *c)
{
    put(c, 0, c->root, c->at->rank);
}

static void want_each(struct call *c)
{
    for (int r = 0; r < c->at->size; r++)
        put(c, r, r, c->at->rank);
}

static void put_sum(struct call *c, int first, int last, int dst)
{
    for (int i = 0; i < c->n; i++)
        c->want[i] = sum(c, first, last, dst, i);
}

static void want_sum(struct call *c)
{
    put_sum(c, 0, c->at->size, 0);
}

static void want_sum_at_root(struct call *c)
{
    if (c->at->rank == c->root)
        want_sum(c);
}

static void want_part_of_sum(struct call *c)
{
    put_sum(c, 0, c->at->size, c->at->rank);
}

static void want_prefix(struct call *c)
{
    put_sum(c, 0, c->at->rank + 1, 0);
}

static void want_prefix_before(struct call *c)
{
    if (c->at->rank > 0)
        put_sum(c, 0, c->at->rank, 0);
}

/* On a ring each rank has two neighbors; block k goes to neighbor k. */
static void want_neighbors(struct call *c)
{
    put(c, 0, c->at->left, 0);
    put(c, 1, c->at->right, 0);
}

static void want_from_neighbors(struct call *c)
{
    put(c, 0, c->at->left, 1);
    put(c, 1, c->at->right, 0);
}

#define IN c->in, c->n, MPI_INT
#define OUT c->out, c->n, MPI_INT
#define INS c->in, c->counts, c->displs, MPI_INT
#define OUTS c->out, c->counts, c->displs, MPI_INT
#define SUMS c->in, c->out, c->n, MPI_INT, MPI_SUM
#define BYTES(buffer) buffer, c->counts, c->displs + c->at->size, c->types
#define AINTS(buffer) buffer, c->counts, (MPI_Aint *)(c->displs + 2 * c->at->size), c->types

/* X(name, Name, arguments, what is expected) */
#define CALLS(X)                                                                                 \
    X(barrier, Barrier, (c->at->comm), want_nothing)                                             \
    X(bcast, Bcast, (OUT, c->root, c->at->comm), want_roots)                                     \
    X(gather, Gather, (IN, OUT, c->root, c->at->comm), want_all_at_root)                         \
    X(gatherv, Gatherv, (IN, OUTS, c->root, c->at->comm), want_all_at_root)                      \
    X(scatter, Scatter, (IN, OUT, c->root, c->at->comm), want_part_of_root)                      \
    X(scatterv, Scatterv, (INS, OUT, c->root, c->at->comm), want_part_of_root)                   \
    X(allgather, Allgather, (IN, OUT, c->at->comm), want_all)                                    \
    X(allgatherv, Allgatherv, (IN, OUTS, c->at->comm), want_all)                                 \
    X(alltoall, Alltoall, (IN, OUT, c->at->comm), want_each)                                     \
    X(alltoallv, Alltoallv, (INS, OUTS, c->at->comm), want_each)                                 \
    X(alltoallw, Alltoallw, (BYTES(c->in), BYTES(c->out), c->at->comm), want_each)               \
    X(reduce, Reduce, (SUMS, c->root, c->at->comm), want_sum_at_root)                            \
    X(allreduce, Allreduce, (SUMS, c->at->comm), want_sum)                                       \
    X(reduce_scatter_block, Reduce_scatter_block, (SUMS, c->at->comm), want_part_of_sum)         \
    X(reduce_scatter, Reduce_scatter, (c->in, c->out, c->counts, MPI_INT, MPI_SUM, c->at->comm), \
      want_part_of_sum)                                                                          \
    X(scan, Scan, (SUMS, c->at->comm), want_prefix)                                              \
    X(exscan, Exscan, (SUMS, c->at->comm), want_prefix_before)                                   \
    X(neighbor_allgather, Neighbor_allgather, (IN, OUT, c->at->comm), want_neighbors)            \
    X(neighbor_allgatherv, Neighbor_allgatherv, (IN, OUTS, c->at->comm), want_neighbors)         \
    X(neighbor_alltoall, Neighbor_alltoall, (IN, OUT, c->at->comm), want_from_neighbors)         \
    X(neighbor_alltoallv, Neighbor_alltoallv, (INS, OUTS, c->at->comm), want_from_neighbors)     \
    X(neighbor_alltoallw, Neighbor_alltoallw, (AINTS(c->in), AINTS(c->out), c->at->comm),        \
      want_from_neighbors)

#define STRIP(...) __VA_ARGS__

#define X(name, Name, args, wants)                                                           \
    static int make_##name(struct call *c, enum form form)                                   \
    {                                                                                        \
        if (form == PERSISTENT)                                                              \
            return MPI_##Name##_init(STRIP args, MPI_INFO_NULL, &c->request);                \
        return form == NONBLOCKING ? MPI_I##name(STRIP args, &c->request) : MPI_##Name args; \
    }
CALLS(X)
#undef X

static const struct row {
    const char *name;
    int (*make)(struct call *c, enum form form);
    expects *wants;
} rows[] = {
#define X(name, Name, args, wants) {#name, make_##name, wants},
    CALLS(X)
#undef X
};

static void fill(struct call *c, const struct row *row)
{
    size_t all = (size_t)c->n * (size_t)c->at->size;
    for (int r = 0; r < c->at->size; r++)
        for (int i = 0; i < c->n; i++)
            c->in[r * c->n + i] = value(c, c->at->rank, r, i);
    memset(c->out, -1, all * sizeof(int));
    memset(c->want, -1, all * sizeof(int));
    if (row->wants == want_roots && c->at->rank == c->root)
        put(c, 0, c->root, 0);
    if (row->wants == want_roots && c->at->rank == c->root)
        memcpy(c->out, c->want, (size_t)c->n * sizeof(int));
    row->wants(c);
}

static void check(const struct call *c, const struct row *row, enum form form)
{
    size_t all = (size_t)c->n * (size_t)c->at->size;
    EXPECT(memcmp(c->out, c->want, all * sizeof(int)) == 0,
           "%s, form %d, of %d on %d ranks, root %d, round %d: wrong result", row->name, form, c->n,
           c->at->size, c->root, c->round);
}

static struct call *call_new(const struct place *at, int n, int root)
{
    struct call *c = test_alloc(sizeof *c);
    size_t size = (size_t)at->size, all = size * (size_t)n;
    *c = (struct call){.at = at, .n = n, .root = root, .request = MPI_REQUEST_NULL};
    c->in = test_alloc(3 * all * sizeof(int));
    c->out = c->in + all;
    c->want = c->out + all;
    c->counts = test_alloc(size * sizeof(int));
    c->types = test_alloc(size * sizeof *c->types);
    /* Displacements in elements, in bytes, and in bytes as MPI_Aint. */
    c->displs = test_alloc(2 * size * sizeof(int) + size * sizeof(MPI_Aint));
    for (int r = 0; r < at->size; r++) {
        c->counts[r] = n;
        c->types[r] = MPI_INT;
        c->displs[r] = r * n;
        c->displs[at->size + r] = r * n * (int)sizeof(int);
        ((MPI_Aint *)(c->displs + 2 * size))[r] = (MPI_Aint)r * n * (MPI_Aint)sizeof(int);
    }
    return c;
}

static void call_delete(struct call *c)
{
    free(c->in);
    free(c->counts);
    free(c->types);
    free(c->displs);
    free(c);
}

static void run(const struct place *places, int n, enum form form)
{
    struct call *calls[NCOMMS * NCALLS];
    MPI_Request requests[NCOMMS * NCALLS];
    int rounds = form == PERSISTENT ? 2 : 1, ncalls = 0;
    for (int k = 0; k < NCOMMS * NCALLS; k++) {
        struct call *c = call_new(&places[k % NCOMMS], n, k % places[k % NCOMMS].size);
        if (form == PERSISTENT)
            rows[k / NCOMMS].make(c, form);
        calls[ncalls++] = c;
    }
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < ncalls; k++) {
            calls[k]->round = round;
            fill(calls[k], &rows[k / NCOMMS]);
            if (form == PERSISTENT)
                MPI_Start(&calls[k]->request);
            else
                rows[k / NCOMMS].make(calls[k], form);
            requests[k] = calls[k]->request;
        }
        for (int k = 0; form != BLOCKING && round == 0 && k < ncalls; k += 3)
            MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
        MPI_Waitall(ncalls, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < ncalls; k++)
            check(calls[k], &rows[k / NCOMMS], form);
    }
    for (int k = 0; k < ncalls; k++) {
        if (form == PERSISTENT)
            MPI_Request_free(&calls[k]->request);
        call_delete(calls[k]);
    }
}

/* The calls one after the other: a wait for the only operation is another than a poll. */
static void run_alone(const struct place *at, int n)
{
    for (int k = 0; k < NCALLS; k++) {
        struct call *c = call_new(at, n, k % at->size);
        fill(c, &rows[k]);
        rows[k].make(c, NONBLOCKING);
        double begin = MPI_Wtime();
        MPI_Wait(&c->request, MPI_STATUS_IGNORE);
        /* A poll takes 10 ms in this test. */
        EXPECT(MPI_Wtime() - begin < 10e-3, "%s of %d: the wait polls", rows[k].name, n);
        check(c, &rows[k], NONBLOCKING);
        call_delete(c);
    }
}

static struct place place_of(MPI_Comm comm)
{
    struct place p = {.comm = comm};
    MPI_Comm_rank(comm, &p.rank);
    MPI_Comm_size(comm, &p.size);
    p.left = (p.rank + p.size - 1) % p.size;
    p.right = (p.rank + 1) % p.size;
    return p;
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 300, MOST};
    int ring[] = {0}, half[] = {0}, around = 1;
    MPI_Comm split, comms[NCOMMS];
    test_init(&argc, &argv);
    bool alone = argc > 1;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, -test_rank, &split);
    MPI_Comm_size(MPI_COMM_WORLD, ring);
    MPI_Comm_size(split, half);
    MPI_Cart_create(MPI_COMM_WORLD, 1, ring, &around, 0, &comms[0]);
    MPI_Cart_create(split, 1, half, &around, 0, &comms[1]);
    MPI_Comm_free(&split);
    const struct place places[NCOMMS] = {place_of(comms[0]), place_of(comms[1])};
    /* Polls of many operations on many ranks take long. */
    bool many = test_size > 4;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        for (int form = 0; form < NFORMS && !alone && !(many && counts[k] == MOST); form++)
            run(places, counts[k] / (many ? 10 : 1), (enum form)form);
        if (alone)
            run_alone(&places[0], counts[k]);
    }
    for (int i = 0; i < NCOMMS; i++)
        MPI_Comm_free(&comms[i]);
    return test_done();
}
