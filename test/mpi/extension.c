/* SPDX-License-Identifier: MIT */
/* The persistent collectives by the names of Open MPI 4's extension, whose header is included where
 * the MPI has it; each started twice. A program that refers to no other names gets them too. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#include "util.h"

enum { MOST = 16 };

static int in[MOST], out[MOST], ones[MOST], places[MOST], bytes[MOST];
static MPI_Datatype types[MOST];
static MPI_Aint far_bytes[MOST];

/* What rank src has for rank dst. */
static int word(int src, int dst)
{
    return 100 * src + dst + 1;
}

static void prepare(void)
{
    for (int i = 0; i < MOST; i++) {
        in[i] = word(test_rank, i);
        out[i] = -1;
    }
}

/* The first n results are those of the sources, for dst; nobody's where the source is -1. */
static void check(const char *what, int n, const int *source, int dst)
{
    for (int i = 0; i < MOST; i++) {
        int right = i < n && source[i] >= 0 ? word(source[i], dst) : -1;
        EXPECT_INT(out[i], right, "%s, result %d", what, i);
    }
}

#define TWICE(name, call, checks)                 \
    do {                                          \
        MPI_Request r_;                           \
        MPI_Request *r = &r_;                     \
        test_place(name);                         \
        call;                                     \
        for (int again = 0; again < 2; again++) { \
            prepare();                            \
            MPI_Start(r);                         \
            MPI_Wait(r, MPI_STATUS_IGNORE);       \
            checks;                               \
        }                                         \
        MPI_Request_free(r);                      \
    } while (0)

#define I MPI_INT
#define W MPI_COMM_WORLD, MPI_INFO_NULL, r
#define S MPI_SUM

static void move(int root)
{
    int n = test_size, all[MOST], me = test_rank, at_root = me == root ? n : 0;
    for (int i = 0; i < n; i++)
        all[i] = i;

    TWICE("barrier", MPIX_Barrier_init(W), check("barrier", 0, all, 0));
    TWICE("bcast", MPIX_Bcast_init(in, 1, I, root, W), EXPECT_INT(in[0], word(root, 0)));
    TWICE("gather", MPIX_Gather_init(in, 1, I, out, 1, I, root, W),
          check("gather", at_root, all, 0));
    TWICE("gatherv", MPIX_Gatherv_init(in, 1, I, out, ones, places, I, root, W),
          check("gatherv", at_root, all, 0));
    TWICE("scatter", MPIX_Scatter_init(in, 1, I, out, 1, I, root, W),
          check("scatter", 1, &root, me));
    TWICE("scatterv", MPIX_Scatterv_init(in, ones, places, I, out, 1, I, root, W),
          check("scatterv", 1, &root, me));
    TWICE("allgather", MPIX_Allgather_init(in, 1, I, out, 1, I, W), check("allgather", n, all, 0));
    TWICE("allgatherv", MPIX_Allgatherv_init(in, 1, I, out, ones, places, I, W),
          check("allgatherv", n, all, 0));
    TWICE("alltoall", MPIX_Alltoall_init(in, 1, I, out, 1, I, W), check("alltoall", n, all, me));
    TWICE("alltoallv", MPIX_Alltoallv_init(in, ones, places, I, out, ones, places, I, W),
          check("alltoallv", n, all, me));
    TWICE("alltoallw", MPIX_Alltoallw_init(in, ones, bytes, types, out, ones, bytes, types, W),
          check("alltoallw", n, all, me));
}

TEST(moves)
{
    for (int root = 0; root < test_size; root++)
        move(root);
}

/* The sum over ranks first to last of what they have for dst. */
static int sum(int first, int last, int dst)
{
    int total = 0;
    for (int i = first; i <= last; i++)
        total += word(i, dst);
    return total;
}

static void reduce(int root)
{
    int last = test_size - 1, me = test_rank, total = sum(0, last, 0);

    TWICE("reduce", MPIX_Reduce_init(in, out, 1, I, S, root, W),
          EXPECT_INT(out[0], me == root ? total : -1));
    TWICE("allreduce", MPIX_Allreduce_init(in, out, 1, I, S, W), EXPECT_INT(out[0], total));
    TWICE("reduce_scatter", MPIX_Reduce_scatter_init(in, out, ones, I, S, W),
          EXPECT_INT(out[0], sum(0, last, me)));
    TWICE("reduce_scatter_block", MPIX_Reduce_scatter_block_init(in, out, 1, I, S, W),
          EXPECT_INT(out[0], sum(0, last, me)));
    TWICE("scan", MPIX_Scan_init(in, out, 1, I, S, W), EXPECT_INT(out[0], sum(0, me, 0)));
    TWICE("exscan", MPIX_Exscan_init(in, out, 1, I, S, W),
          EXPECT_INT(out[0], me ? sum(0, me - 1, 0) : -1));
}

TEST(reductions)
{
    for (int root = 0; root < test_size; root++)
        reduce(root);
}

/* Along a line: from below and from above. The block for the one below is the first, and comes
 * from above; so `dst` is 1 for what comes from below. */
TEST(neighborhoods)
{
    int straight = 0, source[2], from_below, from_above;
    MPI_Comm line;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &straight, 0, &line);
    MPI_Cart_shift(line, 0, 1, &source[0], &source[1]);
    for (int i = 0; i < 2; i++)
        source[i] = source[i] == MPI_PROC_NULL ? -1 : source[i];
    from_below = source[0] < 0 ? -1 : word(source[0], 1);
    from_above = source[1] < 0 ? -1 : word(source[1], 0);

#undef W
#define W line, MPI_INFO_NULL, r
#define BOTH(what) \
    EXPECT(out[0] == from_below && out[1] == from_above, what ": %d %d", out[0], out[1])
    TWICE("neighbor_allgather", MPIX_Neighbor_allgather_init(in, 1, I, out, 1, I, W),
          check("neighbor_allgather", 2, source, 0));
    TWICE("neighbor_allgatherv", MPIX_Neighbor_allgatherv_init(in, 1, I, out, ones, places, I, W),
          check("neighbor_allgatherv", 2, source, 0));
    TWICE("neighbor_alltoall", MPIX_Neighbor_alltoall_init(in, 1, I, out, 1, I, W),
          BOTH("neighbor_alltoall"));
    TWICE("neighbor_alltoallv",
          MPIX_Neighbor_alltoallv_init(in, ones, places, I, out, ones, places, I, W),
          BOTH("neighbor_alltoallv"));
    TWICE("neighbor_alltoallw",
          MPIX_Neighbor_alltoallw_init(in, ones, far_bytes, types, out, ones, far_bytes, types, W),
          BOTH("neighbor_alltoallw"));
    MPI_Comm_free(&line);
}

static void begin(void)
{
    for (int i = 0; i < MOST; i++) {
        ones[i] = 1;
        places[i] = i;
        far_bytes[i] = bytes[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
}

AROUND_TESTS(begin, NULL)
