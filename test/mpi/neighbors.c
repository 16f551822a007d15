/* SPDX-License-Identifier: MIT */
/* The neighborhood collectives on all sorts of topologies. Which block goes where is first
 * established by plain messages, as the standard defines it, and not by what an MPI's own
 * neighborhood collectives do: some are wrong where a process is its neighbor's neighbor twice. */
#include "batch.h"

static const int sizes[] = {0, 1, 7, 500};
enum { NSIZES = sizeof sizes / sizeof *sizes };

static int topologies;

static void sweep(const struct group *g, enum mode mode, int serial)
{
    struct batch batch = {.mode = mode};

    for (int coll = NINTRA; coll < NCOLLS; coll++)
        for (int i = 0; i < NSIZES; i++) {
            uint64_t seed = mix_in(mix_in(test_seed, serial), coll * NSIZES + i);
            struct spec s = spec_random((enum coll)coll, g, seed, 1);
            s.style.fine = (coll + i + serial) % 2 == 0;
            s.count = s.style.fine ? sizes[i] : (sizes[i] + SEXTET - 1) / SEXTET;
            batch_add(&batch, &s);
        }
    batch_run(&batch);
}

/* All collectives on a communicator, which is freed. */
static void run_cases(MPI_Comm comm, const char *what)
{
    struct group *g;

    topologies++; /* on every rank: seeds come from it */
    if (comm == MPI_COMM_NULL)
        return;
    test_place("%s", what);
    g = group_new(comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    topology_verify(g->topology, comm);
    sweep(g, NONBLOCKING, topologies);
    if (test_has_persistent())
        sweep(g, PERSISTENT, topologies);
    group_delete(g);
}

/* Rows and columns of a grid, whose neighbors are others than the grid's. */
TEST(cartesian_parts)
{
    int dims[] = {0, 0}, periods[] = {1, 0};
    MPI_Comm grid, part;

    MPI_Dims_create(test_size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    for (int d = 0; d < 2; d++) {
        int remain[] = {d == 0, d == 1};
        MPI_Cart_sub(grid, remain, &part);
        run_cases(part, "MPI_Cart_sub");
    }
    MPI_Comm_dup(grid, &part);
    run_cases(part, "MPI_Comm_dup of a grid");
    MPI_Comm_free(&grid);
}

/* So many edges that their arrays are not kept from call to call: another content at the same place
 * is another call. */
TEST(many_edges)
{
    enum { N = 1100 };
    static int peers[N], counts[N], from[N], to[N], in[N], out[N];
    MPI_Comm loops;
    for (int i = 0; i < N; i++) {
        peers[i] = test_rank;
        counts[i] = 1;
        from[i] = i;
        in[i] = 1000 * test_rank + i;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, N, peers, MPI_UNWEIGHTED, N, peers,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &loops);
    for (int turn = 0; turn < 4; turn++) {
        MPI_Request r;
        int wrong = 0;
        for (int i = 0; i < N; i++)
            to[i] = turn % 2 ? N - 1 - i : i;
        MPI_Ineighbor_alltoallv(in, counts, from, MPI_INT, out, counts, to, MPI_INT, loops, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++)
            wrong += out[to[i]] != in[i];
        EXPECT_INT(wrong, 0, "many edges, turn %d", turn);
    }
    MPI_Comm_free(&loops);
}

TEST(random_topologies)
{
    struct rng rng = rng_shared(1);
    for (int i = 0; i < test_scale(20, 400); i++)
        run_cases(topology_make(MPI_COMM_WORLD, (enum topology_kind)(i % NTOPOLOGIES), &rng),
                  "random");
}

AROUND_TESTS(kinds_init, kinds_finish)
