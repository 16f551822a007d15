/* SPDX-License-Identifier: MIT */
/* Bad arguments: the error class of the standard, through the communicator's error handler, with
 * nothing sent and the request untouched. Only one rank makes the bad call, so that whatever it
 * would send, or count as a call, shows in the good one that follows on all. */
#include "util.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { N = 4 };

static int in[64 * N], out[64 * N];
static int counts[64], displs[64], negative[64];
static MPI_Datatype types[64], no_types[64];
static MPI_Datatype derived;

/* The call under test: nonblocking, or persistent. */
struct way {
    bool persistent;
    MPI_Comm comm;
    MPI_Request *request;
};

#define CALL(Name, name, ...)                                                           \
    (w->persistent ? MPI_##Name##_init(__VA_ARGS__, w->comm, MPI_INFO_NULL, w->request) \
                   : MPI_I##name(__VA_ARGS__, w->comm, w->request))

#define BAD(function, Name, name, ...)        \
    static int function(struct way *w)        \
    {                                         \
        return CALL(Name, name, __VA_ARGS__); \
    }

BAD(bcast_count, Bcast, bcast, out, -1, MPI_INT, 0)
BAD(bcast_type, Bcast, bcast, out, 1, MPI_DATATYPE_NULL, 0)
BAD(bcast_root_low, Bcast, bcast, out, 1, MPI_INT, -7)
BAD(bcast_root_high, Bcast, bcast, out, 1, MPI_INT, test_size)
BAD(bcast_null, Bcast, bcast, NULL, 1, MPI_INT, 0)
BAD(bcast_in_place, Bcast, bcast, MPI_IN_PLACE, 1, MPI_INT, 0)
BAD(gather_count, Gather, gather, in, -1, MPI_INT, out, 1, MPI_INT, 0)
BAD(gather_recvcount, Gather, gather, in, 1, MPI_INT, out, -1, MPI_INT, 0)
BAD(gather_type, Gather, gather, in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, 0)
BAD(gather_root, Gather, gather, in, 1, MPI_INT, out, 1, MPI_INT, -1)
BAD(gather_place, Gather, gather, in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0)
BAD(gather_from_no_place, Gather, gather, MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, 0)
BAD(gather_same, Gather, gather, out, 1, MPI_INT, out, 1, MPI_INT, 0)
BAD(gatherv_counts, Gatherv, gatherv, in, 1, MPI_INT, out, negative, displs, MPI_INT, 0)
BAD(gatherv_same, Gatherv, gatherv, out, 1, MPI_INT, out, counts, displs, MPI_INT, 0)
BAD(gatherv_null, Gatherv, gatherv, in, 1, MPI_INT, out, NULL, displs, MPI_INT, 0)
BAD(gatherv_buffer, Gatherv, gatherv, in, 1, MPI_INT, NULL, counts, displs, MPI_INT, 0)
BAD(scatter_count, Scatter, scatter, in, -2, MPI_INT, out, 1, MPI_INT, 0)
BAD(scatterv_counts, Scatterv, scatterv, in, negative, displs, MPI_INT, out, 1, MPI_INT, 0)
BAD(scatterv_same, Scatterv, scatterv, in, counts, displs, MPI_INT, in, 1, MPI_INT, 0)
BAD(scatter_place, Scatter, scatter, MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, 0)
BAD(allgather_type, Allgather, allgather, in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT)
BAD(allgather_null, Allgather, allgather, NULL, 1, MPI_INT, out, 1, MPI_INT)
BAD(allgatherv_counts, Allgatherv, allgatherv, in, 1, MPI_INT, out, negative, displs, MPI_INT)
BAD(alltoall_count, Alltoall, alltoall, in, 1, MPI_INT, out, -1, MPI_INT)
BAD(alltoallv_counts, Alltoallv, alltoallv, in, counts, displs, MPI_INT, out, negative, displs,
    MPI_INT)
BAD(alltoallv_same, Alltoallv, alltoallv, in, counts, displs, MPI_INT, in, counts, displs, MPI_INT)
BAD(alltoallv_null, Alltoallv, alltoallv, in, NULL, displs, MPI_INT, out, counts, displs, MPI_INT)
BAD(alltoallw_type, Alltoallw, alltoallw, in, counts, displs, no_types, out, counts, displs, types)
BAD(alltoallw_null, Alltoallw, alltoallw, in, counts, displs, NULL, out, counts, displs, types)
BAD(alltoallw_same, Alltoallw, alltoallw, in, counts, displs, types, in, counts, displs, types)
BAD(reduce_op, Reduce, reduce, in, out, 1, MPI_INT, MPI_OP_NULL, 0)
BAD(reduce_root, Reduce, reduce, in, out, 1, MPI_INT, MPI_SUM, test_size + 3)
BAD(allreduce_count, Allreduce, allreduce, in, out, -1, MPI_INT, MPI_SUM)
BAD(allreduce_derived, Allreduce, allreduce, in, out, 1, derived, MPI_SUM)
BAD(allreduce_maxloc, Allreduce, allreduce, in, out, 1, MPI_INT, MPI_MAXLOC)
BAD(allreduce_band, Allreduce, allreduce, in, out, 1, MPI_DOUBLE, MPI_BAND)
BAD(allreduce_replace, Allreduce, allreduce, in, out, 1, MPI_INT, MPI_REPLACE)
#ifdef MPI_NO_OP
BAD(allreduce_no_op, Allreduce, allreduce, in, out, 1, MPI_INT, MPI_NO_OP)
#endif
BAD(allreduce_place, Allreduce, allreduce, in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM)
BAD(allreduce_null, Allreduce, allreduce, in, NULL, 1, MPI_INT, MPI_SUM)
BAD(allreduce_same, Allreduce, allreduce, in, in, 1, MPI_INT, MPI_SUM)
BAD(reduce_scatter_counts, Reduce_scatter, reduce_scatter, in, out, negative, MPI_INT, MPI_SUM)
BAD(reduce_scatter_same, Reduce_scatter, reduce_scatter, in, in, counts, MPI_INT, MPI_SUM)
BAD(reduce_scatter_block_same, Reduce_scatter_block, reduce_scatter_block, in, in, 1, MPI_INT,
    MPI_SUM)
BAD(reduce_scatter_block_type, Reduce_scatter_block, reduce_scatter_block, in, out, 1,
    MPI_DATATYPE_NULL, MPI_SUM)
BAD(scan_op, Scan, scan, in, out, 1, MPI_INT, MPI_OP_NULL)
BAD(exscan_count, Exscan, exscan, in, out, -1, MPI_INT, MPI_SUM)
BAD(neighbor_allgather, Neighbor_allgather, neighbor_allgather, in, 1, MPI_INT, out, 1, MPI_INT)
BAD(neighbor_alltoallv, Neighbor_alltoallv, neighbor_alltoallv, in, counts, displs, MPI_INT, out,
    counts, displs, MPI_INT)

#define CASE(function, class)      \
    {                              \
        function, #function, class \
    }
static const struct {
    int (*call)(struct way *w);
    const char *name;
    int class;
} cases[] = {
    CASE(bcast_count, MPI_ERR_COUNT),
    CASE(bcast_type, MPI_ERR_TYPE),
    CASE(bcast_root_low, MPI_ERR_ROOT),
    CASE(bcast_root_high, MPI_ERR_ROOT),
    CASE(bcast_null, MPI_ERR_BUFFER),
    CASE(bcast_in_place, MPI_ERR_BUFFER),
    CASE(gather_count, MPI_ERR_COUNT),
    CASE(gather_recvcount, MPI_ERR_COUNT),
    CASE(gather_type, MPI_ERR_TYPE),
    CASE(gather_root, MPI_ERR_ROOT),
    CASE(gather_place, MPI_ERR_BUFFER),
    CASE(gather_same, MPI_ERR_BUFFER),
    CASE(gatherv_counts, MPI_ERR_COUNT),
    CASE(gatherv_same, MPI_ERR_BUFFER),
    CASE(gatherv_null, MPI_ERR_ARG),
    CASE(gatherv_buffer, MPI_ERR_BUFFER),
    CASE(scatter_count, MPI_ERR_COUNT),
    CASE(scatterv_counts, MPI_ERR_COUNT),
    CASE(scatterv_same, MPI_ERR_BUFFER),
    CASE(scatter_place, MPI_ERR_BUFFER),
    CASE(allgather_type, MPI_ERR_TYPE),
    CASE(allgather_null, MPI_ERR_BUFFER),
    CASE(allgatherv_counts, MPI_ERR_COUNT),
    CASE(alltoall_count, MPI_ERR_COUNT),
    CASE(alltoallv_counts, MPI_ERR_COUNT),
    CASE(alltoallv_same, MPI_ERR_BUFFER),
    CASE(alltoallv_null, MPI_ERR_ARG),
    CASE(alltoallw_type, MPI_ERR_TYPE),
    CASE(alltoallw_null, MPI_ERR_ARG),
    CASE(alltoallw_same, MPI_ERR_BUFFER),
    CASE(reduce_op, MPI_ERR_OP),
    CASE(reduce_root, MPI_ERR_ROOT),
    CASE(allreduce_count, MPI_ERR_COUNT),
    CASE(allreduce_derived, MPI_ERR_OP),
    CASE(allreduce_maxloc, MPI_ERR_OP),
    CASE(allreduce_band, MPI_ERR_OP),
    CASE(allreduce_replace, MPI_ERR_OP),
#ifdef MPI_NO_OP
    CASE(allreduce_no_op, MPI_ERR_OP),
#endif
    CASE(allreduce_place, MPI_ERR_BUFFER),
    CASE(allreduce_null, MPI_ERR_BUFFER),
    CASE(allreduce_same, MPI_ERR_BUFFER),
    CASE(reduce_scatter_counts, MPI_ERR_COUNT),
    CASE(reduce_scatter_same, MPI_ERR_BUFFER),
    CASE(reduce_scatter_block_same, MPI_ERR_BUFFER),
    CASE(reduce_scatter_block_type, MPI_ERR_TYPE),
    CASE(scan_op, MPI_ERR_OP),
    CASE(exscan_count, MPI_ERR_COUNT),
    CASE(neighbor_allgather, MPI_ERR_TOPOLOGY),
    CASE(neighbor_alltoallv, MPI_ERR_TOPOLOGY),
};
enum { NCASES = sizeof cases / sizeof *cases };

/* --- error handlers ----------------------------------------------------------------------------*/

static int handler_calls, handler_class;
static MPI_Comm handler_comm;

static void on_error(MPI_Comm *comm, int *code, ...)
{
    handler_calls++;
    handler_comm = *comm;
    MPI_Error_class(*code, &handler_class);
}

static const char *way_name(const struct way *w)
{
    return w->persistent ? "persistent" : "nonblocking";
}

/* The bad call, and what the program sees of it. `raises`: the communicator whose handler counts.
 */
static void bad_call(int (*call)(struct way *), const char *name, int class, struct way *w,
                     MPI_Comm raises)
{
    MPI_Request untouched, given;
    int code;

    /* Some request that is not null. */
    MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &untouched);
    given = untouched;
    w->request = &given;
    handler_calls = 0;
    code = call(w);
    EXPECT_INT(class_of(code), class, "%s %s", way_name(w), name);
    EXPECT(given == untouched, "%s %s has set the request", way_name(w), name);
    if (raises != MPI_COMM_NULL)
        EXPECT(handler_calls == 1 && handler_comm == raises && handler_class == class,
               "%s %s: the handler was called %d times, with class %d, %s communicator",
               way_name(w), name, handler_calls, handler_class,
               handler_comm == raises ? "the right" : "another");
    MPI_Request_free(&untouched);
}

/* All ranks, all kinds: would be out of step if the bad call had left anything behind. */
static void good_calls(const struct way *w, const char *name)
{
    MPI_Request r[2];
    int rank = test_rank, sum = -1, values[64];

    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, w->comm, &r[0]);
    MPI_Iallgather(&rank, 1, MPI_INT, values, 1, MPI_INT, w->comm, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    EXPECT_INT(sum, test_size * (test_size - 1) / 2, "after %s", name);
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(values[i], i, "after %s", name);
}

static void run_all(struct way *w, MPI_Comm raises)
{
    for (int i = 0; i < NCASES; i++) {
        test_place("%s %s", way_name(w), cases[i].name);
        /* Rank 0, since it is the root of the rooted ones: only there all arguments count. */
        if (test_rank == 0)
            bad_call(cases[i].call, cases[i].name, cases[i].class, w, raises);
        if (i % 4 == 3)
            good_calls(w, cases[i].name);
    }
    good_calls(w, "all");
}

/* No communicator, no handler of its own: that of MPI_COMM_WORLD. */
static void null_communicator(bool persistent)
{
    struct way w = {persistent, MPI_COMM_NULL, NULL};
    MPI_Errhandler before;

    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    bad_call(bcast_count, "bcast on no communicator", MPI_ERR_COMM, &w, MPI_COMM_NULL);
    bad_call(allreduce_count, "allreduce on no communicator", MPI_ERR_COMM, &w, MPI_COMM_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
}

static void complete(struct way *w, int error, const char *name)
{
    EXPECT(error == MPI_SUCCESS, "%s %s: class %d", way_name(w), name, class_of(error));
    if (w->persistent)
        MPI_Start(w->request);
    MPI_Wait(w->request, MPI_STATUS_IGNORE);
    if (w->persistent)
        MPI_Request_free(w->request);
}

static int scan_call(struct way *w)
{
    return CALL(Scan, scan, in, out, 1, MPI_INT, MPI_SUM);
}

static int in_place_call(struct way *w)
{
    return CALL(Allreduce, allreduce, MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM);
}

static int neighbor_call(struct way *w)
{
    return CALL(Neighbor_allgather, neighbor_allgather, MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT);
}

/* MPI-4.1 section 6.8 */
static void neighbors_in_place(bool persistent)
{
    MPI_Comm line;
    int straight = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &straight, 0, &line);
    MPI_Comm_set_errhandler(line, MPI_ERRORS_RETURN);
    struct way w = {persistent, line, NULL};
    bad_call(neighbor_call, "neighbors in place", MPI_ERR_BUFFER, &w, MPI_COMM_NULL);
    MPI_Comm_free(&line);
}

static int own_allgather(struct way *w)
{
    return CALL(Allgather, allgather, out + test_rank, 1, MPI_INT, out, 1, MPI_INT);
}

static int own_allgatherv(struct way *w)
{
    return CALL(Allgatherv, allgatherv, out + test_rank, 1, MPI_INT, out, counts, displs, MPI_INT);
}

/* What a rank sends lies where it will be received: MPI_IN_PLACE is for that. On no rank is it
 * taken, so that none waits for the others. */
static void own_blocks(struct way w)
{
    bad_call(own_allgather, "own block", MPI_ERR_BUFFER, &w, MPI_COMM_NULL);
    bad_call(own_allgatherv, "own block", MPI_ERR_BUFFER, &w, MPI_COMM_NULL);
}

/* Calls for intracommunicators. (Open MPI raises such an error on MPI_COMM_WORLD.) */
static void wrong_constructors(MPI_Comm inter, int side)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 1 - side, 6, &made);
    EXPECT_INT(class_of(error), MPI_ERR_COMM);
#if MPI_VERSION >= 3 && !defined OPEN_MPI /* which crashes */
    MPI_Group group;
    MPI_Comm_group(inter, &group);
    error = MPI_Comm_create_group(inter, group, 7, &made);
    EXPECT_INT(class_of(error), MPI_ERR_COMM);
    MPI_Group_free(&group);
#endif
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    error = MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, test_size, 6, &made);
    EXPECT(error != MPI_SUCCESS, "MPI_Intercomm_create: a leader that there is not");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#if MPI_VERSION >= 3
    error = MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_EMPTY, 7, &made);
    EXPECT(!error && made == MPI_COMM_NULL, "MPI_Comm_create_group: class %d", class_of(error));
#endif
}

/* Between two groups there is no order of ranks, so no scan; nor is a place in both. */
static void intercommunicator(bool persistent)
{
    int side = test_rank % 2;
    MPI_Comm half, inter;
    struct way w;

    if (test_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, side, test_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    w = (struct way){persistent, inter, NULL};
    bad_call(scan_call, "scan on an intercommunicator", MPI_ERR_COMM, &w, MPI_COMM_NULL);
    bad_call(in_place_call, "in place on an intercommunicator", MPI_ERR_BUFFER, &w, MPI_COMM_NULL);
    wrong_constructors(inter, side);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* MPI-4.1 7.7.4: nobody changes a predefined attribute, and the communicator stays what it is. */
static void predefined_attribute(MPI_Comm comm)
{
    int value = 5, keyval = MPI_ICOLL_MAX_OUTSTANDING, found, *outstanding;
    MPI_Errhandler before;
    handler_calls = 0;
    EXPECT_INT(class_of(MPI_Comm_set_attr(comm, keyval, &value)), MPI_ERR_KEYVAL);
    CHECK(handler_comm == comm);
    EXPECT_INT(class_of(MPI_Comm_delete_attr(comm, keyval)), MPI_ERR_KEYVAL);
    CHECK(handler_comm == comm);
    EXPECT_INT(handler_calls, 2);
    EXPECT_INT(handler_class, MPI_ERR_KEYVAL);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_INT(class_of(MPI_Comm_free_keyval(&keyval)), MPI_ERR_KEYVAL);
    EXPECT_INT(keyval, MPI_ICOLL_MAX_OUTSTANDING);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    MPI_Comm_get_attr(comm, keyval, &outstanding, &found);
    EXPECT(found && *outstanding >= 32767, "the attribute has changed");
}

/* An int that lies `behind` ints behind the address; the next one is next to it. */
static MPI_Datatype int_behind(int behind)
{
    int one = 1;
    MPI_Aint at = behind * (MPI_Aint)sizeof(int);
    MPI_Datatype there, resized;
    MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &there);
    MPI_Type_create_resized(there, 0, sizeof(int), &resized);
    MPI_Type_free(&there);
    MPI_Type_commit(&resized);
    return resized;
}

/* Both sides have the same address, and the types or blocks of one begin behind the other's data.
 */
static void halves_of_one_buffer(struct way *w)
{
    enum { HALF = 64 };
    int data[2 * HALF], later[HALF], *front = data, *back = data + HALF;
    MPI_Datatype behind = int_behind(HALF);
    front[0] = 10 + test_rank;
    complete(w, CALL(Allgather, allgather, data, 1, MPI_INT, data, 1, behind), "allgather behind");
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(back[i], 10 + i, "gathered from rank %d behind", i);
    back[0] = 20 + test_rank;
    complete(w, CALL(Gather, gather, data, 1, behind, data, 1, MPI_INT, 0), "gather from behind");
    for (int i = 0; i < test_size && test_rank == 0; i++)
        EXPECT_INT(front[i], 20 + i, "gathered from behind on rank %d", i);
    for (int i = 0; i < test_size; i++)
        front[i] = 100 * test_rank + i;
    complete(w, CALL(Alltoall, alltoall, data, 1, MPI_INT, data, 1, behind), "alltoall behind");
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(back[i], 100 * i + test_rank, "from rank %d behind", i);
    for (int i = 0; i < test_size; i++)
        front[i] = 200 * test_rank + i;
    for (int i = 0; i < test_size; i++)
        later[i] = HALF + i;
    complete(
        w, CALL(Alltoallv, alltoallv, data, counts, displs, MPI_INT, data, counts, later, MPI_INT),
        "alltoallv behind");
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(back[i], 200 * i + test_rank, "from rank %d behind", i);
    MPI_Type_free(&behind);
}

static int ncalled, called_with;
static MPI_Comm called_on;

static void on_freed(MPI_Comm *comm, int *error, ...)
{
    ncalled++;
    called_on = *comm;
    called_with = class_of(*error);
}

/* The program has freed the communicator, and its operation fails: the handler that it had counts,
 * not that of MPI_COMM_WORLD, which ends the program here. */
static void communicator_is_freed(void)
{
    enum { CANCEL, START, START_ALL, NCALLS };
    for (int call = 0; call < NCALLS * 2; call++) {
        MPI_Comm comm;
        MPI_Errhandler handler;
        MPI_Request r, all[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)on_freed, &handler);
        MPI_Comm_set_errhandler(comm, call % 2 ? handler : MPI_ERRORS_RETURN);
        MPI_Errhandler_free(&handler);
        MPI_Ibarrier(comm, &r);
        MPI_Comm_free(&comm);
        all[0] = r;
        ncalled = 0;
        int error = call / 2 == CANCEL  ? MPI_Cancel(&r)
                    : call / 2 == START ? MPI_Start(&r)
                                        : MPI_Startall(1, all);
        EXPECT_INT(class_of(error), MPI_ERR_REQUEST, "call %d", call);
        EXPECT(ncalled == call % 2 && (!ncalled || called_with == MPI_ERR_REQUEST),
               "call %d: the handler was called %d times, with class %d", call, ncalled,
               called_with);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
}

/* Refuses its first deletion. */
static int refuse_once(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    int *refusals = value;
    return (*refusals)++ ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static void communicator_works(MPI_Comm comm)
{
    int mine = test_rank, sum = -1;
    MPI_Request r;
    int error = MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &r);
    if (!error) {
        EXPECT(test_native || nbcshim_algorithm(r, NULL), "nbcshim does not know the communicator");
        error = MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    EXPECT(!error && sum == test_size * (test_size - 1) / 2, "class %d, sum %d", class_of(error),
           sum);
}

/* A communicator that MPI_Comm_free does not free can be used, and freed later. */
static void communicator_is_kept(void)
{
    MPI_Comm comm, world = MPI_COMM_WORLD;
    MPI_Errhandler before;
    int keyval, refusals = 0;
    test_place("MPI_Comm_free fails");
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT(MPI_Comm_free(&world) != MPI_SUCCESS, "MPI_COMM_WORLD is freed");
    communicator_works(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_once, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &refusals);
    MPI_Comm_free(&comm);
    EXPECT_INT(refusals, 1);
    if (comm != MPI_COMM_NULL) {
        communicator_works(comm);
        OK(MPI_Comm_free(&comm));
    }
    MPI_Comm_free_keyval(&keyval);
}

/* The same at completion, of a broadcast that no other rank waits for. MPICH raises the errors of
 * messages on MPI_COMM_WORLD, where those of nbcshim must not be seen. */
static void truncated_when_freed(void)
{
    for (int k = 0; k < 3 && test_size == 2; k++) {
        MPI_Comm comm;
        MPI_Request r;
        MPI_Status status;
        int data[8] = {0}, error;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        MPI_Ibcast(data, test_rank == 0 ? 8 : 4, MPI_INT, 0, comm, &r);
        MPI_Comm_free(&comm);
        if (k == 0) {
            error = MPI_Wait(&r, MPI_STATUS_IGNORE);
        } else {
            error = MPI_Waitall(1, &r, k == 1 ? &status : MPI_STATUSES_IGNORE);
            EXPECT(!error || class_of(error) == MPI_ERR_IN_STATUS, "class %d", class_of(error));
            error = error && k == 1 ? status.MPI_ERROR : MPI_SUCCESS;
        }
        EXPECT(!error || class_of(error) == MPI_ERR_TRUNCATE, "class %d", class_of(error));
        EXPECT(error || test_rank == 0 || k == 2, "no error");
    }
}

/* An error of nbcshim's messages is raised once, where the operation was called, and those of the
 * program's own messages where the MPI raises them. */
static void raised_once(void)
{
    MPI_Comm comm, made;
    MPI_Errhandler handler, before;
    MPI_Request r;
    int data[8] = {0}, error;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)on_freed, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ncalled = 0;
    MPI_Ibcast(data, test_rank == 0 ? 8 : 4, MPI_INT, 0, comm, &r);
    error = MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(class_of(error) == MPI_ERR_TRUNCATE || (!error && (test_size > 2 || !test_rank)),
           "bcast: class %d", class_of(error));
    EXPECT(ncalled == (error != MPI_SUCCESS) && (!ncalled || called_on == comm),
           "bcast: the handler was called %d times", ncalled);
    ncalled = 0;
    MPI_Intercomm_create(MPI_COMM_NULL, 0, comm, 0, 1, &made);
    EXPECT_INT(ncalled, 1, "intercommunicator of nobody");
    ncalled = 0;
    MPI_Irecv(data, 1, MPI_INT, test_rank, 1, comm, &r);
    MPI_Send(data + 4, 2, MPI_INT, test_rank, 1, comm);
    error = MPI_Wait(&r, MPI_STATUS_IGNORE);
#ifndef OPEN_MPI /* which does not notice it */
    EXPECT((IS_MPICH_43 || class_of(error) == MPI_ERR_TRUNCATE) && ncalled == 1,
           "own message: class %d, the handler was called %d times", class_of(error), ncalled);
#endif
    MPI_Comm_free(&comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&handler);
}

/* A blocking receive of a message that is too long, while an operation of nbcshim is pending on all
 * ranks but the last: the error is raised once, on the communicator of the message, and the next
 * message is the next one. MPICH 4.0.2 raises those of MPI_Mrecv on MPI_COMM_WORLD. */
static void long_message_while_pending(void)
{
    const int sent[2][2] = {{1, 2}, {3, 4}};
    int got = -1, right = (test_rank + 1) % test_size,
        left = (test_rank + test_size - 1) % test_size;
    MPI_Comm comm;
    MPI_Errhandler handler, before;
    MPI_Request r[3];
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)on_freed, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(comm, handler);
    for (int i = 0; i < 2; i++)
        MPI_Isend(sent[i], 2 - i, MPI_INT, right, 1, comm, &r[i]);
    for (int i = 0; test_rank == test_size - 1 && i < test_size - 1; i++)
        MPI_Recv(NULL, 0, MPI_INT, i, 2, comm, MPI_STATUS_IGNORE);
    MPI_Ibarrier(comm, &r[2]);
    ncalled = 0;
    int error = MPI_Recv(&got, 1, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
    EXPECT(IS_MPICH_43 || class_of(error) == MPI_ERR_TRUNCATE, "class %d", class_of(error));
    EXPECT_INT(ncalled, 1);
    CHECK(called_on == comm);
    error = MPI_Recv(&got, 1, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
    EXPECT(!error && got == 3 && ncalled == 1, "class %d, %d", class_of(error), got);
    if (test_rank < test_size - 1)
        MPI_Send(NULL, 0, MPI_INT, test_size - 1, 2, comm);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&handler);
}

/* Receives that are wrong, on rank 0 while an operation of nbcshim is pending there: they fail
 * before they wait for a message, receive none and send none. */
static void wrong_receives_while_pending(MPI_Comm comm)
{
    int got[2] = {-1, -1}, sent[2] = {5, 6}, flag = 1, last = test_size - 1, error;
    MPI_Datatype pair;
    MPI_Request r;
    MPI_Type_contiguous(2, MPI_INT, &pair); /* not committed */
    if (test_rank == 0) {
        MPI_Ibarrier(comm, &r);
        error = MPI_Recv(got, 1, pair, last, 1, comm, MPI_STATUS_IGNORE);
        EXPECT_INT(class_of(error), MPI_ERR_TYPE, "a type not committed");
        error = MPI_Recv(NULL, 2, MPI_INT, last, 1, comm, MPI_STATUS_IGNORE);
        EXPECT_INT(class_of(error), MPI_ERR_BUFFER, "no buffer");
        error =
            MPI_Sendrecv(sent, 1, MPI_INT, last, 2, got, 1, pair, last, 1, comm, MPI_STATUS_IGNORE);
        EXPECT_INT(class_of(error), MPI_ERR_TYPE);
        MPI_Send(NULL, 0, MPI_INT, last, 3, comm);
        MPI_Type_commit(&pair);
        error = MPI_Recv(got, 1, pair, last, 1, comm, MPI_STATUS_IGNORE);
        EXPECT(!error && got[0] == 5 && got[1] == 6, "class %d, %d %d", class_of(error), got[0],
               got[1]);
    } else if (test_rank == last) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
        MPI_Iprobe(0, 2, comm, &flag, MPI_STATUS_IGNORE);
        EXPECT(!flag, "a call that fails has sent a message");
        MPI_Send(sent, 2, MPI_INT, 0, 1, comm);
    }
    if (test_rank > 0)
        MPI_Ibarrier(comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Type_free(&pair);
}

/* A blocking call of nbcshim's fails on rank 0, time and again; its messages must not reach a later
 * call, also where a few calls use the tags up. */
static void blocking_call_fails(MPI_Comm comm)
{
    for (int round = 0; round < 40; round++) {
        int sum = 0, n = test_rank == 1 ? 2 : 1; /* the message of rank 1 is too long */
        if (test_rank != 1) /* rank 0 comes after rank 1 and before the others */
            usleep(test_rank ? 3000 : 1000);
        int error = round % 4 ? MPI_SUCCESS : MPI_Gather(in, n, MPI_INT, out, 1, MPI_INT, 0, comm);
        int class = class_of(error);
        EXPECT_INT(class, test_rank || test_size == 1 || round % 4 ? MPI_SUCCESS : MPI_ERR_TRUNCATE,
                   "gather %d of too much", round);
        error = MPI_Allreduce(&n, &sum, 1, MPI_INT, MPI_SUM, comm);
        EXPECT(!error && sum == test_size + (test_size > 1), "allreduce %d: class %d, sum %d",
               round, class_of(error), sum);
    }
}

/* A line of ranks, in one buffer: at its ends the two blocks of nobody are the same. */
static void blocks_of_nobody(const struct way *given)
{
    int data[4] = {-1, test_rank, test_rank, -1}, one[2] = {1, 1}, open = 0;
    bool first = test_rank == 0, last = test_rank == test_size - 1;
    MPI_Aint from[2] = {4, 8}, to[2] = {first ? 4 : 0, last ? 8 : 12};
    struct way way = *given, *w = &way;
    MPI_Cart_create(given->comm, 1, &test_size, &open, 0, &w->comm);
    complete(
        w,
        CALL(Neighbor_alltoallw, neighbor_alltoallw, data, one, from, types, data, one, to, types),
        "blocks of nobody");
    EXPECT(data[0] == (first ? -1 : test_rank - 1) && data[3] == (last ? -1 : test_rank + 1) &&
               data[1] == test_rank && data[2] == test_rank,
           "in a line: %d %d %d %d", data[0], data[1], data[2], data[3]);
    MPI_Comm_free(&w->comm);
}

/* Even ranks send to the next one, and nobody else to anyone: a side without neighbors has no
 * arrays. */
static void no_arrays(const struct way *given)
{
    int before = (test_rank - 1 + test_size) % test_size, data = test_rank, heard = -1;
    int next = (test_rank + 1) % test_size, nin = test_rank % 2, nout = next % 2, one[1] = {1};
    MPI_Aint here[1] = {0};
    struct way way = *given, *w = &way;
    MPI_Dist_graph_create_adjacent(given->comm, nin, &before, MPI_UNWEIGHTED, nout, &next,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &w->comm);
    complete(w,
             CALL(Neighbor_alltoallw, neighbor_alltoallw, nout ? &data : NULL, nout ? one : NULL,
                  nout ? here : NULL, nout ? types : NULL, nin ? &heard : NULL, nin ? one : NULL,
                  nin ? here : NULL, nin ? types : NULL),
             "no arrays");
    EXPECT_INT(heard, nin ? before : -1, "without arrays");
    MPI_Comm_free(&w->comm);
}

/* MPI_IN_PLACE in an argument that is significant only at the root is none; the send buffer of
 * another rank is significant, so there no message is sent. */
static void places_at_the_others(struct way *w)
{
    int data = 30 + test_rank, all[64];
    complete(w,
             CALL(Gather, gather, &data, 1, MPI_INT, test_rank ? MPI_IN_PLACE : all, 1, MPI_INT, 0),
             "gather into no place");
    for (int i = 0; i < test_size && test_rank == 0; i++)
        EXPECT_INT(all[i], 30 + i, "from rank %d", i);
    if (test_rank > 0) {
        MPI_Request *request = w->request;
        bad_call(gather_from_no_place, "gather from no place", MPI_ERR_BUFFER, w, MPI_COMM_NULL);
        w->request = request;
    }
    good_calls(w, "gather from no place");
}

/* Beside a count of zero the null type is no error: MPICH takes it. */
static void null_types(struct way *w)
{
    int send[64] = {test_rank + 1}, recv[64] = {0}, to_first[64] = {0}, from_all[64] = {0};
    MPI_Datatype sent[64], heard[64];
    to_first[0] = 1;
    for (int i = 0; i < test_size; i++) {
        from_all[i] = test_rank == 0;
        sent[i] = i == 0 ? MPI_INT : MPI_DATATYPE_NULL;
        heard[i] = test_rank == 0 ? MPI_INT : MPI_DATATYPE_NULL;
        displs[i] = i * (int)sizeof(int);
    }
    complete(
        w, CALL(Alltoallw, alltoallw, send, to_first, displs, sent, recv, from_all, displs, heard),
        "null types");
    for (int i = 0; i < test_size; i++) {
        EXPECT_INT(recv[i], test_rank == 0 ? i + 1 : 0, "null types, from rank %d", i);
        displs[i] = i;
    }
}

/* What looks like an error and is none: one buffer on both sides of which other parts are used, and
 * arrays of nobody. */
static void not_errors(bool persistent, MPI_Comm comm)
{
    MPI_Request r;
    MPI_Comm alone;
    int behind[64], data[64 * N], none = 0;
    struct way way = {persistent, comm, &r}, *w = &way;
    for (int i = 0; i < 64; i++)
        behind[i] = N + i;
    data[0] = 10 + test_rank;
    complete(w, CALL(Gatherv, gatherv, data, 1, MPI_INT, data, counts, behind, MPI_INT, 0),
             "gatherv behind what is sent");
    for (int i = 0; i < test_size && test_rank == 0; i++)
        EXPECT_INT(data[N + i], 10 + i, "from rank %d", i);
    for (int i = 0; i < test_size && test_rank == 0; i++)
        data[N + i] = 20 + i;
    complete(w, CALL(Scatterv, scatterv, data, counts, behind, MPI_INT, data, 1, MPI_INT, 0),
             "scatterv from behind what is received");
    EXPECT_INT(data[0], 20 + test_rank);
    halves_of_one_buffer(w);
    blocks_of_nobody(w);
    no_arrays(w);
    null_types(w);
    places_at_the_others(w);
#ifdef OPEN_MPI /* MPICH refuses it */
    data[0] = test_rank;
    complete(w, CALL(Exscan, exscan, data, test_rank ? data + 1 : data, 1, MPI_INT, MPI_SUM),
             "exscan whose receive buffer does not count");
    EXPECT(data[0] == test_rank && (!test_rank || data[1] == test_rank * (test_rank - 1) / 2),
           "exscan: %d, %d", data[0], data[1]);
#endif

    MPI_Dist_graph_create_adjacent(comm, 0, &none, MPI_UNWEIGHTED, 0, &none, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &alone);
    w->comm = alone;
    complete(w,
             CALL(Neighbor_alltoallv, neighbor_alltoallv, NULL, NULL, NULL, MPI_INT, NULL, NULL,
                  NULL, MPI_INT),
             "no neighbors");
    complete(
        w,
        CALL(Neighbor_allgatherv, neighbor_allgatherv, in, 1, MPI_INT, NULL, NULL, NULL, MPI_INT),
        "no neighbors");
    MPI_Comm_free(&alone);
}

int main(int argc, char **argv)
{
    MPI_Comm returning, counting;
    MPI_Errhandler handler;
    struct way w;

    test_init(&argc, &argv);
    for (int i = 0; i < 64; i++) {
        counts[i] = 1;
        displs[i] = i;
        negative[i] = i == 0 ? -1 : 1;
        types[i] = MPI_INT;
        no_types[i] = MPI_DATATYPE_NULL;
    }
    MPI_Type_contiguous(2, MPI_INT, &derived);
    MPI_Type_commit(&derived);
    MPI_Comm_dup(MPI_COMM_WORLD, &returning);
    MPI_Comm_dup(MPI_COMM_WORLD, &counting);
    MPI_Comm_set_errhandler(returning, MPI_ERRORS_RETURN);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)on_error, &handler);
    MPI_Comm_set_errhandler(counting, handler);
    MPI_Errhandler_free(&handler);
    for (int persistent = 0; persistent < 1 + test_has_persistent(); persistent++) {
        w = (struct way){persistent > 0, returning, NULL};
        run_all(&w, MPI_COMM_NULL);
        w = (struct way){persistent > 0, counting, NULL};
        run_all(&w, counting);
        null_communicator(persistent > 0);
        intercommunicator(persistent > 0);
        neighbors_in_place(persistent > 0);
        own_blocks((struct way){persistent > 0, returning, NULL});
        not_errors(persistent > 0, returning);
    }
    if (!test_native)
        predefined_attribute(counting);
    communicator_is_freed();
    communicator_is_kept();
    if (argc > 1 && strcmp(argv[1], "blocking") == 0)
        blocking_call_fails(returning);
    truncated_when_freed();
    raised_once();
    if (test_size > 1) { /* Open MPI has no such error for messages of a process to itself */
        long_message_while_pending();
        wrong_receives_while_pending(returning);
    }
    MPI_Comm_free(&returning);
    MPI_Comm_free(&counting);
    MPI_Type_free(&derived);
    return test_done();
}
