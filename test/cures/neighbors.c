/* SPDX-License-Identifier: MIT */
/* Neighborhood collectives. */
#include "cures.h"

/* Blocks of a periodic dimension that has few ranks: what is sent to the lower neighbor arrives as
 * from the upper one. */
TEST(periodic_dimension_of_one_or_two)
{
    MPI_Comm comm;
    int dims[2] = {test_size, 1}, periods[2] = {1, 1}, rank, out[4], in[4] = {-1, -1, -1, -1};
    OK(MPI_Cart_create(WORLD, 2, dims, periods, 0, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    for (int i = 0; i < 4; i++)
        out[i] = sent(rank, i);
    COMPLETE(MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm, &request));
    int low = (rank + test_size - 1) % test_size, high = (rank + 1) % test_size;
    EXPECT_INT(in[0], sent(low, 1));
    EXPECT_INT(in[1], sent(high, 0));
    EXPECT_INT(in[2], sent(rank, 3));
    EXPECT_INT(in[3], sent(rank, 2));
    OK(MPI_Comm_free(&comm));
}

/* The same with counts, and with a datatype for each neighbor. */
TEST(periodic_dimension_alltoallv)
{
    enum { NEIGHBORS = 4 };
    MPI_Comm comm;
    int dims[2] = {test_size, 1}, periods[2] = {1, 1}, rank;
    int counts[NEIGHBORS], displs[NEIGHBORS], out[NEIGHBORS] = {0};
    MPI_Aint bytes[NEIGHBORS];
    MPI_Datatype types[NEIGHBORS];
    OK(MPI_Cart_create(WORLD, 2, dims, periods, 0, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    for (int i = 0; i < NEIGHBORS; i++) {
        counts[i] = 1;
        displs[i] = i;
        bytes[i] = i * (MPI_Aint)sizeof(int);
        types[i] = MPI_INT;
        out[i] = sent(rank, i);
    }
    for (int w = 0; w < 2; w++) {
        int in[NEIGHBORS] = {-1, -1, -1, -1};
        if (w)
            COMPLETE(MPI_Ineighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types,
                                             comm, &request));
        else
            COMPLETE(MPI_Ineighbor_alltoallv(out, counts, displs, MPI_INT, in, counts, displs,
                                             MPI_INT, comm, &request));
        EXPECT_INT(in[0], sent((rank + test_size - 1) % test_size, 1));
        EXPECT_INT(in[1], sent((rank + 1) % test_size, 0));
        EXPECT_INT(in[2], sent(rank, 3));
        EXPECT_INT(in[3], sent(rank, 2));
    }
    OK(MPI_Comm_free(&comm));
}

TEST(periodic_dimension_persistent)
{
    MPI_Comm comm;
    MPI_Request request;
    int dims = test_size, periods = 1, rank, out[2] = {0, 0}, in[2] = {-1, -1};
    NEEDS(MPI_Neighbor_alltoall_init);
    OK(MPI_Cart_create(WORLD, 1, &dims, &periods, 0, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Neighbor_alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, comm, MPI_INFO_NULL, &request));
    for (int round = 0; round < 2; round++) {
        out[0] = sent(rank, 10 * round);
        out[1] = sent(rank, 10 * round + 1);
        run_again(&request);
        EXPECT_INT(in[0], sent((rank + test_size - 1) % test_size, 10 * round + 1));
        EXPECT_INT(in[1], sent((rank + 1) % test_size, 10 * round));
    }
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_free(&comm));
}

/* The same edge twice: its blocks arrive in the order in which they are sent. */
TEST(edges_given_twice)
{
    MPI_Comm comm;
    int next = (test_rank + 1) % test_size, last = (test_rank + test_size - 1) % test_size;
    int from[2] = {last, last}, to[2] = {next, next}, out[2], in[2] = {-1, -1};
    OK(MPI_Dist_graph_create_adjacent(WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &comm));
    for (int i = 0; i < 2; i++)
        out[i] = sent(test_rank, i);
    COMPLETE(MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm, &request));
    for (int i = 0; i < 2; i++)
        EXPECT_INT(in[i], sent(last, i));
    OK(MPI_Comm_free(&comm));
}

static MPI_Comm graph_without_edges(void)
{
    MPI_Comm comm;
    int none = 0;
    OK(MPI_Dist_graph_create_adjacent(WORLD, 0, &none, MPI_UNWEIGHTED, 0, &none, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &comm));
    return comm;
}

TEST(graph_without_edges_buffers_null)
{
    MPI_Request request[2];
    MPI_Comm comm = graph_without_edges();
    int one = 1;
    OK(MPI_Ineighbor_allgather(&one, 1, MPI_INT, NULL, 1, MPI_INT, comm, &request[0]));
    OK(MPI_Ineighbor_allgatherv(&one, 1, MPI_INT, NULL, NULL, NULL, MPI_INT, comm, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    OK(MPI_Comm_free(&comm));
}

/* One edge, from rank 0 to the last one. What has no neighbor has no arrays. */
static MPI_Comm graph_of_one_edge(void)
{
    MPI_Comm comm;
    int last = test_size - 1, first = 0;
    OK(MPI_Dist_graph_create_adjacent(WORLD, test_rank == last, &first, MPI_UNWEIGHTED,
                                      test_rank == 0, &last, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &comm));
    return comm;
}

TEST(graph_with_one_edge)
{
    MPI_Comm comm = graph_of_one_edge();
    int one = 1, zero = 0, out = sent(test_rank, 0), in = -1;
    bool sends = test_rank == 0, receives = test_rank == test_size - 1;
    COMPLETE(MPI_Ineighbor_alltoallv(sends ? &out : NULL, sends ? &one : NULL, sends ? &zero : NULL,
                                     MPI_INT, receives ? &in : NULL, receives ? &one : NULL,
                                     receives ? &zero : NULL, MPI_INT, comm, &request));
    EXPECT_INT(in, receives ? sent(0, 0) : -1);
    COMPLETE(MPI_Ineighbor_allgatherv(&test_rank, 1, MPI_INT, receives ? &in : NULL,
                                      receives ? &one : NULL, receives ? &zero : NULL, MPI_INT,
                                      comm, &request));
    EXPECT_INT(in, receives ? 0 : -1);
    OK(MPI_Comm_free(&comm));
}

/* Arrays of as many elements as there are neighbors, fewer than ranks or more. */
TEST(ineighbor_alltoallw_cart)
{
    MPI_Comm comm;
    enum { NEIGHBORS = 6 };
    int dims[3] = {test_size, 1, 1}, periods[3] = {0, 1, 0}, rank, coord[3];
    int counts[NEIGHBORS], out[NEIGHBORS], in[NEIGHBORS];
    MPI_Aint displs[NEIGHBORS];
    MPI_Datatype types[NEIGHBORS];
    OK(MPI_Cart_create(WORLD, 3, dims, periods, 0, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Cart_coords(comm, rank, 3, coord));
    for (int i = 0; i < NEIGHBORS; i++) {
        counts[i] = 1;
        displs[i] = i * (MPI_Aint)sizeof(int);
        types[i] = MPI_INT;
        out[i] = sent(rank, i);
        in[i] = -1;
    }
    COMPLETE(MPI_Ineighbor_alltoallw(out, counts, displs, types, in, counts, displs, types, comm,
                                     &request));
    EXPECT_INT(in[0], coord[0] > 0 ? sent(rank - 1, 1) : -1);
    EXPECT_INT(in[1], coord[0] < test_size - 1 ? sent(rank + 1, 0) : -1);
    EXPECT_INT(in[2], sent(rank, 3));
    EXPECT_INT(in[3], sent(rank, 2));
    EXPECT_INT(in[4], -1);
    EXPECT_INT(in[5], -1);
    OK(MPI_Comm_free(&comm));
}

/* A graph whose ranks the MPI may reorder. */
TEST(ineighbor_allgather_reordered_graph)
{
    MPI_Comm comm;
    int next = (test_rank + 1) % test_size, one = 1, rank, in[4] = {-1, -1, -1, -1}, from[4], to[4];
    OK(MPI_Dist_graph_create(WORLD, 1, &test_rank, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 1,
                             &comm));
    OK(MPI_Comm_rank(comm, &rank));
    int nfrom, nto, weighted;
    OK(MPI_Dist_graph_neighbors_count(comm, &nfrom, &nto, &weighted));
    EXPECT_INT(nfrom, 1);
    EXPECT_INT(nto, 1);
    OK(MPI_Dist_graph_neighbors(comm, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED));
    COMPLETE(MPI_Ineighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, comm, &request));
    EXPECT_INT(in[0], from[0]);
    OK(MPI_Comm_free(&comm));
}

/* An error of the program, after which it goes on if it has asked for that. */
TEST(ineighbor_in_place_is_an_error)
{
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int dims = test_size, periods = 1, in[2] = {-1, -1};
    OK(MPI_Cart_create(WORLD, 1, &dims, &periods, 0, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    int error = MPI_Ineighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, comm, &request);
    EXPECT(error != MPI_SUCCESS, "accepted");
    error = MPI_Ineighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, comm, &request);
    EXPECT(error != MPI_SUCCESS, "accepted by alltoall");
    OK(MPI_Comm_free(&comm));
}

/* Rank 0 sends columns of one matrix to all others. */
TEST(ineighbor_alltoallw_star)
{
    MPI_Comm comm;
    MPI_Datatype column, *types = test_scratch((size_t)test_size * sizeof *types);
    int peers = test_size - 1, zero = 0, *all = ints(test_size), *ones = ints(test_size);
    int *matrix = ints(3 * test_size), got[3] = {-1, -1, -1}, root = test_rank == 0;
    MPI_Aint *displs = test_scratch((size_t)test_size * sizeof *displs), none = 0;
    OK(MPI_Type_vector(3, 1, test_size, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    for (int i = 0; i < test_size; i++) {
        all[i] = i + 1;
        ones[i] = 1;
        types[i] = column;
        displs[i] = (i + 1) * (MPI_Aint)sizeof(int);
    }
    for (int i = 0; i < 3 * test_size; i++)
        matrix[i] = sent(i % test_size, i / test_size);
    OK(MPI_Dist_graph_create_adjacent(WORLD, root ? 0 : 1, &zero, MPI_UNWEIGHTED, root ? peers : 0,
                                      all, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    int three = 3;
    MPI_Datatype integers = MPI_INT;
    COMPLETE(MPI_Ineighbor_alltoallw(matrix, ones, displs, types, got, &three, &none, &integers,
                                     comm, &request));
    for (int i = 0; !root && i < 3; i++)
        EXPECT_INT(got[i], sent(test_rank, i));
    OK(MPI_Type_free(&column));
    OK(MPI_Comm_free(&comm));
}
