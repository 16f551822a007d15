/* SPDX-License-Identifier: MIT */
#include "blocked.h"

#include <string.h>
#include <unistd.h>

#ifndef NBC_TEST_LINKED
#pragma weak MPI_Barrier_init
#endif

MPI_Comm blocked_comm = MPI_COMM_NULL;

void blocked_check(int error, const char *call)
{
    EXPECT(error == MPI_SUCCESS, "%s returned %d", call, error);
}

enum { NOPS = 3 };

static struct {
    MPI_Comm comm, others; /* of all; of all but rank 0 */
    int in, sum, all[64];
    MPI_Request request[NOPS];
} collectives;

static void start(void)
{
    collectives.in = test_rank + 1;
    collectives.sum = -1;
    MPI_Ibarrier(collectives.comm, &collectives.request[0]);
    MPI_Iallreduce(&collectives.in, &collectives.sum, 1, MPI_INT, MPI_SUM, collectives.comm,
                   &collectives.request[1]);
    MPI_Iallgather(&collectives.in, 1, MPI_INT, collectives.all, 1, MPI_INT, collectives.comm,
                   &collectives.request[2]);
}

static void complete(const char *name)
{
    MPI_Waitall(NOPS, collectives.request, MPI_STATUSES_IGNORE);
    EXPECT(collectives.sum == test_size * (test_size + 1) / 2, "%s: sum %d", name, collectives.sum);
    for (int i = 0; i < test_size; i++)
        EXPECT(collectives.all[i] == i + 1, "%s: [%d] = %d", name, i, collectives.all[i]);
}

static void run(const struct blocked *b)
{
    test_place("%s", b->name);
    MPI_Comm_dup(MPI_COMM_WORLD, &blocked_comm);
    if (b->prepare)
        b->prepare();
    if (test_rank == 0) {
        start();
        b->block();
        complete(b->name);
    } else {
        usleep(10000); /* rank 0 is in the call by then */
        start();
        complete(b->name);
        MPI_Barrier(collectives.others); /* some may not need rank 0 */
        (b->release ? b->release : b->block)();
    }
    MPI_Barrier(blocked_comm);
    MPI_Comm_free(&blocked_comm);
}

static bool is_wanted(const struct blocked *b, char **names)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], b->name) == 0)
            return true;
    return !names[0] && !b->named_only;
}

void blocked_run(const struct blocked *cases, int n, char **names)
{
    int nrun = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &collectives.comm);
    MPI_Comm_split(MPI_COMM_WORLD, test_rank > 0, 0, &collectives.others);
    for (int i = 0; i < n; i++)
        if (is_wanted(&cases[i], names)) {
            run(&cases[i]);
            nrun++;
        }
    EXPECT(nrun > 0, "no such case");
    MPI_Comm_free(&collectives.comm);
    MPI_Comm_free(&collectives.others);
}
