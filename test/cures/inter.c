/* SPDX-License-Identifier: MIT */
/* Intercommunicators: rank 0 on one side, all others on the other. On one rank nothing is done. */
#include "cures.h"

static MPI_Comm inter;

static void between(const struct test *test)
{
    MPI_Comm local;
    OK(MPI_Comm_split(WORLD, test_rank > 0, test_rank, &local));
    OK(MPI_Intercomm_create(local, 0, WORLD, test_rank > 0 ? 0 : 1, 7, &inter));
    test->run();
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&local));
}

#define BETWEEN(name) TEST(name, .wanted = test_has_peers, .runner = between)

/* Buffers without significance are NULL. */
BETWEEN(inter_rooted_null_buffers)
{
    bool alone = test_rank == 0;
    int root = alone ? MPI_ROOT : 0, mine = alone ? -1 : sent(test_rank, 0), sum = -1, n = 0;
    int *all = ints(test_size);
    COMPLETE(MPI_Igather(alone ? NULL : &mine, alone ? 0 : 1, MPI_INT, alone ? all : NULL,
                         alone ? 1 : 0, MPI_INT, root, inter, &request));
    for (int i = 1; alone && i < test_size; i++)
        EXPECT_INT(all[i - 1], sent(i, 0));
    COMPLETE(MPI_Ireduce(alone ? NULL : &mine, alone ? &sum : NULL, 1, MPI_INT, MPI_SUM, root,
                         inter, &request));
    for (int i = 1; i < test_size; i++)
        n += sent(i, 0);
    if (alone)
        EXPECT_INT(sum, n);
}

/* What a rank passes that gives MPI_PROC_NULL as the root is not significant, all of it. */
BETWEEN(inter_garbage_beside_root)
{
    MPI_Request request[4];
    int root = test_rank == 0 ? 0 : test_rank == 1 ? MPI_ROOT : MPI_PROC_NULL;
    int mine = 5, one = 5, sum = -1;
    if (root == MPI_PROC_NULL) {
        OK(MPI_Ibcast(NULL, -1, MPI_DATATYPE_NULL, root, inter, &request[0]));
        OK(MPI_Igather(NULL, -2, MPI_DATATYPE_NULL, NULL, -3, MPI_DATATYPE_NULL, root, inter,
                       &request[1]));
        OK(MPI_Ireduce(NULL, NULL, -1, MPI_DATATYPE_NULL, MPI_OP_NULL, root, inter, &request[2]));
        OK(MPI_Iscatter(NULL, -2, MPI_DATATYPE_NULL, NULL, -3, MPI_DATATYPE_NULL, root, inter,
                        &request[3]));
    } else {
        int data = test_rank == 1 ? 4711 : -1, in = -1;
        OK(MPI_Ibcast(&data, 1, MPI_INT, root, inter, &request[0]));
        finish(&request[0]);
        EXPECT_INT(data, 4711);
        OK(MPI_Igather(&mine, 1, MPI_INT, &in, 1, MPI_INT, root, inter, &request[1]));
        finish(&request[1]);
        EXPECT_INT(in, test_rank == 1 ? 5 : -1);
        OK(MPI_Ireduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, inter, &request[2]));
        OK(MPI_Iscatter(&one, 1, MPI_INT, &in, 1, MPI_INT, root, inter, &request[3]));
    }
    OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    EXPECT_INT(sum, test_rank == 1 ? 5 : -1);
}
