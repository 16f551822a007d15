/* SPDX-License-Identifier: MIT */
#include "topology.h"

#include <stdlib.h>

enum { MAX_DIMS = 3, MAX_DEGREE = 5 };

static struct edges edges_new(int n)
{
    struct edges e = {n, test_alloc((size_t)n * sizeof(int)), test_alloc((size_t)n * sizeof(int))};

    return e;
}

static void edges_free(struct edges *e)
{
    free(e->peer);
    free(e->tag);
}

/* The k-th edge from one process to another at one end is the k-th at the other. */
static void number_edges(struct edges *e)
{
    for (int i = 0; i < e->n; i++) {
        e->tag[i] = 0;
        for (int j = 0; j < i; j++)
            e->tag[i] += e->peer[j] == e->peer[i];
    }
}

/* Block 2d goes to the negative neighbor, where it arrives from the positive one: block 2d + 1. */
struct topology *topology_cartesian(MPI_Comm comm)
{
    struct topology *t = test_alloc(sizeof *t);
    int ndims;

    MPI_Cartdim_get(comm, &ndims);
    t->in = edges_new(2 * ndims);
    t->out = edges_new(2 * ndims);
    for (int d = 0; d < ndims; d++) {
        int negative, positive;
        MPI_Cart_shift(comm, d, 1, &negative, &positive);
        t->in.peer[2 * d] = t->out.peer[2 * d] = negative;
        t->in.peer[2 * d + 1] = t->out.peer[2 * d + 1] = positive;
        t->out.tag[2 * d] = t->in.tag[2 * d + 1] = 2 * d;
        t->out.tag[2 * d + 1] = t->in.tag[2 * d] = 2 * d + 1;
    }
    return t;
}

static struct topology *graph(MPI_Comm comm)
{
    struct topology *t = test_alloc(sizeof *t);
    int rank, n;

    MPI_Comm_rank(comm, &rank);
    MPI_Graph_neighbors_count(comm, rank, &n);
    t->in = edges_new(n);
    t->out = edges_new(n);
    MPI_Graph_neighbors(comm, rank, n, t->in.peer);
    for (int i = 0; i < n; i++)
        t->out.peer[i] = t->in.peer[i];
    number_edges(&t->in);
    number_edges(&t->out);
    return t;
}

static struct topology *distributed(MPI_Comm comm)
{
    struct topology *t = test_alloc(sizeof *t);
    int nin, nout, weighted;
    int *weights;

    MPI_Dist_graph_neighbors_count(comm, &nin, &nout, &weighted);
    t->in = edges_new(nin);
    t->out = edges_new(nout);
    weights = test_alloc((size_t)(nin + nout) * sizeof *weights);
    MPI_Dist_graph_neighbors(comm, nin, t->in.peer, weighted ? weights : MPI_UNWEIGHTED, nout,
                             t->out.peer, weighted ? weights + nin : MPI_UNWEIGHTED);
    free(weights);
    number_edges(&t->in);
    number_edges(&t->out);
    return t;
}

struct topology *topology_of(MPI_Comm comm)
{
    int status;

    MPI_Topo_test(comm, &status);
    if (status == MPI_CART)
        return topology_cartesian(comm);
    if (status == MPI_GRAPH)
        return graph(comm);
    if (status == MPI_DIST_GRAPH)
        return distributed(comm);
    return NULL;
}

void topology_free(struct topology *t)
{
    if (!t)
        return;
    edges_free(&t->in);
    edges_free(&t->out);
    free(t);
}

static int token(int from, int to, int tag)
{
    return (from * 1000 + to) * 100 + tag;
}

/* For each dimension: a message down, received from above, and one up, received from below. */
static void exchange_cartesian(int *received, const int *sent, MPI_Comm comm)
{
    int ndims;

    MPI_Cartdim_get(comm, &ndims);
    for (int d = 0; d < ndims; d++) {
        int below, above;
        MPI_Cart_shift(comm, d, 1, &below, &above);
        MPI_Sendrecv(sent + 2 * d, 1, MPI_INT, below, 0, received + 2 * d + 1, 1, MPI_INT, above, 0,
                     comm, MPI_STATUS_IGNORE);
        MPI_Sendrecv(sent + 2 * d + 1, 1, MPI_INT, above, 0, received + 2 * d, 1, MPI_INT, below, 0,
                     comm, MPI_STATUS_IGNORE);
    }
}

/* All messages with one tag: those of one pair of processes match in the order of the lists. */
static void exchange_graph(const struct topology *t, int *received, const int *sent, MPI_Comm comm)
{
    MPI_Request *r = test_alloc((size_t)(t->in.n + t->out.n) * sizeof(MPI_Request));

    for (int i = 0; i < t->in.n; i++)
        MPI_Irecv(received + i, 1, MPI_INT, t->in.peer[i], 0, comm, &r[i]);
    for (int i = 0; i < t->out.n; i++)
        MPI_Isend(sent + i, 1, MPI_INT, t->out.peer[i], 0, comm, &r[t->in.n + i]);
    MPI_Waitall(t->in.n + t->out.n, r, MPI_STATUSES_IGNORE);
    free(r);
}

void topology_verify(const struct topology *t, MPI_Comm comm)
{
    int rank, status;
    int *sent = test_alloc((size_t)t->out.n * sizeof(int));
    int *received = test_alloc((size_t)t->in.n * sizeof(int));

    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < t->out.n; i++)
        sent[i] = token(rank, t->out.peer[i], t->out.tag[i]);
    for (int i = 0; i < t->in.n; i++)
        received[i] = -1;
    MPI_Topo_test(comm, &status);
    if (status == MPI_CART)
        exchange_cartesian(received, sent, comm);
    else
        exchange_graph(t, received, sent, comm);
    for (int i = 0; i < t->in.n; i++)
        EXPECT(received[i] ==
                   (t->in.peer[i] == MPI_PROC_NULL ? -1 : token(t->in.peer[i], rank, t->in.tag[i])),
               "edge %d of a topology: its list says %d, the messages %d", i, t->in.peer[i],
               received[i]);
    free(sent);
    free(received);
}

/* --- making them -------------------------------------------------------------------------------*/

/* Periodic dimensions of 1 and 2 come often: the same process is on both sides there. */
static MPI_Comm make_cart(MPI_Comm comm, int size, struct rng *rng)
{
    int dims[MAX_DIMS], periodic[MAX_DIMS], ndims = 1 + rng_below(rng, MAX_DIMS), rest = size;
    MPI_Comm cart;

    for (int d = 0; d < ndims; d++) {
        dims[d] = 1 + rng_below(rng, rest < 4 ? rest : 4);
        if (d == ndims - 1 && rng_chance(rng, 60))
            dims[d] = rest;
        rest /= dims[d];
        periodic[d] = rng_chance(rng, 60);
    }
    MPI_Cart_create(comm, ndims, dims, periodic, 0, &cart);
    return cart;
}

/* Symmetric, with self edges and edges that are there twice. */
static MPI_Comm make_graph(MPI_Comm comm, int size, struct rng *rng)
{
    int *count = calloc((size_t)size * (size_t)size, sizeof *count);
    int *index = test_alloc((size_t)size * sizeof *index);
    int *edge = test_alloc((size_t)size * (size_t)size * 2 * sizeof *edge);
    int n = 0;
    MPI_Comm graph_comm;

    for (int i = 0; i < size; i++)
        for (int j = i; j < size; j++)
            if (rng_chance(rng, 40))
                count[i * size + j] = count[j * size + i] = 1 + (i != j && rng_chance(rng, 25));
    for (int i = 0; i < size; i++) {
        for (int j = 0; j < size; j++)
            for (int k = 0; k < count[i * size + j]; k++)
                edge[n++] = j;
        index[i] = n;
    }
    MPI_Graph_create(comm, size, index, edge, 0, &graph_comm);
    free(count);
    free(index);
    free(edge);
    return graph_comm;
}

/* Any number of edges from anyone to anyone, the same everywhere. */
static int draw_edges(int size, struct rng *rng, int **from, int **to)
{
    int n = rng_chance(rng, 10) ? 0 : rng_below(rng, size * MAX_DEGREE);

    *from = test_alloc((size_t)n * sizeof **from);
    *to = test_alloc((size_t)n * sizeof **to);
    for (int i = 0; i < n; i++) {
        (*from)[i] = rng_below(rng, size);
        (*to)[i] = rng_below(rng, size);
    }
    return n;
}

/* Each rank names the edges that leave it. */
static MPI_Comm make_dist(MPI_Comm comm, int rank, int size, struct rng *rng)
{
    int *from, *to, *mine;
    int n = draw_edges(size, rng, &from, &to), degree = 0;
    MPI_Comm result;

    mine = test_alloc((size_t)n * sizeof *mine);
    for (int i = 0; i < n; i++)
        if (from[i] == rank)
            mine[degree++] = to[i];
    MPI_Dist_graph_create(comm, degree > 0, &rank, &degree, mine, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                          &result);
    free(from);
    free(to);
    free(mine);
    return result;
}

/* Each rank names its edges, in an order of its own. */
static MPI_Comm make_adjacent(MPI_Comm comm, int rank, int size, struct rng *rng)
{
    int *from, *to, *in, *out;
    int n = draw_edges(size, rng, &from, &to), nin = 0, nout = 0;
    struct rng own = {mix_in(rng_next(rng), rank)};
    MPI_Comm result;

    in = test_alloc((size_t)n * sizeof *in);
    out = test_alloc((size_t)n * sizeof *out);
    for (int i = 0; i < n; i++) {
        if (to[i] == rank)
            in[nin++] = from[i];
        if (from[i] == rank)
            out[nout++] = to[i];
    }
    rng_shuffle(&own, in, nin);
    rng_shuffle(&own, out, nout);
    MPI_Dist_graph_create_adjacent(comm, nin, in, MPI_UNWEIGHTED, nout, out, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &result);
    free(from);
    free(to);
    free(in);
    free(out);
    return result;
}

MPI_Comm topology_make(MPI_Comm comm, enum topology_kind kind, struct rng *shared)
{
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    switch (kind) {
    case TOPOLOGY_CART:
        return make_cart(comm, size, shared);
    case TOPOLOGY_GRAPH:
        return make_graph(comm, size, shared);
    case TOPOLOGY_DIST:
        return make_dist(comm, rank, size, shared);
    default:
        return make_adjacent(comm, rank, size, shared);
    }
}

MPI_Comm topology_random(MPI_Comm comm, struct rng *shared)
{
    return topology_make(comm, (enum topology_kind)rng_below(shared, NTOPOLOGIES), shared);
}
