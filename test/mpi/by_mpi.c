/* SPDX-License-Identifier: MIT */
/* The algorithm `mpi`: the MPI carries out the operation, and the request is nbcshim's. */
#include "config.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 100 }; /* more than nbcshim has in flight of one communicator */

static MPI_Comm comm; /* whose info names the algorithm */
static int mine, sums[MANY];

static int sum(void)
{
    return test_size * (test_size + 1) / 2;
}

static MPI_Comm make_comm(const char *algorithms)
{
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Info info = test_info("nbcshim_algorithm", algorithms);
    MPI_Comm_set_info(made, info);
    MPI_Info_free(&info);
    return made;
}

static void before(void)
{
    mine = test_rank + 1;
    comm = make_comm("mpi");
}

static void after(void)
{
    MPI_Comm_free(&comm);
}

/* A check may hold an operation up, which the MPI cannot. */
static bool is_checked(void)
{
    const char *check = getenv("NBCSHIM_CHECK");
    return check && strcmp(check, "1") == 0;
}

static void expect_algorithm(MPI_Request r, bool mpi, const char *what)
{
    const char *name = nbcshim_algorithm(r, NULL);
    if (!name || (strcmp(name, "mpi") == 0) != (mpi && !is_checked()))
        test_fail("%s: the algorithm is %s", what, name ? name : "none");
}

static void expect_sum(int found, const char *what)
{
    if (found != sum())
        test_fail("%s: %d, not %d", what, found, sum());
}

static void start(MPI_Comm on, int i, MPI_Request *r)
{
    sums[i] = -1;
    MPI_Iallreduce(&mine, &sums[i], 1, MPI_INT, MPI_SUM, on, r);
}

TEST(a_nonblocking_call_is_the_mpi_s)
{
    MPI_Request r[3];
    int all[64] = {0};
    start(comm, 0, &r[0]);
    MPI_Ibarrier(comm, &r[1]);
    MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm, &r[2]);
    for (int i = 0; i < 3; i++)
        expect_algorithm(r[i], true, "nonblocking");
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    expect_sum(sums[0], "iallreduce");
    for (int i = 0; i < test_size; i++)
        if (all[i] != i + 1)
            test_fail("iallgather: %d of rank %d", all[i], i);
}

TEST(a_blocking_call_gives_the_same)
{
    MPI_Allreduce(&mine, &sums[0], 1, MPI_INT, MPI_SUM, comm);
    expect_sum(sums[0], "allreduce");
}

/* Ranks may start them in different orders. The arguments are those of the nonblocking ones. */
TEST(a_persistent_one_is_not, .wanted = test_has_persistent)
{
    MPI_Request p[2], r;
    for (int i = 0; i < 2; i++)
        MPI_Allreduce_init(&mine, &sums[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p[i]);
    for (int round = 0; round < 3; round++) {
        sums[0] = sums[1] = -1;
        MPI_Start(&p[test_rank % 2]);
        start(comm, 2, &r);
        MPI_Start(&p[1 - test_rank % 2]);
        expect_algorithm(p[0], false, "persistent");
        expect_algorithm(r, true, "between persistent ones");
        MPI_Waitall(2, p, MPI_STATUSES_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3; i++)
            expect_sum(sums[i], "with persistent ones");
    }
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&p[i]);
}

/* Every third one is by messages. Rank 0 waits for the last one first. */
TEST(many_are_in_flight_with_others)
{
    MPI_Request r[MANY];
    for (int i = 0; i < MANY; i++) {
        start(i % 3 ? comm : MPI_COMM_WORLD, i, &r[i]);
        expect_algorithm(r[i], i % 3, "many");
    }
    for (int i = MANY - 1; i >= 0 && test_rank == 0; i--)
        MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++)
        expect_sum(sums[i], "many");
}

TEST(one_communicator_has_both)
{
    MPI_Comm both = make_comm("scan:mpi");
    MPI_Request r[2];
    int part = -1;
    start(both, 0, &r[0]);
    MPI_Iscan(&mine, &part, 1, MPI_INT, MPI_SUM, both, &r[1]);
    expect_algorithm(r[0], false, "allreduce");
    expect_algorithm(r[1], true, "scan");
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    expect_sum(sums[0], "by messages");
    if (part != mine * (mine + 1) / 2)
        test_fail("iscan: %d", part);
    MPI_Comm_free(&both);
}

/* The last rank comes late, when the others have freed everything. */
TEST(all_may_be_freed_while_it_is_pending)
{
    MPI_Comm gone = make_comm("mpi");
    MPI_Datatype pair;
    MPI_Request r[2];
    int pairs[2] = {mine, 2 * mine}, all[128], counts[64], displs[64];
    for (int i = 0; i < test_size; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    if (test_rank == test_size - 1)
        usleep(20000);
    MPI_Igatherv(pairs, 1, pair, all, counts, displs, pair, 0, gone, &r[0]);
    start(gone, 0, &r[1]);
    expect_algorithm(r[0], true, "of a program's datatype");
    MPI_Type_free(&pair);
    MPI_Comm_free(&gone);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    expect_sum(sums[0], "after the end of the communicator");
    for (int i = 0; i < 2 * test_size && test_rank == 0; i++)
        if (all[i] != (1 + i % 2) * (i / 2 + 1))
            test_fail("igatherv: %d at %d", all[i], i);
}

TEST(an_operator_of_the_program_is_nbcshim_s)
{
    MPI_Op op;
    MPI_Request r;
    MPI_Op_create(add_ints, 1, &op);
    MPI_Iallreduce(&mine, &sums[0], 1, MPI_INT, op, comm, &r);
    expect_algorithm(r, false, "an operator of the program");
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Op_free(&op);
    expect_sum(sums[0], "by an operator of the program");
}

static bool has_two_groups(void)
{
    return test_size > 1;
}

TEST(between_groups, .wanted = has_two_groups)
{
    MPI_Comm half, inter;
    MPI_Request r;
    int found = -1, expected = 0, side = test_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 0, &inter);
    MPI_Info info = test_info("nbcshim_algorithm", "mpi");
    MPI_Comm_set_info(inter, info);
    MPI_Info_free(&info);
    for (int i = 1 - side; i < test_size; i += 2)
        expected += i + 1;
    MPI_Iallreduce(&mine, &found, 1, MPI_INT, MPI_SUM, inter, &r);
    expect_algorithm(r, false, "between groups");
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (found != expected)
        test_fail("between groups: %d, not %d", found, expected);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Open MPI says that it has HCOLL (test/device/aware.c): what that carries out is the MPI's. */
static bool has_hcoll(void)
{
    return getenv("NBC_HCOLL");
}

TEST(what_is_offloaded_is_the_mpi_s, .wanted = has_hcoll)
{
    const char *blocking = getenv("NBCSHIM_BLOCKING");
    bool left = strcmp(getenv("NBC_HCOLL"), "0") != 0 && !getenv("NBCSHIM_TUNING") &&
                !(blocking && strcmp(blocking, "own") == 0) &&
                (test_size == 1 || !getenv("NBC_HCOLL_RANK"));
    MPI_Comm other = make_comm("allreduce:ring");
    MPI_Request r[3];
    int part = -1;
    start(MPI_COMM_WORLD, 0, &r[0]);
    start(other, 1, &r[1]);
    MPI_Iscan(&mine, &part, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[2]);
    expect_algorithm(r[0], left, "an allreduce");
    expect_algorithm(r[1], false, "an allreduce with a hint");
    expect_algorithm(r[2], false, "a scan");
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    expect_sum(sums[0], "offloaded");
    expect_sum(sums[1], "by messages");
    MPI_Comm_free(&other);
}

TEST(a_wrong_call_fails_as_others_do)
{
    MPI_Request r = MPI_REQUEST_NULL;
    int counts[64], displs[64] = {0}, all[64];
    for (int i = 0; i < test_size; i++)
        counts[i] = 1;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int error = MPI_Igatherv(&mine, 1, MPI_INT, all, counts, displs, MPI_INT, test_size, comm, &r);
    if (class_of(error) != MPI_ERR_ROOT || r != MPI_REQUEST_NULL)
        test_fail("a wrong root: class %d", class_of(error));
    error = MPI_Iallreduce(&mine, &sums[0], -1, MPI_INT, MPI_SUM, comm, &r);
    if (class_of(error) != MPI_ERR_COUNT)
        test_fail("a negative count: class %d", class_of(error));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    start(comm, 0, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    expect_sum(sums[0], "after errors");
}

#ifdef HAVE_MPI_COMM_IDUP
static int wait_in_copy(MPI_Comm parent, int key, void *extra, void *value, void *copied, int *flag)
{
    MPI_Request r;
    int one = 1, alone = 0;
    (void)parent, (void)key, (void)value, (void)copied;
    MPI_Iallreduce(&one, &alone, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)extra, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (alone != 1)
        test_fail("in a callback: %d, not 1", alone);
    *flag = 0;
    return MPI_SUCCESS;
}

/* The other ranks are in the MPI for some time before they send. */
static void rank_0_waits(void)
{
    enum { POLLS = 300 };
    int flag, go = 1;
    for (int from = 1; from < test_size && test_rank == 0; from++)
        MPI_Recv(&go, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < POLLS && test_rank > 0; i++) {
        MPI_Iprobe(0, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        usleep(10);
    }
    if (test_rank > 0)
        MPI_Send(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

/* In Open MPI all duplicates but the first begin in its progress loop, in which rank 0 waits. */
TEST(a_callback_in_the_loop_of_the_mpi_waits)
{
    enum { ROUNDS = 5, N = 3 };
    MPI_Comm own, parent, made[N];
    MPI_Info info;
    MPI_Request r[N];
    int key;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_get_info(comm, &info);
    MPI_Comm_set_info(own, info);
    MPI_Info_free(&info);
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_create_keyval(wait_in_copy, MPI_COMM_NULL_DELETE_FN, &key, &own);
    MPI_Comm_set_attr(parent, key, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            MPI_Comm_idup(parent, &made[i], &r[i]);
        rank_0_waits();
        MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++)
            MPI_Comm_free(&made[i]);
    }
    MPI_Comm_free(&parent);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free(&own);
}
#endif

AROUND_TESTS(before, after)
