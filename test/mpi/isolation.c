/* SPDX-License-Identifier: MIT */
/* The program's messages and ours never meet: wildcard receives and probes that are pending while
 * collectives run see only what the program sent, whatever tags it uses. And nonblocking
 * collectives are local, also as the first thing that happens on a communicator, however it was
 * made: rank 1 makes the call only after rank 0 has returned from it. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>

/* --- wildcards ---------------------------------------------------------------------------------*/

enum { NCASES = 10, ROUNDS = 4 };

static void no_message(MPI_Comm comm, const char *when)
{
    MPI_Status status;
    int flag;

    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
    EXPECT(!flag, "a probe sees a message of tag %d from %d %s", status.MPI_TAG, status.MPI_SOURCE,
           when);
#if MPI_VERSION >= 3
    MPI_Message message;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message, &status);
    EXPECT(!flag, "a matched probe takes a message %s", when);
#endif
}

/* Collectives of all kinds, polled by probes until they are complete. */
static void collectives(const struct group *g, struct rng *rng)
{
    struct testcase *c[NCASES];
    MPI_Request request[NCASES];
    int done = 0;

    for (int i = 0; i < NCASES; i++) {
        struct spec s = spec_random((enum coll)rng_below(rng, NINTRA), g, rng_next(rng),
                                    i % 3 == 0 ? 5000 : 20);
        bool persistent = i % 2 == 1 && test_has_persistent();
        c[i] = case_new(&s);
        case_fill(c[i], 0);
        case_call(c[i], persistent ? PERSISTENT : NONBLOCKING, MPI_INFO_NULL, &request[i]);
        case_drop(c[i]);
        if (persistent)
            MPI_Start(&request[i]);
    }
    while (!done) {
        no_message(g->comm, "while collectives run");
        MPI_Testall(NCASES, request, &done, MPI_STATUSES_IGNORE);
    }
    no_message(g->comm, "after collectives");
    for (int i = 0; i < NCASES; i++) {
        if (request[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&request[i]);
        case_check(c[i], "beside wildcards");
        case_delete(c[i]);
    }
}

static int greatest_tag(void)
{
    int *value, flag;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    return flag ? *value : 32767;
}

/* A receive of anything from anybody is pending all the while; only then something is sent, with
 * the least and the greatest tag. */
static void look(MPI_Comm comm, struct rng *rng)
{
    struct group *g = group_new(comm);
    int to = (g->rank + 1) % g->size, from = (g->rank - 1 + g->size) % g->size;

    for (int round = 0; round < ROUNDS; round++) {
        int tag = round % 2 == 0 ? 0 : greatest_tag(), sent = 1000 * round + g->rank, got = -1;
        int flag;
        MPI_Request receive;
        MPI_Status status;
        test_place("wildcards, round %d", round);
        no_message(comm, "before");
        collectives(g, rng);
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
        collectives(g, rng);
        MPI_Test(&receive, &flag, &status);
        EXPECT(!flag, "a wildcard receive got a message of tag %d from %d that nobody sent",
               status.MPI_TAG, status.MPI_SOURCE);
        MPI_Barrier(comm); /* nobody sends before all have looked */
        MPI_Send(&sent, 1, MPI_INT, to, tag, comm);
        if (!flag)
            MPI_Wait(&receive, &status);
        EXPECT_INT(got, 1000 * round + from);
        EXPECT_INT(status.MPI_SOURCE, from);
        EXPECT_INT(status.MPI_TAG, tag);
        MPI_Barrier(comm);
    }
    group_delete(g);
}

TEST(wildcards)
{
    struct rng rng = rng_shared(1);
    MPI_Comm comm;
    look(MPI_COMM_WORLD, &rng);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    look(comm, &rng);
}

/* --- locality ----------------------------------------------------------------------------------*/

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

AROUND_TESTS(kinds_init, kinds_finish)
