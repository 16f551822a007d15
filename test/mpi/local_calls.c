/* SPDX-License-Identifier: MIT */
/* Nonblocking collectives are local, also as the first thing that happens on a communicator,
 * however it was made: rank 1 makes the call only after rank 0 has returned from it. The program
 * does not see the messages that rank 0 has sent by then. */
#include "topology.h"
#include "util.h"

static void expect_no_message(MPI_Comm comm, const char *what)
{
    MPI_Status status;
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
    EXPECT(!flag, "%s: a message of tag %d", what, status.MPI_TAG);
}

/* The first of the group makes the call, and only when it has come back are the others told. */
static void local_call(MPI_Comm comm, const char *what)
{
    int first = 0, token = 1, sum = -1, one = 1, size;
    MPI_Request r[2];

    test_place("locality: %s", what);
    MPI_Comm_rank(comm, &first);
    if (test_rank == 0) {
        MPI_Ibarrier(comm, &r[0]);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &r[1]);
        for (int i = 1; i < test_size; i++)
            MPI_Send(&token, 1, MPI_INT, i, 77, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&token, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_no_message(MPI_COMM_WORLD, what);
        expect_no_message(comm, what);
        MPI_Ibarrier(comm, &r[0]);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &r[1]);
    }
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Comm_test_inter(comm, &first);
    if (first)
        MPI_Comm_remote_size(comm, &size);
    else
        MPI_Comm_size(comm, &size);
    EXPECT_INT(sum, size, "%s", what);
    MPI_Barrier(MPI_COMM_WORLD); /* before the next token: two groups need not wait for all ranks */
    MPI_Comm_free(&comm);
}

static void copies(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    local_call(comm, "MPI_Comm_dup");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &comm);
    local_call(comm, "MPI_Comm_split");
#if MPI_VERSION >= 3
    MPI_Request request;
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
    local_call(comm, "MPI_Comm_dup_with_info");
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    local_call(comm, "MPI_Comm_idup");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    local_call(comm, "MPI_Comm_split_type");
#endif
}

static void from_groups(void)
{
    MPI_Group group;
    MPI_Comm comm;

    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
    local_call(comm, "MPI_Comm_create");
#if MPI_VERSION >= 3
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm);
    local_call(comm, "MPI_Comm_create_group");
#endif
    MPI_Group_free(&group);
}

static void topologies(struct rng *rng)
{
    int dims[] = {test_size, 1}, periods[] = {1, 0}, remain[] = {1, 0};
    MPI_Comm grid, comm;

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_sub(grid, remain, &comm);
    local_call(comm, "MPI_Cart_sub");
    local_call(grid, "MPI_Cart_create");
    local_call(topology_make(MPI_COMM_WORLD, TOPOLOGY_GRAPH, rng), "MPI_Graph_create");
    local_call(topology_make(MPI_COMM_WORLD, TOPOLOGY_DIST, rng), "MPI_Dist_graph_create");
    local_call(topology_make(MPI_COMM_WORLD, TOPOLOGY_ADJACENT, rng),
               "MPI_Dist_graph_create_adjacent");
}

static void between_groups(void)
{
    int side = test_rank % 2;
    MPI_Comm half, inter, comm;

    if (test_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, side, test_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    MPI_Intercomm_merge(inter, side, &comm);
    local_call(comm, "MPI_Intercomm_merge");
    MPI_Comm_dup(inter, &comm);
    local_call(comm, "MPI_Comm_dup of an intercommunicator");
    local_call(inter, "MPI_Intercomm_create");
    MPI_Comm_free(&half);
}

TEST(calls_are_local)
{
    struct rng rng = rng_shared(2);
    for (int i = 0; i < test_scale(3, 100); i++) {
        copies();
        from_groups();
        topologies(&rng);
        between_groups();
    }
}
