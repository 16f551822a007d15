/* SPDX-License-Identifier: MIT */
/* Communicators that the MPI frees in a call on files, or that a callback of the program frees
 * there with a datatype and an operator, and requests that it tests there, while another thread has
 * operations in progress; local calls while another thread is in an operator; communicators that
 * threads free while the MPI holds buffered messages on them, or while another thread makes their
 * duplicate. */
#include "config.h"
#include "util.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- buffered messages ------------------------------------------------------------------------ */

/* Open MPI 4.1.4 hangs when two threads make communicators at once, natively too. */
#ifndef OPEN_MPI
enum { THREADS = 3, MESSAGES = 4, LONGEST = 600, ROOM = 4096 };

static MPI_Comm parents[THREADS];
static int rounds_of_each;

static void fill(unsigned char *bytes, int n, unsigned salt)
{
    for (int i = 0; i < n; i++)
        bytes[i] = (unsigned char)(salt + 7 * (unsigned)i);
}

static void send_to_self(MPI_Comm parent, struct rng *own, unsigned salt)
{
    unsigned char out[MESSAGES][LONGEST], in[LONGEST];
    int n[MESSAGES];
    MPI_Comm comm;
    MPI_Request r[MESSAGES];
    MPI_Comm_dup(parent, &comm);
    for (int i = 0; i < MESSAGES; i++) {
        n[i] = 1 + rng_below(own, LONGEST);
        fill(out[i], n[i], salt + 31 * (unsigned)i);
        MPI_Ibsend(out[i], n[i], MPI_BYTE, 0, i, comm, &r[i]);
    }
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Recv(in, n[i], MPI_BYTE, 0, i, comm, MPI_STATUS_IGNORE);
        EXPECT(memcmp(in, out[i], (size_t)n[i]) == 0, "message %d of %d bytes is wrong", i, n[i]);
    }
    MPI_Waitall(MESSAGES, r, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
}

static void *send_all(void *arg)
{
    MPI_Comm *parent = arg;
    struct rng own = rng_private(parent - parents);
    for (int i = 0; i < rounds_of_each; i++)
        send_to_self(*parent, &own, (unsigned)i);
    return NULL;
}

/* MPICH takes such messages from its list later, in the calls of any thread, and frees the
 * communicator there. No other rank has a part in it. */
static bool is_alone(void)
{
    return test_size == 1;
}

TEST(buffered, .level = MPI_THREAD_MULTIPLE, .wanted = is_alone)
{
    pthread_t thread[THREADS];
    int size = ROOM * LONGEST;
    void *room = malloc((size_t)size);
    rounds_of_each = test_scale(10000, 500000);
    MPI_Buffer_attach(room, size);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &parents[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, send_all, &parents[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&parents[i]);
    MPI_Buffer_detach(&room, &size);
    free(room);
}
#endif

/* --- files ------------------------------------------------------------------------------------ */

#ifdef HAVE_MPI_FILE_OPEN
enum { LONG = 3000, SHORT = 30 };

static bool over, testing, adding; /* atomic */

/* An operator is called with nbcshim's lock, which the other thread must do without meanwhile: for
 * long while that tests a request. */
static void add_slowly(void *in, void *inout, int *n, MPI_Datatype *type)
{
    bool is_long = __atomic_load_n(&testing, __ATOMIC_RELAXED);
    add_ints(in, inout, n, type);
    __atomic_store_n(&adding, is_long, __ATOMIC_RELAXED);
    usleep(is_long ? 5000 : 200);
    __atomic_store_n(&adding, false, __ATOMIC_RELAXED);
}

/* The other thread reduces until that of all ranks is over. */
static void *reduce(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    int sums[2] = {0, 0};
    MPI_Op op;
    MPI_Op_create(add_slowly, 1, &op);
    for (int i = 0; sums[1] < test_size; i++) {
        int in[] = {test_rank + i, __atomic_load_n(&over, __ATOMIC_RELAXED)};
        MPI_Request r;
        MPI_Iallreduce(in, sums, 2, MPI_INT, op, comm, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        EXPECT_INT(sums[0], test_size * i + sum_of_ranks(), "round %d", i);
    }
    MPI_Op_free(&op);
    return NULL;
}

static MPI_File opened(MPI_Comm comm)
{
    MPI_File file;
    char name[64];
    snprintf(name, sizeof name, "callbacks_threads.%d", (int)getpid());
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    int error = MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file);
    OK(error);
    return file;
}

/* The I/O library makes a communicator for the shared file pointer, and frees it. */
static void shared_pointer(void)
{
    MPI_File file = opened(MPI_COMM_SELF);
    MPI_Offset position = -1;
    char byte = 'x';
    MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_get_position_shared(file, &position);
    EXPECT_INT(position, 1);
    MPI_File_close(&file);
}

/* What a callback frees with the last communicator that has the attribute, that of the file. */
static struct {
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op, unused; /* operations use the first */
    int users;
    MPI_Request *pending;
} inner;

/* A request that is taken for the MPI's, because the other thread has the lock, counts as complete
 * and stays. (Not on each rank the other thread reduces.) */
static int copy_inner(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag)
{
    int complete;
    (void)comm, (void)keyval, (void)extra;
    __atomic_store_n(&testing, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 50 && !__atomic_load_n(&adding, __ATOMIC_RELAXED); i++)
        usleep(100);
    MPI_Test(inner.pending, &complete, MPI_STATUS_IGNORE);
    __atomic_store_n(&testing, false, __ATOMIC_RELAXED);
    EXPECT_INT(*inner.pending == MPI_REQUEST_NULL, complete);
    inner.users++;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int free_inner(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    if (--inner.users > 0)
        return MPI_SUCCESS;
    MPI_Type_free(&inner.type);
    MPI_Op_free(&inner.op);
    MPI_Op_free(&inner.unused);
    return MPI_Comm_free(&inner.comm);
}

/* An operator for elements of n ints. */
static void add_elements(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int ints, bytes;
    MPI_Type_size(*type, &bytes);
    ints = *n * bytes / (int)sizeof ints;
    add_ints(in, inout, &ints, type);
}

static void keep_left(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int bytes;
    MPI_Type_size(*type, &bytes);
    memcpy(inout, in, (size_t)(*n * bytes));
}

static void make_objects(int n, MPI_User_function *function, MPI_Datatype *type, MPI_Op *op)
{
    MPI_Type_contiguous(n, MPI_INT, type);
    MPI_Type_commit(type);
    MPI_Op_create(function, function == add_elements, op);
}

static void make_inner(MPI_Comm world)
{
    MPI_Comm_dup(world, &inner.comm);
    make_objects(LONG, add_elements, &inner.type, &inner.op);
    MPI_Op_create(keep_left, 0, &inner.unused);
    inner.users = 1;
}

/* Operations are pending that use what the callback frees, and wait for ranks that start them only
 * when they have opened the file; what is made then may get the same handles. */
static void freed_by_callback(MPI_Comm world, int round)
{
    static int in[LONG], sums[LONG], lefts[LONG];
    MPI_Comm outer, next;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Request r[2] = {MPI_REQUEST_NULL};
    MPI_File file;
    int keyval, wrong = 0, expected = test_size * (test_size + 1) / 2;
    for (int i = 0; i < LONG; i++) {
        in[i] = 1 + test_rank;
        sums[i] = lefts[i] = 0;
    }
    MPI_Comm_create_keyval(copy_inner, free_inner, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &outer);
    make_inner(world);
    inner.pending = &r[0];
    MPI_Comm_set_attr(outer, keyval, NULL);
    for (int early = 1; early >= 0; early--) {
        if ((round + test_rank) % 2 == early)
            MPI_Iallreduce(in, sums, 1, inner.type, inner.op, inner.comm, &r[0]);
        if (early)
            file = opened(outer);
    }
    MPI_Comm_free(&outer);
    MPI_File_close(&file);
    EXPECT(inner.comm == MPI_COMM_NULL && inner.type == MPI_DATATYPE_NULL &&
               inner.op == MPI_OP_NULL,
           "the callback has not freed everything");
    make_objects(SHORT, keep_left, &type, &op);
    MPI_Comm_dup(world, &next);
    MPI_Iallreduce(in, lefts, 1, type, op, next, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < LONG; i++)
        wrong += sums[i] != expected || lefts[i] != (i < SHORT);
    EXPECT_INT(wrong, 0);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
    MPI_Comm_free(&next);
    MPI_Comm_free_keyval(&keyval);
}

TEST(files, .level = MPI_THREAD_MULTIPLE)
{
    MPI_Comm comm, others;
    pthread_t thread;
    int rounds = test_scale(20, 1000);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &others);
    pthread_create(&thread, NULL, reduce, &others);
    for (int i = 0; i < rounds; i++) {
        test_place("round %d", i);
        shared_pointer();
        freed_by_callback(comm, i);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&others);
}
#endif

/* --- duplicates ------------------------------------------------------------------------------- */

#ifdef HAVE_MPI_COMM_IDUP
static int copies; /* atomic */

static int copy_slowly(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)keyval, (void)extra;
    *(void **)copy = value;
    *flag = 1;
    if (__atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED) == 2)
        usleep(50000);
    return MPI_SUCCESS;
}

static void *poll_until_two(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    int flag;
    while (__atomic_load_n(&copies, __ATOMIC_RELAXED) < 2)
        MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &flag, MPI_STATUS_IGNORE);
    return NULL;
}

/* Open MPI makes the second duplicate when the first exists: here the other thread does, while the
 * parent is freed. */
TEST(parent_is_freed, .level = MPI_THREAD_MULTIPLE)
{
    MPI_Comm other, parent, made[2];
    MPI_Request r[2];
    pthread_t thread;
    int keyval;
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Comm_create_keyval(copy_slowly, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    for (int round = 0; round < 3; round++) {
        __atomic_store_n(&copies, 0, __ATOMIC_RELAXED);
        MPI_Comm_dup(MPI_COMM_WORLD, &parent);
        MPI_Comm_set_attr(parent, keyval, NULL);
        for (int i = 0; i < 2; i++)
            MPI_Comm_idup(parent, &made[i], &r[i]);
        pthread_create(&thread, NULL, poll_until_two, &other);
        while (__atomic_load_n(&copies, __ATOMIC_RELAXED) < 2)
            usleep(100);
        MPI_Comm_free(&parent);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        pthread_join(thread, NULL);
        for (int i = 0; i < 2; i++) {
            int sum = 0, one = 1;
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[i]);
            EXPECT_INT(sum, test_size);
            MPI_Comm_free(&made[i]);
        }
    }
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_free(&other);
}
#endif

/* --- the end ---------------------------------------------------------------------------------- */

/* Held in local calls and in the operator, as mpi4py holds the interpreter of Python. */
static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
static bool calling;

static void add_in_interpreter(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    pthread_mutex_lock(&interpreter);
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((const int *)in)[i];
    pthread_mutex_unlock(&interpreter);
}

static void call_locally(MPI_Comm comm, int keyval)
{
    MPI_Errhandler handler;
    MPI_Datatype type;
    MPI_Op op;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_create(add_in_interpreter, 1, &op));
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_set_name(comm, "local"));
    OK(MPI_Comm_set_attr(comm, keyval, &calling));
    OK(MPI_Comm_delete_attr(comm, keyval));
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    OK(MPI_Errhandler_free(&handler));
}

static void *call_all_the_time(void *comm)
{
    int keyval;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    while (__atomic_load_n(&calling, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&interpreter);
        call_locally(*(MPI_Comm *)comm, keyval);
        pthread_mutex_unlock(&interpreter);
        usleep(1);
    }
    OK(MPI_Comm_free_keyval(&keyval));
    return NULL;
}

TEST(operator_waits_for_thread, .level = MPI_THREAD_MULTIPLE)
{
    enum { ROUNDS = 30 };
    int one = 1, sum;
    pthread_t thread;
    MPI_Comm comm;
    MPI_Op op;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Op_create(add_in_interpreter, 1, &op));
    calling = true;
    pthread_create(&thread, NULL, call_all_the_time, &comm);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        EXPECT_INT(sum, test_size);
    }
    __atomic_store_n(&calling, false, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_free(&comm));
}

static int at_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    MPI_Request r[2];
    MPI_Datatype pair;
    int mine[] = {1, 2, 3}, sum = 0, all[2 * test_size];
    (void)comm, (void)keyval, (void)value, (void)extra;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Iallreduce(mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]);
    MPI_Iallgather(mine, 1, pair, all, 2, MPI_INT, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Type_free(&pair);
    if (sum != test_size || all[2 * test_size - 1] != 3) {
        fprintf(stderr, "callbacks_threads: in MPI_Finalize: sum %d\n", sum);
        abort();
    }
    return MPI_SUCCESS;
}

/* A program that tries to free MPI_COMM_SELF learns that it cannot. MPI_Finalize deletes the
 * attributes of MPI_COMM_SELF in reverse order all the same: nbcshim's, which is older, after that
 * of the program, whose collectives otherwise failed on MPICH. */
TEST(try_to_free_self)
{
    MPI_Comm self = MPI_COMM_SELF;
    MPI_Errhandler before;
    int keyval;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before)); /* where MPICH raises it */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT(MPI_Comm_free(&self) != MPI_SUCCESS, "MPI_COMM_SELF is freed");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, before));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, before));
    OK(MPI_Errhandler_free(&before));
}
