/* SPDX-License-Identifier: MIT */
/* Several threads of a rank that start, wait for and free requests at once: on communicators of
 * their own, on one that they share, and each other's. One thread waits for a message that comes
 * only after operations that another one starts meanwhile. */
#include "completion.h"
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#pragma weak MPI_Allreduce_init

enum { THREADS = 4, SLICE = 8 };

static int rounds;
static MPI_Comm comm; /* of all ranks and threads */

struct worker {
    pthread_t thread;
    int id;
    MPI_Comm comm;         /* its own */
    MPI_Request *requests; /* of the shared communicator: its slice */
    int in[SLICE], out[SLICE];
};

static struct worker workers[THREADS];

static void run_threads(int n, void *(*work)(void *))
{
    for (int i = 0; i < n; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
}

static int sum_of(int value)
{
    return test_size * value + sum_of_ranks();
}

/* Over Open MPI the first nonblocking file operation ends the progress thread. An
 * allreduce is pending on rank 0 then, since the last rank comes late. */
TEST(stopped, .if_named = true, .level = MPI_THREAD_MULTIPLE)
{
#ifdef HAVE_MPI_FILE_OPEN
    MPI_File file;
    MPI_Request r, pending;
    int one = 1, sum = -1;
    char byte;
    if (test_rank == test_size - 1)
        usleep(50000);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &pending);
    MPI_File_open(MPI_COMM_SELF, "/proc/self/exe", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_iread(file, &byte, 1, MPI_BYTE, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    EXPECT_INT(sum, test_size);
#endif
}

/* --- each on a communicator of its own ---------------------------------------------------------*/

/* Completes n requests by a call that depends on `how`. */
static void complete(int how, int n, MPI_Request *r)
{
    enum completion by = how % NCOMPLETIONS;
    int done, at[SLICE];
    if (completion_is_of_one(by)) {
        for (int i = n - 1; i >= 0; i--)
            OK(completion_until(by, 1, &r[i], &done, at, NULL));
        return;
    }
    for (int left_over = n; left_over > 0; left_over -= done) {
        OK(completion_until(by, n, r, &done, at, NULL));
        CHECK(done > 0);
        if (done <= 0)
            return;
    }
}

static void *on_own_comm(void *arg)
{
    struct worker *w = arg;
    MPI_Request r[4], persistent;
    int in, out, from_left;
    MPI_Allreduce_init(&w->in[0], &w->out[0], 1, MPI_INT, MPI_SUM, w->comm, MPI_INFO_NULL,
                       &persistent);
    for (int i = 0; i < rounds; i++) {
        int value = 1000 * w->id + i;
        in = w->in[0] = value + test_rank;
        out = w->out[0] = from_left = -1;
        OK(MPI_Start(&persistent));
        MPI_Irecv(&from_left, 1, MPI_INT, left(), i, w->comm, &r[0]);
        MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, w->comm, &r[1]);
        MPI_Isend(&in, 1, MPI_INT, right(), i, w->comm, &r[2]);
        r[3] = persistent;
        complete(i, 4, r);
        CHECK(out == sum_of(value) && w->out[0] == sum_of(value));
        EXPECT_INT(from_left, value + left());
        CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL && r[2] == MPI_REQUEST_NULL);
        CHECK(r[3] == persistent);
    }
    OK(MPI_Request_free(&persistent));
    return NULL;
}

/* --- one array, each thread waits for its slice ------------------------------------------------*/

static int slice_round;

static void *on_slice(void *arg)
{
    struct worker *w = arg;
    complete(slice_round + w->id, SLICE, w->requests);
    return NULL;
}

static void slices(int n)
{
    MPI_Request r[THREADS * SLICE];
    for (slice_round = 0; slice_round < rounds / 5; slice_round++) {
        for (int i = 0; i < n * SLICE; i++) {
            struct worker *w = &workers[i / SLICE];
            int *in = &w->in[i % SLICE], *out = &w->out[i % SLICE];
            *in = slice_round + i + test_rank;
            *out = -1;
            w->requests = &r[i / SLICE * SLICE];
            if (i % 3) {
                MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, comm, &r[i]);
                continue;
            }
            MPI_Irecv(out, 1, MPI_INT, left(), i, comm, &r[i]);
            MPI_Send(in, 1, MPI_INT, right(), i, comm);
        }
        run_threads(n, on_slice);
        for (int i = 0; i < n * SLICE; i++) {
            CHECK(r[i] == MPI_REQUEST_NULL);
            int wanted = i % 3 ? sum_of(slice_round + i) : slice_round + i + left();
            EXPECT_INT(workers[i / SLICE].out[i % SLICE], wanted);
        }
    }
}

/* --- started by one thread, completed by the next, freed by a third ----------------------------*/

static MPI_Request handed[THREADS];

static void *start_one(void *arg)
{
    struct worker *w = arg;
    w->in[0] = slice_round + w->id + test_rank;
    w->out[0] = -1;
    OK(MPI_Start(&handed[w->id]));
    return NULL;
}

static void *wait_one(void *arg)
{
    struct worker *w = arg;
    complete(slice_round % 2, 1, &handed[w->id]);
    EXPECT_INT(w->out[0], sum_of(slice_round + w->id));
    return NULL;
}

static void *free_one(void *arg)
{
    struct worker *w = arg;
    CHECK(MPI_Request_free(&handed[w->id]) == MPI_SUCCESS && handed[w->id] == MPI_REQUEST_NULL);
    return NULL;
}

static void handing_over(int n)
{
    for (int i = 0; i < n; i++)
        MPI_Allreduce_init(&workers[i].in[0], &workers[i].out[0], 1, MPI_INT, MPI_SUM, comm,
                           MPI_INFO_NULL, &handed[i]);
    for (slice_round = 0; slice_round < rounds / 5; slice_round++) {
        run_threads(n, start_one);
        run_threads(n, wait_one);
    }
    run_threads(n, free_one);
}

TEST(in_turns, .level = MPI_THREAD_MULTIPLE)
{
    for (int n = 2; n <= THREADS; n++) {
        for (int i = 0; i < n; i++) {
            workers[i].id = i;
            MPI_Comm_dup(comm, &workers[i].comm);
        }
        run_threads(n, on_own_comm);
        slices(n);
        handing_over(n);
        for (int i = 0; i < n; i++)
            MPI_Comm_free(&workers[i].comm);
    }
}

/* --- one thread waits for a message, another one starts ----------------------------------------*/

enum { MANY = 100 }; /* some of them start when others are complete */

static sem_t came;
static MPI_Comm alone;

static void many_barriers(MPI_Request *r)
{
    for (int i = 0; i < MANY; i++)
        MPI_Ibarrier(comm, &r[i]);
}

static void *start_and_leave(void *arg)
{
    MPI_Request r[MANY];
    (void)arg;
    usleep(20000);
    many_barriers(r);
    sem_wait(&came);
    OK(MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE));
    return NULL;
}

/* Rank 0 is late, and sends the message after its operations. */
static void send_after_barriers(void)
{
    MPI_Request r[MANY];
    usleep(50000);
    many_barriers(r);
    OK(MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE));
    for (int to = 1; to < test_size; to++)
        MPI_Send(NULL, 0, MPI_INT, to, 0, comm);
}

static void start_meanwhile(int how)
{
    MPI_Request r;
    if (test_rank == 0) {
        send_after_barriers();
        return;
    }
    MPI_Irecv(NULL, 0, MPI_INT, 0, 0, comm, &r);
    sem_init(&came, 0, 0);
    pthread_create(&workers[0].thread, NULL, start_and_leave, NULL);
    complete(how, 1, &r);
    CHECK(r == MPI_REQUEST_NULL);
    sem_post(&came);
    pthread_join(workers[0].thread, NULL);
    sem_destroy(&came);
}

TEST(started_meanwhile, .level = MPI_THREAD_MULTIPLE)
{
    for (int how = 0; how < NCOMPLETIONS; how++)
        start_meanwhile(how);
}

/* --- one thread starts, another one tests an array in which the request was --------------------*/

/* MPI_Startall starts many requests of the MPI, without the lock, before it starts the first.
 * Whoever polls that one meanwhile makes the number of active operations wrong, which checked
 * builds notice. */
enum { SOME = 40, OTHERS = 2000 };

static MPI_Request starts[1 + OTHERS];
static sem_t start_now;
static enum { OVER, ASKED, BEGINS } starting;

static void *start_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < rounds; i++) {
        sem_wait(&start_now);
        __atomic_store_n(&starting, BEGINS, __ATOMIC_RELEASE);
        MPI_Startall(1 + OTHERS, starts);
        MPI_Waitall(1 + OTHERS, starts, MPI_STATUSES_IGNORE);
        __atomic_store_n(&starting, OVER, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* The length of the vector varies, so that most operations have never been started before; with it
 * the time after which the array is tested. */
static void test_beside(MPI_Request *array, int length)
{
    int in[5000] = {1}, out[5000] = {0}, count, indices[SOME];
    MPI_Allreduce_init(in, out, length, MPI_INT, MPI_SUM, alone, MPI_INFO_NULL, &starts[0]);
    array[0] = starts[0];
    for (int i = 0; i < 2; i++)
        MPI_Testsome(SOME, array, &count, indices, MPI_STATUSES_IGNORE);
    array[0] = MPI_REQUEST_NULL;
    starting = ASKED;
    sem_post(&start_now);
    while (__atomic_load_n(&starting, __ATOMIC_ACQUIRE) == ASKED)
        sched_yield();
    for (volatile int d = 0; d < length % 50 * 40;)
        d = d + 1;
    while (__atomic_load_n(&starting, __ATOMIC_ACQUIRE))
        MPI_Testsome(SOME, array, &count, indices, MPI_STATUSES_IGNORE);
    EXPECT_INT(out[0], 1);
    MPI_Request_free(&starts[0]);
}

TEST(started_while_tested, .level = MPI_THREAD_MULTIPLE)
{
    MPI_Request array[SOME], pending;
    for (int i = 0; i < SOME; i++)
        array[i] = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    for (int i = 1; i <= OTHERS; i++)
        MPI_Send_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, comm, &starts[i]);
    MPI_Barrier(comm);
    if (test_rank == 0)
        MPI_Ibarrier(comm, &pending);
    sem_init(&start_now, 0, 0);
    pthread_create(&workers[0].thread, NULL, start_many, NULL);
    for (int i = 0; i < rounds; i++)
        test_beside(array, 1 + i % 5000);
    pthread_join(workers[0].thread, NULL);
    sem_destroy(&start_now);
    if (test_rank > 0)
        MPI_Ibarrier(comm, &pending);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    for (int i = 1; i <= OTHERS; i++)
        MPI_Request_free(&starts[i]);
    MPI_Comm_free(&alone);
}

/* --- error handlers ----------------------------------------------------------------------------*/

static bool reducing;

/* New types each time, which nbcshim tries the operator on: so that errors of that reach nobody it
 * puts other error handlers on MPI_COMM_WORLD. */
static void *reduce(void *arg)
{
    double in[8] = {0}, out[8];
    (void)arg;
    for (int i = 0; i < 100 * rounds; i++) {
        MPI_Request r;
        MPI_Iallreduce(in, out, 1 + i % 8, i % 2 ? MPI_INT : MPI_DOUBLE, MPI_SUM, alone, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    __atomic_store_n(&reducing, false, __ATOMIC_RELAXED);
    return NULL;
}

TEST(handlers_stay, .level = MPI_THREAD_MULTIPLE)
{
    MPI_Errhandler now, before;
    long lost = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    reducing = true;
    pthread_create(&workers[0].thread, NULL, reduce, NULL);
    for (int i = 0; __atomic_load_n(&reducing, __ATOMIC_RELAXED); i++) {
        MPI_Errhandler set = i % 2 ? MPI_ERRORS_RETURN : before;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, set);
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
        lost += now != set;
        MPI_Errhandler_free(&now);
    }
    pthread_join(workers[0].thread, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    EXPECT_INT(lost, 0);
    MPI_Comm_free(&alone);
}

static void begin(void)
{
    rounds = test_scale(test_oversubscribed() ? 15 : 200, 5000);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

static void end(void)
{
    MPI_Comm_free(&comm);
}

AROUND_TESTS(begin, end)
