/* SPDX-License-Identifier: MIT */
/* Persistent collectives. */
#include "cures.h"

enum { ROUNDS = 4 };

/* Each start sends what is in the buffer then. */
TEST(gather_init_sends_old_data)
{
    MPI_Request request;
    int mine = -2, *all;
    NEEDS(MPI_Gather_init);
    all = ints(test_size);
    OK(MPI_Gather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < ROUNDS; round++) {
        mine = sent(test_rank, round);
        for (int i = 0; i < test_size; i++)
            all[i] = -1;
        run_again(&request);
        for (int i = 0; test_rank == 0 && i < test_size; i++)
            EXPECT_INT(all[i], sent(i, round), "round %d", round);
    }
    OK(MPI_Request_free(&request));
}

TEST(allgather_init_repeated)
{
    enum { MANY = 3000 };
    MPI_Request request;
    int *mine, *all;
    NEEDS(MPI_Allgather_init);
    mine = ints(MANY);
    all = ints(MANY * test_size);
    OK(MPI_Allgather_init(mine, MANY, MPI_INT, all, MANY, MPI_INT, WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++)
            mine[i] = sent(test_rank, round + i);
        memset(all, 0, (size_t)(MANY * test_size) * sizeof *all);
        run_again(&request);
        for (int i = 0; i < MANY * test_size; i++)
            EXPECT_INT(all[i], sent(i / MANY, round + i % MANY), "round %d", round);
    }
    OK(MPI_Request_free(&request));
}

/* The communicator is freed while the request is inactive; it serves on. */
TEST(started_after_its_communicator_is_freed)
{
    MPI_Comm comm;
    MPI_Request request;
    int one = 1, sum;
    NEEDS(MPI_Allreduce_init);
    OK(MPI_Comm_dup(WORLD, &comm));
    OK(MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    OK(MPI_Comm_free(&comm));
    for (int round = 0; round < ROUNDS; round++) {
        sum = -1;
        run_again(&request);
        EXPECT_INT(sum, test_size);
    }
    OK(MPI_Request_free(&request));
}

/* MPI_Comm_disconnect waits for what is pending; an inactive request is not. */
TEST(disconnect_with_inactive_request)
{
    MPI_Comm comm;
    MPI_Request request;
    int one = 1, sum = -1;
    NEEDS(MPI_Allreduce_init);
    OK(MPI_Comm_dup(WORLD, &comm));
    OK(MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    run_again(&request);
    OK(MPI_Comm_disconnect(&comm));
    EXPECT_INT(sum, test_size);
    OK(MPI_Request_free(&request));
}

TEST(waitany_of_inactive_requests)
{
    MPI_Request request[2];
    MPI_Status status[2];
    int one = 1, sum, index = 0, count = 0, indices[2];
    NEEDS(MPI_Allreduce_init);
    for (int i = 0; i < 2; i++)
        OK(MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request[i]));
    OK(MPI_Waitany(2, request, &index, status));
    EXPECT_INT(index, MPI_UNDEFINED);
    OK(MPI_Waitsome(2, request, &count, indices, status));
    EXPECT_INT(count, MPI_UNDEFINED);
    for (int i = 0; i < 2; i++)
        OK(MPI_Request_free(&request[i]));
}
