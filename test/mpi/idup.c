/* SPDX-License-Identifier: MIT */
/* MPI_Comm_idup: local, completed by any completion call, mixed with other requests; the new
 * communicator serves collectives as soon as its request is complete, and has its attribute. */
#include "config.h"
#include "util.h"

#include <string.h>

#ifdef HAVE_MPI_COMM_IDUP
static void use(MPI_Comm comm)
{
    MPI_Request request;
    int *outstanding = NULL, flag = 0, one = 1, sum = 0;
    OK(MPI_Comm_get_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, &outstanding, &flag));
    EXPECT(flag && *outstanding >= 32767, "no MPI_ICOLL_MAX_OUTSTANDING");
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, test_size);
}

TEST(completed_by_wait)
{
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT(request == MPI_REQUEST_NULL, "not null");
    use(comm);
    OK(MPI_Comm_free(&comm));
}

/* Rank 0 returns from the call before the others make it. */
TEST(local)
{
    MPI_Comm comm;
    MPI_Request request;
    int go = 1, flag = 0;
    if (test_rank > 0)
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    for (int to = 1; test_rank == 0 && to < test_size; to++)
        OK(MPI_Send(&go, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
    while (!flag)
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    use(comm);
    OK(MPI_Comm_free(&comm));
}

/* The hints are the new communicator's, freed by the program as soon as it likes. */
TEST(hinted)
{
#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
    MPI_Comm comm;
    MPI_Info info;
    MPI_Request request;
    int x = 1, sum = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "nbcshim_algorithm", "allreduce:ring"));
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &comm, &request));
    OK(MPI_Info_free(&info));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    const char *name = test_native ? "ring" : nbcshim_algorithm(request, NULL);
    EXPECT(name && strcmp(name, "ring") == 0, "runs %s", name ? name : "nothing of ours");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use(comm);
    OK(MPI_Comm_free(&comm));
#endif
}

/* Two at once, with a collective and a message, completed together; the parent is freed meanwhile.
 */
TEST(mixed)
{
    enum { N = 5 };
    MPI_Comm parent, first, second;
    MPI_Request request[N];
    int next = (test_rank + 1) % test_size, last = (test_rank + test_size - 1) % test_size;
    int out = test_rank, in = -1, one = 1, sum = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Irecv(&in, 1, MPI_INT, last, 2, MPI_COMM_WORLD, &request[0]));
    OK(MPI_Comm_idup(parent, &first, &request[1]));
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, parent, &request[2]));
    OK(MPI_Comm_idup(parent, &second, &request[3]));
    OK(MPI_Isend(&out, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &request[4]));
#ifndef OPEN_MPI
    OK(MPI_Comm_free(&parent));
#endif
    OK(MPI_Waitall(N, request, MPI_STATUSES_IGNORE));
    EXPECT_INT(in, last);
    EXPECT_INT(sum, test_size);
    if (parent != MPI_COMM_NULL)
        OK(MPI_Comm_free(&parent));
    use(second);
    use(first);
    OK(MPI_Comm_free(&first));
    OK(MPI_Comm_free(&second));
}

/* What is made from it is ours too. */
TEST(derived)
{
    MPI_Comm comm, split;
    MPI_Request request;
    int index, one = 1, sum = 0, size;
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    OK(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
    OK(MPI_Comm_split(comm, test_rank % 2, 0, &split));
    MPI_Comm_size(split, &size);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, split, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, size);
    OK(MPI_Comm_free(&split));
    OK(MPI_Comm_free(&comm));
}
#endif

int main(int argc, char **argv)
{
    return test_main(argc, argv, NULL, NULL);
}
