/* SPDX-License-Identifier: MIT */
/* NBCSHIM_CHECK=1: ranks whose calls do not belong together all get an error that says so, none
 * hangs, and the next calls on the communicator work. One rank, the last of MPI_COMM_WORLD, makes
 * another call than the others. With the argument finalize it leaves a call out instead. */
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static bool odd; /* this rank makes the other call */
static int in[MOST], out[MOST], counts[MOST], displs[MOST], ones[MOST];

static bool low; /* in the lower group of an intercommunicator */

enum where { PLAIN, RING, INTER, UNNAMED };

struct row {
    const char *name;
    int (*run)(MPI_Comm comm); /* makes one call, as this rank makes it, and completes it */
    const char *says[2];       /* MPI_Error_string holds both; the second may depend on the group */
    enum where where;
    int least; /* ranks */
};

static MPI_Comm make(enum where where)
{
    static const char *const names[] = {"plain", "ring", "inter", ""};
    MPI_Comm comm, half;
    int periodic = 1;
    if (where == PLAIN || where == UNNAMED)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else if (where == RING)
        MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &periodic, 0, &comm);
    else {
        MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? test_size / 2 : 0, 0, &comm);
        MPI_Comm_free(&half);
    }
    MPI_Comm_set_name(comm, names[where]);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

static void expect_told(const struct row *row, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = MPI_SUCCESS;
    EXPECT(error != MPI_SUCCESS, "%s: no error", row->name);
    if (!error)
        return;
    MPI_Error_class(error, &class);
    EXPECT_INT(class, MPI_ERR_OTHER, "%s", row->name);
    MPI_Error_string(error, text, &length);
    for (int i = 0; i < 2; i++)
        EXPECT(strstr(text, row->says[i]), "%s: no '%s' in '%s'", row->name, row->says[i], text);
    static const char *const wheres[] = {"plain of", "ring of", "inter of",
                                         "an unnamed communicator of"};
    EXPECT(strstr(text, wheres[row->where]), "%s: no communicator in '%s'", row->name, text);
}

/* The communicator goes on as if nothing had happened. */
static void expect_working(const struct row *row, MPI_Comm comm)
{
    MPI_Request request[2];
    int one = 1, sum = 0, ranks = test_size;
    int error = MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request[0]);
    EXPECT_INT(error, 0, "%s, then an allreduce", row->name);
    error = MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request[1]);
    EXPECT_INT(error, 0, "%s, then an init", row->name);
    MPI_Start(&request[1]);
    error = MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    EXPECT_INT(error, 0, "%s, then they complete", row->name);
    MPI_Request_free(&request[1]);
    if (row->where == INTER)
        MPI_Comm_remote_size(comm, &ranks);
    EXPECT_INT(sum, ranks, "%s, then", row->name);
}

static void row_run(const struct row *row)
{
    if (test_size < row->least)
        return;
    MPI_Comm comm = make(row->where);
    expect_told(row, row->run(comm));
    expect_working(row, comm);
    MPI_Comm_free(&comm);
}

/* A test: the error that all ranks get says these words. The body returns the error of this rank.
 */
#define ON(test, where, least, first, second)                                              \
    static int test##_call(MPI_Comm comm);                                                 \
    TEST(test)                                                                             \
    {                                                                                      \
        static const struct row row = {#test, test##_call, {first, second}, where, least}; \
        row_run(&row);                                                                     \
    }                                                                                      \
    static int test##_call(MPI_Comm comm)
#define ALL_TOLD(test, first, second) ON(test, PLAIN, 2, first, second)

static int finish(int error, MPI_Request *request)
{
    return error ? error : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Of a nonblocking call, whose request is the last argument. */
#define COMPLETE(name, ...)                                               \
    do {                                                                  \
        MPI_Request request;                                              \
        return finish(MPI_##name(__VA_ARGS__, comm, &request), &request); \
    } while (0)

/* The two calls belong to different collectives, or to different kinds of calls. */
static int other_collective(MPI_Comm comm)
{
    MPI_Request request;
    return finish(odd ? MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, comm, &request)
                      : MPI_Ibarrier(comm, &request),
                  &request);
}

ALL_TOLD(collective, "MPI_Ibarrier", "MPI_Iallreduce")
{
    return other_collective(comm);
}

ON(unnamed, UNNAMED, 2, "MPI_Ibarrier", "MPI_Iallreduce")
{
    return other_collective(comm);
}

ON(inter_collective, INTER, 2, "MPI_Ibarrier", "MPI_Iallreduce")
{
    return other_collective(comm);
}

ALL_TOLD(both_blocking, "calls MPI_Barrier", "calls MPI_Bcast")
{
    return odd ? MPI_Bcast(in, 1, MPI_INT, 0, comm) : MPI_Barrier(comm);
}

ALL_TOLD(blocking, "MPI_Ibarrier", "MPI_Barrier")
{
    MPI_Request request;
    return odd ? MPI_Barrier(comm) : finish(MPI_Ibarrier(comm, &request), &request);
}

/* Without checks this program runs: test/mpi/orders.c. */
ALL_TOLD(order, "calls MPI_Barrier", "calls MPI_Iallreduce")
{
    MPI_Request request = MPI_REQUEST_NULL;
    int first = odd ? MPI_Barrier(comm) : MPI_SUCCESS;
    int error = MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, comm, &request);
    int second = odd ? MPI_SUCCESS : MPI_Barrier(comm);
    error = finish(error, &request);
    EXPECT(error && (odd ? first : second), "of two calls one gives no error");
    return error;
}

ALL_TOLD(persistent, "MPI_Ibarrier", "MPI_Barrier_init")
{
    MPI_Request request;
    return odd ? MPI_Barrier_init(comm, MPI_INFO_NULL, &request)
               : finish(MPI_Ibarrier(comm, &request), &request);
}

ALL_TOLD(two_persistent, "MPI_Barrier_init", "MPI_Bcast_init")
{
    MPI_Request request;
    return odd ? MPI_Bcast_init(in, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &request)
               : MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
}

ALL_TOLD(constructor, "MPI_Ibarrier", "another collective function")
{
    MPI_Request request;
    MPI_Comm made;
    return odd ? MPI_Comm_dup(comm, &made) : finish(MPI_Ibarrier(comm, &request), &request);
}

/* The same collective with other arguments. */
ALL_TOLD(root, "gives root 0", "gives root 1")
{
    COMPLETE(Ibcast, in, 1, MPI_INT, odd);
}

ALL_TOLD(operator, "MPI_SUM", "MPI_MAX")
{
    COMPLETE(Iallreduce, in, out, 1, MPI_INT, odd ? MPI_MAX : MPI_SUM);
}

ALL_TOLD(user_operator, "a commutative user-defined", "a user-defined")
{
    MPI_Request request;
    MPI_Op op;
    MPI_Op_create(add_ints, !odd, &op);
    int error = MPI_Ireduce(in, out, 1, MPI_INT, op, 0, comm, &request);
    MPI_Op_free(&op);
    return finish(error, &request);
}

ALL_TOLD(bcast_size, "MPI_Ibcast", "expects 8 bytes")
{
    COMPLETE(Ibcast, in, 1 + odd, MPI_INT, 0);
}

ALL_TOLD(bcast_of_less, "MPI_Ibcast", "expects 4 bytes")
{
    COMPLETE(Ibcast, in, 2 - odd, MPI_INT, 0);
}

ALL_TOLD(gather_size, "MPI_Igather", "sends 4 bytes")
{
    COMPLETE(Igather, in, 2 - odd, MPI_INT, out, 2, MPI_INT, 0);
}

ALL_TOLD(scatter_size, "MPI_Iscatter", "expects 8 bytes")
{
    COMPLETE(Iscatter, in, 1, MPI_INT, out, 1 + odd, MPI_INT, 0);
}

ALL_TOLD(allgather_size, "MPI_Iallgather", "sends 8 bytes")
{
    COMPLETE(Iallgather, in, 1 + odd, MPI_INT, out, 1 + odd, MPI_INT);
}

ALL_TOLD(alltoall_type, "MPI_Ialltoall", "sends 2 bytes")
{
    MPI_Datatype type = odd ? MPI_SHORT : MPI_INT;
    COMPLETE(Ialltoall, in, 1, type, out, 1, type);
}

ALL_TOLD(allreduce_size, "sends 8 bytes", "sends 4 bytes")
{
    COMPLETE(Iallreduce, in, out, 2 - odd, MPI_INT, MPI_SUM);
}

ALL_TOLD(persistent_size, "MPI_Allreduce_init", "sends 4 bytes")
{
    MPI_Request request;
    return MPI_Allreduce_init(in, out, 2 - odd, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
}

ALL_TOLD(blocking_size, "MPI_Allreduce:", "sends 4 bytes")
{
    return MPI_Allreduce(in, out, 2 - odd, MPI_INT, MPI_SUM, comm);
}

/* The odd rank has so many more in the first and in the second count. */
static int *counts_with(int first, int second)
{
    memcpy(counts, ones, sizeof counts);
    counts[0] += odd ? first : 0;
    counts[1] += odd ? second : 0;
    return counts;
}

/* Another array of the same sum. */
ALL_TOLD(scattered_counts, "MPI_Ireduce_scatter", "different counts")
{
    COMPLETE(Ireduce_scatter, in, out, counts_with(1, -1), MPI_INT, MPI_SUM);
}

ALL_TOLD(gatherv_size, "sends rank 0 4 bytes more than", "")
{
    COMPLETE(Igatherv, in, 1 + odd, MPI_INT, out, ones, displs, MPI_INT, 0);
}

ALL_TOLD(allgatherv_size, "several pairs of ranks", "")
{
    COMPLETE(Iallgatherv, in, 1 + odd, MPI_INT, out, ones, displs, MPI_INT);
}

ALL_TOLD(alltoallv_one_pair, "sends rank 0 4 bytes more than", "")
{
    COMPLETE(Ialltoallv, in, counts_with(1, 0), displs, MPI_INT, out, ones, displs, MPI_INT);
}

/* What is too much for one is missing for another. */
ALL_TOLD(alltoallv_two_pairs, "several pairs of ranks", "")
{
    COMPLETE(Ialltoallv, in, counts_with(1, -1), displs, MPI_INT, out, ones, displs, MPI_INT);
}

ON(neighbor_size, RING, 3, "MPI_Ineighbor_alltoallv", "sends rank 0 4")
{
    int two[2] = {1, 1 + odd};
    COMPLETE(Ineighbor_alltoallv, in, two, displs, MPI_INT, out, ones, displs, MPI_INT);
}

ON(hint, PLAIN, 3, "MPI_Allreduce_init", "uses algorithm ring")
{
    MPI_Request request;
    MPI_Info info;
    MPI_Info_create(&info);
    if (odd)
        MPI_Info_set(info, "nbcshim_algorithm", "ring");
    int error = MPI_Allreduce_init(in, out, 8, MPI_INT, MPI_SUM, comm, info, &request);
    MPI_Info_free(&info);
    return error;
}

ALL_TOLD(segment_hint, "uses segments of 16 bytes", "segments of 8 bytes")
{
    MPI_Request request;
    MPI_Info info = test_info("nbcshim_algorithm", "chain");
    MPI_Info_set(info, "nbcshim_segment_size", odd ? "8" : "16");
    int error = MPI_Bcast_init(in, 8, MPI_INT, 0, comm, info, &request);
    MPI_Info_free(&info);
    return error;
}

/* On an intercommunicator; rank 0 of the lower group is the root. */
static int root_here(MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
}

/* The odd rank is of the upper group. */
ON(inter_root, INTER, 4, "gives root 0", "gives root 1")
{
    COMPLETE(Ibcast, in, 1, MPI_INT, odd ? 1 : root_here(comm));
}

ON(inter_no_root, INTER, 2, "no rank gives MPI_ROOT", "")
{
    COMPLETE(Ibcast, in, 1, MPI_INT, low ? MPI_PROC_NULL : 0);
}

ON(inter_two_sides, INTER, 2, "places the root in the other group", "")
{
    COMPLETE(Ibcast, in, 1, MPI_INT, 0);
}

ON(inter_size, INTER, 2, "4 bytes", "8 bytes")
{
    COMPLETE(Ibcast, in, low ? 1 : 2, MPI_INT, root_here(comm));
}

ON(inter_alltoallv, INTER, 2, "4 bytes more than", "")
{
    COMPLETE(Ialltoallv, in, counts_with(1, 0), displs, MPI_INT, out, ones, displs, MPI_INT);
}

/* Many at once, of which one is wrong, completed out of order. */
TEST(many_at_once, .wanted = test_has_peers)
{
    enum { N = 40 };
    MPI_Request request[N];
    MPI_Comm comm = make(PLAIN);
    int one = 1, sum[N];
    for (int i = 0; i < N; i++)
        MPI_Iallreduce(&one, &sum[i], 1, MPI_INT, odd && i == 7 ? MPI_MAX : MPI_SUM, comm,
                       &request[i]);
    for (int i = N - 1; i >= 0; i--) {
        int error = MPI_Wait(&request[i], MPI_STATUS_IGNORE);
        EXPECT_INT(!error, i != 7, "many, number %d", i);
        EXPECT(i == 7 || sum[i] == test_size, "many: number %d gives %d", i, sum[i]);
    }
    MPI_Comm_free(&comm);
}

static void begin(void)
{
    odd = test_size > 1 && test_rank == test_size - 1;
    low = test_rank < test_size / 2;
    for (int i = 0; i < MOST; i++) {
        ones[i] = 1;
        displs[i] = i;
    }
}

AROUND_TESTS(begin, NULL)

/* The last rank leaves an MPI_Barrier out: "matching finalize". */
static int leave_out(int argc, char **argv)
{
    int error = MPI_SUCCESS;
    test_init(&argc, &argv);
    begin();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!odd)
        error = MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_INT(!error, odd, "a call left out");
    int failed = test_failures() > 0;
    MPI_Finalize();
    return failed;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "finalize") == 0)
        return leave_out(argc, argv);
    return test_main(argc, argv);
}
