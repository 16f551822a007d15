/* SPDX-License-Identifier: MIT */
/* Communicators, and the end of the program. */
#include "cures.h"

static void check_sum(MPI_Comm comm)
{
    int one = 1, sum = -1;
    COMPLETE(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    EXPECT_INT(sum, test_size);
}

static void check_and_free(MPI_Comm *comm, int n)
{
    for (int i = 0; i < n; i++) {
        check_sum(comm[i]);
        OK(MPI_Comm_free(&comm[i]));
    }
}

/* Ranks have made different communicators, and make other calls of MPI between the idups. */
TEST(comm_idup_apart)
{
    for (int round = 0; round < 20; round++) {
        MPI_Comm own, copy[4];
        MPI_Request request[4];
        int flag;
        if (round % test_size == test_rank)
            OK(MPI_Comm_dup(MPI_COMM_SELF, &own));
        for (int i = 0; i < 4; i++) {
            OK(MPI_Comm_idup(WORLD, &copy[i], &request[i]));
            for (int k = (round + i) % test_size == test_rank ? 30 : 0; k > 0; k--)
                OK(MPI_Iprobe(MPI_ANY_SOURCE, 0, WORLD, &flag, MPI_STATUS_IGNORE));
        }
        OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
        check_and_free(copy, 4);
        if (round % test_size == test_rank)
            OK(MPI_Comm_free(&own));
    }
}

/* Another constructor of the same communicator while an MPI_Comm_idup is pending. */
TEST(comm_idup_and_dup)
{
    for (int i = 0; i < 20; i++) {
        MPI_Comm copy[2];
        MPI_Request request;
        OK(MPI_Comm_idup(WORLD, &copy[0], &request));
        if (i % 2)
            OK(MPI_Comm_dup(WORLD, &copy[1]));
        else
            OK(MPI_Comm_split(WORLD, 0, test_rank, &copy[1]));
        finish(&request);
        check_and_free(copy, 2);
    }
}

/* The parent is freed while they are pending. */
TEST(comm_idup_parent_freed)
{
    enum { MANY = 8 };
    MPI_Comm parent, copy[MANY];
    MPI_Request request[MANY];
    OK(MPI_Comm_dup(WORLD, &parent));
    for (int i = 0; i < MANY; i++)
        OK(MPI_Comm_idup(parent, &copy[i], &request[i]));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
    check_and_free(copy, MANY);
}

/* Freed while collectives are pending on it. */
TEST(comm_free_while_pending)
{
    enum { MANY = 8 };
    MPI_Request request[MANY];
    int one = 1, sums[MANY];
    for (int i = 0; i < MANY; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(WORLD, &comm));
        OK(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comm, &request[i]));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        EXPECT_INT(sums[i], test_size);
}

/* A delete callback on MPI_COMM_SELF is called as the first step of MPI_Finalize, when all of MPI
 * works still. Its failures come too late to be counted: it aborts. */
static int collectives_at_the_end(MPI_Comm comm, int key, void *value, void *extra)
{
    MPI_Request request;
    int one = 1, sum = -1, error = MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD, &request);
    (void)comm, (void)key, (void)value, (void)extra;
    if (!error)
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (error || sum != test_size)
        MPI_Abort(WORLD, 7);
    return MPI_SUCCESS;
}

TEST(collectives_in_finalize)
{
    int key;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, collectives_at_the_end, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
    OK(MPI_Comm_free_keyval(&key));
}
