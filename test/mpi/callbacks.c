/* SPDX-License-Identifier: MIT */
/* Collectives in attribute callbacks of a communicator that is being freed, calls for their
 * requests in callbacks that calls on files run, and local calls in operators. */
#include "config.h"
#include "util.h"

#include <unistd.h>

static int called;

static void add_up(MPI_Comm comm)
{
    MPI_Request request;
    int one = 1, sum = 0;
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, test_size);
    if (!test_has_persistent())
        return;
    sum = 0;
    OK(MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, test_size, "persistent");
    OK(MPI_Request_free(&request));
}

/* Of MPI_Comm_free and MPI_Comm_disconnect. */
static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)value, (void)extra;
    called++;
    OK(MPI_Barrier(comm));
    add_up(comm);
    return MPI_SUCCESS;
}

/* The last rank gets there only when the others have forwarded to it what rank 0 sends late. */
static void end(MPI_Comm *comm, int (*ends)(MPI_Comm *))
{
    MPI_Request request;
    int data = test_rank ? 0 : 42;
    bool last = test_rank == test_size - 1;
    if (test_rank == 0)
        usleep(100000);
    OK(MPI_Ibcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
    if (last)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(ends(comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(data, 42);
}

/* MPICH runs the callbacks of a communicator when its last request is freed: here on one rank after
 * MPI_Comm_free, and on the others within. */
static void end_late(MPI_Comm *comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int data;
    if (test_rank == test_size - 1)
        OK(MPI_Recv_init(&data, 1, MPI_INT, 0, 0, *comm, &request));
    OK(MPI_Comm_free(comm));
    if (request != MPI_REQUEST_NULL)
        OK(MPI_Request_free(&request));
}

TEST(communicators)
{
    MPI_Comm set, copied[2];
    int keyval, value = 0;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &keyval, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &set));
    OK(MPI_Comm_set_attr(set, keyval, &value)); /* behind ours; copies come before it */
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_dup(set, &copied[i]));
    end(&set, MPI_Comm_free);
    end(&copied[0], MPI_Comm_free);
    end(&copied[1], MPI_Comm_disconnect);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &set));
    OK(MPI_Comm_set_attr(set, keyval, &value));
    end_late(&set);
    EXPECT_INT(called, 4);
    OK(MPI_Comm_free_keyval(&keyval));
}

static MPI_Comm other;
static int other_keyval;

/* An operator may make any call that does not communicate. */
static void add_and_call(void *in, void *inout, int *n, MPI_Datatype *type)
{
    MPI_Errhandler handler;
    MPI_Datatype made;
    int flag, level;
    void *value;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((const int *)in)[i];
    OK(MPI_Type_contiguous(2, *type, &made));
    OK(MPI_Type_free(&made));
    OK(MPI_Comm_set_attr(other, other_keyval, &other));
    OK(MPI_Comm_get_attr(other, other_keyval, &value, &flag));
    OK(MPI_Comm_delete_attr(other, other_keyval));
    OK(MPI_Comm_get_errhandler(other, &handler));
    OK(MPI_Comm_set_errhandler(other, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_set_name(other, "other"));
    OK(MPI_Query_thread(&level));
}

TEST(operators)
{
    enum { ROUNDS = 20, MANY = 20 };
    MPI_Request request[MANY];
    int one = 1, sums[MANY];
    MPI_Op op;
    OK(MPI_Op_create(add_and_call, 1, &op));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other_keyval, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++)
            OK(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, op, MPI_COMM_WORLD, &request[i]));
        OK(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < MANY; i++)
            EXPECT_INT(sums[i], test_size);
    }
    OK(MPI_Comm_free_keyval(&other_keyval));
    OK(MPI_Comm_free(&other));
    OK(MPI_Op_free(&op));
}

#ifdef HAVE_MPI_FILE_OPEN
enum { WAITED, TESTED, STARTED, NREQUESTS };

static MPI_Request pending[NREQUESTS];
static int sums[NREQUESTS];

static void start_some(void)
{
    static int one = 1;
    for (int i = 0; i < NREQUESTS; i++)
        sums[i] = -1;
    for (int i = WAITED; i <= TESTED; i++)
        OK(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &pending[i]));
    if (test_has_persistent())
        OK(MPI_Allreduce_init(&one, &sums[STARTED], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &pending[STARTED]));
    else
        pending[STARTED] = MPI_REQUEST_NULL;
}

static void complete_them(void)
{
    int flag = 0;
    called++;
    OK(MPI_Wait(&pending[WAITED], MPI_STATUS_IGNORE));
    while (!flag)
        OK(MPI_Testall(1, &pending[TESTED], &flag, MPI_STATUSES_IGNORE));
    if (pending[STARTED] != MPI_REQUEST_NULL) {
        OK(MPI_Start(&pending[STARTED]));
        OK(MPI_Waitall(1, &pending[STARTED], MPI_STATUSES_IGNORE));
        OK(MPI_Request_free(&pending[STARTED]));
    } else {
        sums[STARTED] = test_size;
    }
    for (int i = 0; i < NREQUESTS; i++)
        EXPECT(sums[i] == test_size && pending[i] == MPI_REQUEST_NULL, "callback %d: sum %d is %d",
               called, i, sums[i]);
}

static void on_file_error(MPI_File *file, int *error, ...)
{
    (void)file, (void)error;
    complete_them();
}

static int on_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)keyval, (void)extra, (void)value, (void)copy;
    complete_them();
    *flag = 0;
    return MPI_SUCCESS;
}

static void copied_by_file(void)
{
    MPI_Comm comm;
    MPI_File file;
    int keyval;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_keyval(on_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Comm_set_attr(comm, keyval, &file));
    start_some();
    OK(MPI_File_open(comm, "/proc/self/exe", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    if (pending[WAITED] != MPI_REQUEST_NULL) /* this MPI duplicates no communicator for a file */
        complete_them();
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Comm_free(&comm));
}

TEST(files)
{
    MPI_Errhandler handler, before;
    MPI_File none;
    OK(MPI_File_create_errhandler(on_file_error, &handler));
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &before));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    start_some();
    called = 0;
    int error =
        MPI_File_open(MPI_COMM_SELF, "/nothing/there", MPI_MODE_RDONLY, MPI_INFO_NULL, &none);
    EXPECT(error || IS_MPICH_43,
           "it was opened"); /* which says nothing where a handler was called */
    EXPECT_INT(called, 1);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, before));
    OK(MPI_Errhandler_free(&before));
    OK(MPI_Errhandler_free(&handler));
    copied_by_file();
}
#endif
