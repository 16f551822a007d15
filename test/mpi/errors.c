/* SPDX-License-Identifier: MIT */
/* Errors that matrix.c has not: they depend on the rank, are those of an operation, a message or a
 * communicator, or look like errors and are none. */
#include "util.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int counts[64], displs[64];
static MPI_Comm returning; /* errors are returned */

/* The call under test: nonblocking, or persistent. */
struct way {
    bool persistent;
    MPI_Comm comm;
    MPI_Request *request;
};

#define CALL(Name, name, ...)                                                           \
    (w->persistent ? MPI_##Name##_init(__VA_ARGS__, w->comm, MPI_INFO_NULL, w->request) \
                   : MPI_I##name(__VA_ARGS__, w->comm, w->request))

/* A test with nonblocking calls, and with persistent ones. */
#define BOTH_WAYS(name)                         \
    static void with_way_##name(struct way *w); \
    TEST(name)                                  \
    {                                           \
        in_both_ways(with_way_##name);          \
    }                                           \
    static void with_way_##name(struct way *w)

static void in_both_ways(void (*run)(struct way *w))
{
    for (int persistent = 0; persistent < 1 + test_has_persistent(); persistent++) {
        MPI_Request request;
        struct way way = {persistent > 0, returning, &request};
        run(&way);
    }
}

static int ncalled, called_with;
static MPI_Comm called_on;
static MPI_Errhandler counting; /* sets these three */

static void on_error(MPI_Comm *comm, int *error, ...)
{
    ncalled++;
    called_on = *comm;
    called_with = class_of(*error);
}

/* Returns the former handler, for put_back. */
static MPI_Errhandler set_handler(MPI_Comm comm, MPI_Errhandler handler)
{
    MPI_Errhandler former;
    MPI_Comm_get_errhandler(comm, &former);
    MPI_Comm_set_errhandler(comm, handler);
    ncalled = 0;
    return former;
}

static void put_back(MPI_Comm comm, MPI_Errhandler former)
{
    MPI_Comm_set_errhandler(comm, former);
    MPI_Errhandler_free(&former);
}

static const char *way_name(const struct way *w)
{
    return w->persistent ? "persistent" : "nonblocking";
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

TEST(intercommunicator, .wanted = test_has_peers)
{
    int side = test_rank % 2;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, side, test_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    wrong_constructors(inter, side);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* MPI-4.1 7.7.4: nobody changes a predefined attribute, and the communicator stays what it is. */
TEST(predefined_attribute, .wanted = test_has_shim)
{
    int value = 5, keyval = MPI_ICOLL_MAX_OUTSTANDING, found, *outstanding;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Errhandler former = set_handler(comm, counting);
    EXPECT_INT(class_of(MPI_Comm_set_attr(comm, keyval, &value)), MPI_ERR_KEYVAL);
    CHECK(called_on == comm);
    EXPECT_INT(class_of(MPI_Comm_delete_attr(comm, keyval)), MPI_ERR_KEYVAL);
    CHECK(called_on == comm);
    EXPECT_INT(ncalled, 2);
    EXPECT_INT(called_with, MPI_ERR_KEYVAL);
    put_back(comm, former);
    former = set_handler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_INT(class_of(MPI_Comm_free_keyval(&keyval)), MPI_ERR_KEYVAL);
    EXPECT_INT(keyval, MPI_ICOLL_MAX_OUTSTANDING);
    put_back(MPI_COMM_WORLD, former);
    MPI_Comm_get_attr(comm, keyval, &outstanding, &found);
    EXPECT(found && *outstanding >= 32767, "the attribute has changed");
    MPI_Comm_free(&comm);
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
BOTH_WAYS(halves_of_one_buffer)
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
    later[test_size] = displs[test_size]; /* behind the arrays: one place for both, nobody's */
    complete(
        w, CALL(Alltoallv, alltoallv, data, counts, displs, MPI_INT, data, counts, later, MPI_INT),
        "alltoallv behind");
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(back[i], 200 * i + test_rank, "from rank %d behind", i);
    MPI_Type_free(&behind);
}

/* The program has freed the communicator, and its operation fails: the handler that it had counts,
 * not that of MPI_COMM_WORLD, which ends the program here. */
TEST(communicator_is_freed)
{
    enum { CANCEL, START, START_ALL, NCALLS };
    for (int call = 0; call < NCALLS * 2; call++) {
        MPI_Comm comm;
        MPI_Request r, all[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, call % 2 ? counting : MPI_ERRORS_RETURN);
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
    EXPECT(!error && sum == sum_of_ranks(), "class %d, sum %d", class_of(error), sum);
}

/* A communicator that MPI_Comm_free does not free can be used, and freed later. Newer versions of
 * MPICH raise these errors on MPI_COMM_SELF. */
TEST(communicator_is_kept)
{
    MPI_Comm comm, world = MPI_COMM_WORLD;
    int keyval, refusals = 0;
    MPI_Errhandler former = set_handler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler former_self = set_handler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EXPECT(MPI_Comm_free(&world) != MPI_SUCCESS, "MPI_COMM_WORLD is freed");
    communicator_works(MPI_COMM_WORLD);
    put_back(MPI_COMM_WORLD, former);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_once, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &refusals);
    MPI_Comm_free(&comm);
    put_back(MPI_COMM_SELF, former_self);
    EXPECT_INT(refusals, 1);
    if (comm != MPI_COMM_NULL) {
        communicator_works(comm);
        OK(MPI_Comm_free(&comm));
    }
    MPI_Comm_free_keyval(&keyval);
}

/* An operation of a freed communicator fails at completion: a broadcast that no other rank waits
 * for. MPICH raises the errors of messages on MPI_COMM_WORLD, where those of nbcshim must not be
 * seen. */
TEST(truncated_when_freed)
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

static bool is_by_messages(void)
{
    return test_has_shim() && !getenv("NBCSHIM_TUNING"); /* which leaves calls to the MPI */
}

/* The block of a rank for itself finds no room. */
TEST(no_room_for_own_block, .wanted = is_by_messages)
{
    int in[1] = {1}, out[1] = {-1}, one[1] = {1}, none[1] = {0};
    MPI_Comm comm;
    MPI_Request r[4];
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Igather(in, 1, MPI_INT, out, 0, MPI_INT, 0, comm, &r[0]);
    MPI_Iscatter(in, 1, MPI_INT, out, 0, MPI_INT, 0, comm, &r[1]);
    MPI_Iallgather(in, 1, MPI_INT, out, 0, MPI_INT, comm, &r[2]);
    MPI_Ialltoallv(in, one, none, MPI_INT, out, none, none, MPI_INT, comm, &r[3]);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 4; i++) {
        int error = MPI_Wait(&r[i], MPI_STATUS_IGNORE);
        EXPECT(class_of(error) == MPI_ERR_TRUNCATE, "%d: class %d", i, class_of(error));
    }
    EXPECT_INT(out[0], -1);
}

/* An error of nbcshim's messages is raised once, where the operation was called, and those of the
 * program's own messages, and of a call without a communicator, where the MPI raises them. */
TEST(raised_once)
{
    MPI_Comm comm, made;
    MPI_Request r;
    int data[8] = {0}, error;
    MPI_Errhandler former = set_handler(MPI_COMM_WORLD, counting);
    MPI_Errhandler former_self = set_handler(MPI_COMM_SELF, counting);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
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
    put_back(MPI_COMM_SELF, former_self);
    put_back(MPI_COMM_WORLD, former);
}

/* A blocking receive of a message that is too long, while an operation of nbcshim is pending on all
 * ranks but the last: the error is raised once, on the communicator of the message, and the next
 * message is the next one. MPICH 4.0.2 raises those of MPI_Mrecv on MPI_COMM_WORLD. (Open MPI has
 * no such error for messages of a process to itself.) */
TEST(long_message_while_pending, .wanted = test_has_peers)
{
    const int sent[2][2] = {{1, 2}, {3, 4}};
    int got = -1;
    MPI_Comm comm;
    MPI_Request r[3];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Errhandler former = set_handler(MPI_COMM_WORLD, counting);
    MPI_Comm_set_errhandler(comm, counting);
    for (int i = 0; i < 2; i++)
        MPI_Isend(sent[i], 2 - i, MPI_INT, right(), 1, comm, &r[i]);
    for (int i = 0; test_rank == test_size - 1 && i < test_size - 1; i++)
        MPI_Recv(NULL, 0, MPI_INT, i, 2, comm, MPI_STATUS_IGNORE);
    MPI_Ibarrier(comm, &r[2]);
    ncalled = 0;
    int error = MPI_Recv(&got, 1, MPI_INT, left(), 1, comm, MPI_STATUS_IGNORE);
    EXPECT(IS_MPICH_43 || class_of(error) == MPI_ERR_TRUNCATE, "class %d", class_of(error));
    EXPECT_INT(ncalled, 1);
    CHECK(called_on == comm);
    error = MPI_Recv(&got, 1, MPI_INT, left(), 1, comm, MPI_STATUS_IGNORE);
    EXPECT(!error && got == 3 && ncalled == 1, "class %d, %d", class_of(error), got);
    if (test_rank < test_size - 1)
        MPI_Send(NULL, 0, MPI_INT, test_size - 1, 2, comm);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
    put_back(MPI_COMM_WORLD, former);
}

/* Receives that are wrong, on rank 0 while an operation of nbcshim is pending there: they fail
 * before they wait for a message, receive none and send none. */
TEST(wrong_receives_while_pending, .wanted = test_has_peers)
{
    int got[2] = {-1, -1}, sent[2] = {5, 6}, flag = 1, last = test_size - 1, error;
    MPI_Datatype pair;
    MPI_Request r;
    MPI_Type_contiguous(2, MPI_INT, &pair); /* not committed */
    if (test_rank == 0) {
        MPI_Ibarrier(returning, &r);
        error = MPI_Recv(got, 1, pair, last, 1, returning, MPI_STATUS_IGNORE);
        EXPECT_INT(class_of(error), MPI_ERR_TYPE, "a type not committed");
        error = MPI_Recv(NULL, 2, MPI_INT, last, 1, returning, MPI_STATUS_IGNORE);
        EXPECT_INT(class_of(error), MPI_ERR_BUFFER, "no buffer");
        error = MPI_Sendrecv(sent, 1, MPI_INT, last, 2, got, 1, pair, last, 1, returning,
                             MPI_STATUS_IGNORE);
        EXPECT_INT(class_of(error), MPI_ERR_TYPE);
        MPI_Send(NULL, 0, MPI_INT, last, 3, returning);
        MPI_Type_commit(&pair);
        error = MPI_Recv(got, 1, pair, last, 1, returning, MPI_STATUS_IGNORE);
        EXPECT(!error && got[0] == 5 && got[1] == 6, "class %d, %d %d", class_of(error), got[0],
               got[1]);
    } else if (test_rank == last) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 3, returning, MPI_STATUS_IGNORE);
        MPI_Iprobe(0, 2, returning, &flag, MPI_STATUS_IGNORE);
        EXPECT(!flag, "a call that fails has sent a message");
        MPI_Send(sent, 2, MPI_INT, 0, 1, returning);
    }
    if (test_rank > 0)
        MPI_Ibarrier(returning, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Type_free(&pair);
}

static bool is_own(void)
{
    const char *blocking = getenv("NBCSHIM_BLOCKING");
    return !test_native && blocking && strcmp(blocking, "own") == 0;
}

/* A blocking call of nbcshim's fails on rank 0, time and again; its messages must not reach a later
 * call, also where a few calls use the tags up. */
TEST(blocking_call_fails, .wanted = is_own)
{
    int ones[2] = {1, 1}, all[64];
    for (int round = 0; round < 40; round++) {
        int sum = 0, n = test_rank == 1 ? 2 : 1; /* the message of rank 1 is too long */
        if (test_rank != 1) /* rank 0 comes after rank 1 and before the others */
            usleep(test_rank ? 3000 : 1000);
        int error =
            round % 4 ? MPI_SUCCESS : MPI_Gather(ones, n, MPI_INT, all, 1, MPI_INT, 0, returning);
        int class = class_of(error);
        EXPECT_INT(class, test_rank || test_size == 1 || round % 4 ? MPI_SUCCESS : MPI_ERR_TRUNCATE,
                   "gather %d of too much", round);
        error = MPI_Allreduce(&n, &sum, 1, MPI_INT, MPI_SUM, returning);
        EXPECT(!error && sum == test_size + (test_size > 1), "allreduce %d: class %d, sum %d",
               round, class_of(error), sum);
    }
}

/* Beside a count of zero the null type is no error: MPICH takes it. */
BOTH_WAYS(null_types)
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

#ifdef OPEN_MPI /* MPICH refuses it */
BOTH_WAYS(exscan_whose_receive_buffer_does_not_count)
{
    int data[2] = {test_rank};
    complete(w, CALL(Exscan, exscan, data, test_rank ? data + 1 : data, 1, MPI_INT, MPI_SUM),
             "exscan");
    EXPECT_INT(data[0], test_rank);
    EXPECT(!test_rank || data[1] == test_rank * (test_rank - 1) / 2, "exscan: %d", data[1]);
}
#endif

/* A program may ask for the text of an error whenever it likes (MPI-4.1 11.4.1). Open MPI 4.1 ends
 * it then, as does MPICH 3. */
static int kept;

static void ask_after_the_end(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0, finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized && (MPI_Error_string(kept, text, &length) || length == 0))
        _exit(EXIT_FAILURE);
}

static void begin(void)
{
    MPI_Request request;
    for (int i = 0; i < 64; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &returning);
    MPI_Comm_set_errhandler(returning, MPI_ERRORS_RETURN);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)on_error, &counting);
    kept = MPI_Ibcast(NULL, 0, MPI_INT, MPI_ANY_SOURCE, returning, &request);
#if !defined OPEN_MPI && MPI_VERSION >= 4
    atexit(ask_after_the_end);
#else
    (void)ask_after_the_end;
#endif
}

static void end(void)
{
    MPI_Errhandler_free(&counting);
    MPI_Comm_free(&returning);
}

AROUND_TESTS(begin, end)
