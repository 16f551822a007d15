/* SPDX-License-Identifier: MIT */
/* Progress where the MPI calls nbcshim in its progress loop: such calls come while the program is
 * in an operator, a callback or an error handler, in threads that may not call the MPI, and in
 * several threads at once ("threads"), or in one other than the main one ("serialized"). */
#define _GNU_SOURCE
#include "blocked.h"
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 11, COUNT = 1000, THREADS = 3 };

/* A communicator on whose collectives the others depend on what rank 0 does
 * after it has started them. */
static void make_comm(MPI_Comm *comm)
{
    MPI_Comm_dup(MPI_COMM_WORLD, comm);
    MPI_Info info = test_info("nbcshim_algorithm", "allreduce:reduce_bcast");
    MPI_Comm_set_info(*comm, info);
    MPI_Info_free(&info);
}

/* An operation beside those of blocked.h, whose operator looks around. */
static struct {
    MPI_Comm comm;
    MPI_Op op;
    MPI_Request request;
    int in[COUNT], out[COUNT];
} extra;

static pthread_t main_thread;
static int calls_elsewhere; /* of the operator, in another thread than the main one */

/* Enters the progress loop of the MPI again. */
static void look_around(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const int *a = in;
    int *b = inout, flag;
    (void)type;
    calls_elsewhere += !pthread_equal(pthread_self(), main_thread);
    MPI_Iprobe(0, TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < *n; i++)
        b[i] += a[i];
}

static void extra_start(void)
{
    for (int i = 0; i < COUNT; i++)
        extra.in[i] = test_rank + i;
    memset(extra.out, 0, sizeof extra.out);
    OK(MPI_Iallreduce(extra.in, extra.out, COUNT, MPI_INT, extra.op, extra.comm, &extra.request));
}

static void extra_end(void)
{
    OK(MPI_Wait(&extra.request, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++)
        if (extra.out[i] != sum_of_ranks() + test_size * i) {
            test_fail("[%d] = %d", i, extra.out[i]);
            return;
        }
}

static void extra_all(void)
{
    extra_start();
    extra_end();
}

static void receive(void)
{
    int value = 0;
    OK(MPI_Recv(&value, 1, MPI_INT, 1, TAG, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

static void send_it(void)
{
    int value = 42;
    if (test_rank == 1)
        OK(MPI_Send(&value, 1, MPI_INT, 0, TAG, blocked_comm));
}

/* --- an operator that enters the loop, in the loop ---------------------------------------------
 */

static void operate(void)
{
    extra_all();
    send_it();
}

BLOCKED(wait_for_operator, .release = operate)
{
    extra_start();
    receive();
    extra_end();
}

/* --- blocked in an operator, a callback and an error handler ------------------------------------
 */

static void receive_in_operator(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
    receive();
}

BLOCKED(in_operator, .release = send_it)
{
    MPI_Op op;
    int in = 1, inout = 2;
    OK(MPI_Op_create(receive_in_operator, 1, &op));
    OK(MPI_Reduce_local(&in, &inout, 1, MPI_INT, op));
    OK(MPI_Op_free(&op));
}

static int receive_in_copy(MPI_Comm comm, int keyval, void *extra_state, void *in, void *out,
                           int *flag)
{
    (void)comm, (void)keyval, (void)extra_state, (void)in, (void)out;
    *flag = 0;
    receive();
    return MPI_SUCCESS;
}

BLOCKED(in_callback, .release = send_it)
{
    MPI_Comm copy;
    int keyval;
    OK(MPI_Comm_create_keyval(receive_in_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, keyval));
    OK(MPI_Comm_free_keyval(&keyval));
}

static bool handled;

static void receive_in_handler(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    handled = true;
    receive();
}

BLOCKED(in_error_handler, .release = send_it)
{
    MPI_Errhandler handler;
    handled = false;
    OK(MPI_Comm_create_errhandler(receive_in_handler, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    MPI_Send(NULL, 0, MPI_INT, 7, TAG, MPI_COMM_SELF);
    EXPECT(handled, "the error handler was not called");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Errhandler_free(&handler));
}

/* --- a thread that may not call the MPI ---------------------------------------------------------
 * No function of Intel MPI calls the hook without waiting. */

#ifndef I_MPI_VERSION
static void send_and_operate(void)
{
    send_it();
    extra_all();
}

static void *loop(void *function)
{
    void (*progress)(void);
    memcpy(&progress, &function, sizeof progress);
    for (int i = 0; i < 100; i++) {
        progress();
        usleep(100);
    }
    return NULL;
}

#ifdef HAVE_MPIX_ASYNC_START
static void turn_of_mpich(void)
{
    MPIX_Stream_progress(MPIX_STREAM_NULL);
}
#define TURN (void *)turn_of_mpich
#elif defined MPICH_VERSION
/* The MPI's own, since nbcshim's polls by itself. */
static int (*probe)(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);

static void turn_of_mpich(void)
{
    int flag;
    probe(1, TAG, blocked_comm, &flag, MPI_STATUS_IGNORE);
}

static void *find_turn(void)
{
    void *library = dlopen("libmpich.so.12", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, "PMPI_Iprobe") : NULL, *turn;
    void (*function)(void) = turn_of_mpich;
    memcpy(&probe, &found, sizeof probe);
    memcpy(&turn, &function, sizeof turn);
    return found ? turn : NULL;
}
#define TURN find_turn()
#else
#define TURN dlsym(RTLD_DEFAULT, "opal_progress")
#endif

/* The main thread makes no call meanwhile, as if it was inside nbcshim. */
BLOCKED(foreign_thread, .release = send_and_operate, .test.level = MPI_THREAD_FUNNELED)
{
    pthread_t thread;
    void *progress = TURN;
    EXPECT(progress, "no function enters the progress loop of the MPI");
    receive();
    extra_start();
    usleep(20000); /* the others have sent what they can */
    if (progress && !pthread_create(&thread, NULL, loop, progress))
        pthread_join(thread, NULL);
    extra_end();
    EXPECT_INT(calls_elsewhere, 0, "reductions in another thread");
}
#endif

/* --- a thread that may, while the main thread makes no call --------------------------------------
 */

static void *receive_in_thread(void *unused)
{
    receive();
    return unused;
}

BLOCKED(serialized, .release = send_it, .test.if_named = true, .test.level = MPI_THREAD_SERIALIZED)
{
    pthread_t thread;
    EXPECT(!pthread_create(&thread, NULL, receive_in_thread, NULL), "no thread");
    pthread_join(thread, NULL);
}

/* --- several threads ---------------------------------------------------------------------------
 */

static MPI_Comm of_thread[THREADS];

/* The threads of rank 0 are blocked in the MPI; those of the others wait for collectives that need
 * rank 0. */
static void *run_thread(void *number)
{
    int id = *(const int *)number, rounds = test_scale(100, 5000);
    MPI_Comm comm = of_thread[id];
    for (int i = 0; i < rounds; i++) {
        MPI_Request request;
        int in = test_rank + i, sum = -1, token = 0;
        OK(MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
        if (test_rank == 0)
            OK(MPI_Recv(&token, 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (test_rank == 1)
            OK(MPI_Send(&i, 1, MPI_INT, 0, TAG, comm));
        EXPECT_INT(sum, sum_of_ranks() + test_size * i, "thread %d", id);
        EXPECT(test_rank > 0 || token == i, "thread %d: token %d", id, token);
    }
    return NULL;
}

TEST(threads, .if_named = true, .level = MPI_THREAD_MULTIPLE)
{
    pthread_t threads[THREADS];
    int id[THREADS];
    for (int i = 0; i < THREADS; i++) {
        id[i] = i;
        make_comm(&of_thread[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_thread, &id[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&of_thread[i]);
}

/* --- while the MPI shuts down -------------------------------------------------------------------
 */

static int at_finalize(MPI_Comm comm, int keyval, void *value, void *extra_state)
{
    MPI_Request request;
    int one = 1, sum = 0;
    (void)comm, (void)keyval, (void)value, (void)extra_state;
    if (test_rank == 0)
        usleep(10000);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (sum != test_size) {
        fprintf(stderr, "in MPI_Finalize: sum %d\n", sum);
        _exit(1);
    }
    return MPI_SUCCESS;
}

static void work_at_finalize(void)
{
    int keyval;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    OK(MPI_Comm_free_keyval(&keyval));
}

static void begin(void)
{
    int hooked = 0;
    const char *how = nbcshim_hook(&hooked);
    EXPECT(hooked, "no hook: %s", how);
    main_thread = pthread_self();
    work_at_finalize();
    make_comm(&extra.comm);
    MPI_Op_create(look_around, 1, &extra.op);
    blocked_begin();
}

static void end(void)
{
    blocked_end();
    MPI_Op_free(&extra.op);
    MPI_Comm_free(&extra.comm);
}

AROUND_TESTS(begin, end)
