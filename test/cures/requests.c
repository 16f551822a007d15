/* SPDX-License-Identifier: MIT */
/* Completion, progress, and what mixes with messages. */
#include "cures.h"

/* Each rank answers messages from any rank until all have come to the barrier. */
TEST(ibarrier_while_receives_are_posted)
{
    MPI_Request receive, barrier;
    int in = -1, flag = 0, next = (test_rank + 1) % test_size;
    OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 9, WORLD, &receive));
    OK(MPI_Ssend(&test_rank, 1, MPI_INT, next, 9, WORLD));
    OK(MPI_Ibarrier(WORLD, &barrier));
    while (!flag) {
        OK(MPI_Test(&receive, &flag, MPI_STATUS_IGNORE));
        OK(MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE));
    }
    if (receive != MPI_REQUEST_NULL)
        finish(&receive);
    EXPECT_INT(in, (test_rank + test_size - 1) % test_size);
}

TEST(barrier_after_improbe)
{
    MPI_Message message;
    int flag = 1;
    for (int i = 0; i < 10; i++) {
        OK(MPI_Improbe(MPI_ANY_SOURCE, 11, WORLD, &flag, &message, MPI_STATUS_IGNORE));
        EXPECT(!flag, "there is a message");
        COMPLETE(MPI_Ibarrier(WORLD, &request));
    }
}

/* The sparse exchange of Hoefler, Siebert and Lumsdaine, many times on one communicator. */
static int exchange(int to)
{
    MPI_Request send, barrier = MPI_REQUEST_NULL;
    int out = test_rank, got = 0, done = 0;
    OK(MPI_Issend(&out, 1, MPI_INT, to, 13, WORLD, &send));
    while (!done) {
        int flag, in;
        MPI_Status status;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 13, WORLD, &flag, &status));
        if (flag) {
            OK(MPI_Recv(&in, 1, MPI_INT, status.MPI_SOURCE, 13, WORLD, MPI_STATUS_IGNORE));
            got++;
        }
        if (barrier != MPI_REQUEST_NULL) {
            OK(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE));
            continue;
        }
        OK(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
        if (flag)
            OK(MPI_Ibarrier(WORLD, &barrier));
    }
    return got;
}

TEST(nbx_many_times)
{
    for (int round = 0; round < 300; round++) {
        int got = exchange((test_rank + 1 + round) % test_size);
        EXPECT_INT(got, 1, "round %d", round);
        OK(MPI_Barrier(WORLD));
    }
}

/* The receive of a message that comes last, in one MPI_Waitall with a collective. */
TEST(waitall_of_collective_and_message)
{
    MPI_Request request[2];
    int next = (test_rank + 1) % test_size, one = 1, sum = -1, in = -1;
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD, &request[0]));
    OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 15, WORLD, &request[1]));
    OK(MPI_Send(&one, 1, MPI_INT, next, 15, WORLD));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    EXPECT_INT(sum, test_size);
    EXPECT_INT(in, 1);
}

static void check_refused(int error, int want, const char *what)
{
    int class = -1;
    MPI_Error_class(error, &class);
    EXPECT_INT(class, want, "%s", what);
}

TEST(error_classes)
{
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int one = 1, sum;
    OK(MPI_Comm_dup(WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    check_refused(MPI_Iallreduce(&one, &sum, -1, MPI_INT, MPI_SUM, comm, &request), MPI_ERR_COUNT,
                  "a count below zero");
    check_refused(MPI_Iallreduce(&one, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, comm, &request),
                  MPI_ERR_TYPE, "a null datatype");
    check_refused(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_OP_NULL, comm, &request), MPI_ERR_OP,
                  "a null operator");
    check_refused(MPI_Ibcast(&one, 1, MPI_INT, test_size, comm, &request), MPI_ERR_ROOT,
                  "a root that is no rank");
    check_refused(MPI_Iallreduce(&one, &one, 1, MPI_INT, MPI_SUM, comm, &request), MPI_ERR_BUFFER,
                  "aliased buffers");
    OK(MPI_Comm_free(&comm));
}

/* More operations than an MPI has tags for, or ids. */
TEST(many_outstanding)
{
    enum { MANY = 3000 };
    MPI_Request *request = test_scratch(MANY * sizeof *request);
    int *sums = ints(MANY), one = 1;
    for (int i = 0; i < MANY; i++)
        OK(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, WORLD, &request[i]));
    OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        EXPECT_INT(sums[i], test_size);
}

/* MPI_Request_get_status says that it is complete; then the request is still there. */
TEST(get_status_then_wait)
{
    MPI_Request request;
    int flag = 0, one = 1, sum = -1;
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD, &request));
    while (!flag)
        OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
    EXPECT(request != MPI_REQUEST_NULL, "freed");
    EXPECT_INT(sum, test_size);
    finish(&request);
}

TEST(allreduce_while_iallreduce_is_pending)
{
    MPI_Request request;
    int one = 1, sum[2] = {-1, -1};
    OK(MPI_Iallreduce(&one, &sum[0], 1, MPI_INT, MPI_SUM, WORLD, &request));
    OK(MPI_Allreduce(&one, &sum[1], 1, MPI_INT, MPI_SUM, WORLD));
    finish(&request);
    EXPECT_INT(sum[0], test_size);
    EXPECT_INT(sum[1], test_size);
}
