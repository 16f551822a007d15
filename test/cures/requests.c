/* SPDX-License-Identifier: MIT */
/* Completion, progress, and what mixes with messages. */
#include "cures.h"

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
