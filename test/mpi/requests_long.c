/* SPDX-License-Identifier: MIT */
/* Long arrays of requests, completed one by one or some at a time: entries that the program puts
 * there meanwhile, handles that mean another request, entries that fail, and arrays in which
 * nothing is complete. MPI-4.1 section 3.7.5. fuzz.c changes such arrays at random.
 *
 * With --single there are no threads: where only requests of the MPI are left, it waits. */
#include "completion.h"
#include "config.h"
#include "observe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- arrays that change ------------------------------------------------------------------------*/

enum { LEAST = 32 };

/* A request that the program puts into the array is reported although there is always another one
 * that is complete. */
static void *find_new_one(void *communicator)
{
    MPI_Comm own = *(MPI_Comm *)communicator;
    MPI_Request r[LEAST];
    int in = 1, out, index = 0, calls = 0;
    for (int i = 0; i < LEAST; i++)
        r[i] = MPI_REQUEST_NULL;
    MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &r[0]);
    for (; index != 20 && calls < 1000; calls++) {
        if (index == 0)
            MPI_Start(&r[0]);
        MPI_Waitany(LEAST, r, &index, MPI_STATUS_IGNORE);
        if (calls == 10)
            MPI_Ibarrier(own, &r[20]);
    }
    EXPECT_INT(index, 20);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&r[0]);
    return NULL;
}

TEST(new_one_is_found)
{
    MPI_Comm own = MPI_COMM_SELF;
    find_new_one(&own);
}

/* Each thread has an array. */
TEST(new_one_is_found_in_threads, .level = MPI_THREAD_MULTIPLE)
{
    enum { THREADS = 10 };
    pthread_t thread[THREADS];
    MPI_Comm own[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &own[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, find_new_one, &own[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        MPI_Comm_free(&own[i]);
    }
}

/* An array with so many inactive requests that a poll of a long wait tests only a part of them: a
 * message that takes a place there is awaited all the same. */
static void await_among_inactive(bool some)
{
    enum { INACTIVE = 2000, STARTED = 9, NEW = INACTIVE + 1, ALL };
    static MPI_Request r[ALL];
    static int indices[ALL];
    int in[2] = {0}, out = 5, index = -1, count = 0;
    for (int i = 1; i < NEW; i++)
        MPI_Recv_init(&in[0], 1, MPI_INT, 0, i, MPI_COMM_SELF, &r[i]);
    r[NEW] = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_SELF, &r[0]);
    MPI_Waitany(ALL, r, &index, MPI_STATUS_IGNORE);
    EXPECT_INT(index, 0);
    MPI_Start(&r[STARTED]);
    MPI_Send(&out, 1, MPI_INT, 0, STARTED, MPI_COMM_SELF);
    MPI_Waitany(ALL, r, &index, MPI_STATUS_IGNORE);
    CHECK(index == STARTED && in[0] == 5);
    MPI_Irecv(&in[1], 1, MPI_INT, 0, NEW, MPI_COMM_SELF, &r[NEW]);
    if (some) {
        MPI_Testsome(ALL, r, &count, indices, MPI_STATUSES_IGNORE);
        EXPECT_INT(count, 0);
    }
    MPI_Send(&out, 1, MPI_INT, 0, NEW, MPI_COMM_SELF);
    if (some)
        MPI_Waitsome(ALL, r, &count, &index, MPI_STATUSES_IGNORE);
    else
        MPI_Waitany(ALL, r, &index, MPI_STATUS_IGNORE);
    CHECK(index == NEW && in[1] == 5 && (!some || count == 1));
    for (int i = 1; i < NEW; i++)
        MPI_Request_free(&r[i]);
}

TEST(message_among_inactive)
{
    await_among_inactive(false);
    await_among_inactive(true);
}

/* The MPI may give nbcshim the handle of a request that the program has freed. Where a request of
 * the MPI was seen, the same handle then means one of nbcshim's. */
TEST(handle_changes_hands)
{
    enum { MOST = 1000 };
    MPI_Request r[LEAST], held[MOST], message;
    int index = -1, flag = 0, n = 0;
    for (int i = 0; i < LEAST; i++)
        r[i] = MPI_REQUEST_NULL;
    do { /* until nbcshim has no handle left that it has used before */
        MPI_Ibarrier(MPI_COMM_SELF, &r[0]);
        MPI_Recv_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &r[1]);
        CHECK(MPI_Waitany(LEAST, r, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS && index == 0);
        message = r[1];
        MPI_Request_free(&r[1]);
        MPI_Ibarrier(MPI_COMM_SELF, &held[n++]); /* has the handle of the one that has completed */
        MPI_Ibarrier(MPI_COMM_SELF, &r[1]);
        if (r[1] != message)
            held[n++] = r[1];
    } while (r[1] != message && n < MOST - 1);
    MPI_Waitall(n, held, MPI_STATUSES_IGNORE);
#ifndef __SANITIZE_ADDRESS__ /* which holds freed memory back: Open MPI gives no handle again */
    CHECK(r[1] == message);
#endif
    if (r[1] != message)
        return;
    MPI_Testany(LEAST, r, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(flag && index == 1 && r[1] == MPI_REQUEST_NULL);
}

static void message_to_self(int tag, MPI_Request *receive)
{
    MPI_Start(receive);
    MPI_Send(NULL, 0, MPI_INT, 0, tag, MPI_COMM_SELF);
}

/* Persistent messages that are always complete: each is reported, not one of them again and again.
 */
static void take_turns(bool tests)
{
    enum { N = LEAST + 8 };
    MPI_Request r[N];
    int reported_at[N] = {0};
    r[0] = sum_init();
    for (int i = 1; i < N; i++) {
        MPI_Recv_init(NULL, 0, MPI_INT, 0, i, MPI_COMM_SELF, &r[i]);
        message_to_self(i, &r[i]);
    }
    for (int k = 0; k < 2 * N; k++) {
        int done, at[N];
        completion_call(tests ? BY_TESTANY : BY_WAITANY, N, r, &done, at, NULL);
        int index = done == 1 ? at[0] : -1;
        CHECK(index > 0 && index < N);
        if (index <= 0 || index >= N)
            break;
        reported_at[index]++;
        message_to_self(index, &r[index]);
    }
    for (int i = 1; i < N; i++)
        EXPECT(reported_at[i] > 0, "message %d is never reported", i);
    MPI_Waitall(N - 1, r + 1, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++)
        MPI_Request_free(&r[i]);
}

TEST(messages_take_turns)
{
    take_turns(false);
    take_turns(true);
}

/* --- errors ------------------------------------------------------------------------------------*/

/* In a long array: messages from the left, of which one is longer than its receive; a sum that
 * completes, and an inactive one. */
enum { NERR = LEAST + 8, NMESSAGES = 10, TOO_LONG = 5, A_SUM = 20, INACTIVE = 30 };

static int error_in[NMESSAGES];

/* Open MPI 4.1.4 completes such a message of a process to itself without an error, or crashes. */
static bool can_be_too_long(void)
{
#ifdef OPEN_MPI
    return test_size > 1;
#else
    return true;
#endif
}

static bool is_too_long(int index)
{
    return index == TOO_LONG && can_be_too_long();
}

static void error_start(MPI_Request *r)
{
    const int two[2] = {1, 2};
    for (int i = 0; i < NERR; i++)
        r[i] = MPI_REQUEST_NULL;
    r[INACTIVE] = sum_init();
    MPI_Iallreduce(&one_in, &one_out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &r[A_SUM]);
    for (int i = 0; i < NMESSAGES; i++)
        MPI_Irecv(&error_in[i], 1, MPI_INT, left(), i, MPI_COMM_WORLD, &r[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < NMESSAGES; i++)
        MPI_Send(two, 1 + is_too_long(i), MPI_INT, right(), i, MPI_COMM_WORLD);
}

static void error_array(MPI_Request *r, enum completion by)
{
    bool reported_at[NERR] = {false};
    int n, at[NERR];
    for (int left_over = NMESSAGES + 1; left_over > 0; left_over -= n) {
        bool bad = false, any = completion_is_of_any(by);
        MPI_Status s[NERR];
        spoil(s, NERR);
        int class = class_of(completion_until(by, NERR, r, &n, at, s));
        CHECK(n > 0 && n <= left_over);
        if (n <= 0 || n > left_over)
            return;
        for (int i = 0; i < n; i++)
            bad = bad || is_too_long(at[i]);
        EXPECT_INT(class, !bad ? MPI_SUCCESS : any ? MPI_ERR_TRUNCATE : MPI_ERR_IN_STATUS);
        for (int i = 0; i < n; i++) {
            bool right = at[i] >= 0 && (at[i] < NMESSAGES || at[i] == A_SUM) && !reported_at[at[i]];
            EXPECT(right, "place %d", at[i]);
            if (!right)
                return;
            reported_at[at[i]] = true;
            CHECK(r[at[i]] == MPI_REQUEST_NULL);
            if (bad && !any)
                EXPECT_INT(class_of(s[i].MPI_ERROR),
                           is_too_long(at[i]) ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        }
    }
}

/* Each request is reported once, the one that has failed with its error, and the others go on. */
TEST(errors_are_reported)
{
    MPI_Errhandler before;
    MPI_Request r[NERR];
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (enum completion by = BY_WAITANY; by < NCOMPLETIONS; by++) {
        test_place("call %d", by);
        error_start(r);
        error_array(r, by);
        CHECK(r[INACTIVE] != MPI_REQUEST_NULL);
        MPI_Request_free(&r[INACTIVE]);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
}

/* --- an array in which nothing is complete -----------------------------------------------------*/

/* One operation, which is pending because the last rank is late: tests find it active, and a wait
 * lasts until it is over. A message of the MPI, then an operation of nbcshim. */
static void await_one(bool message, bool some)
{
    MPI_Request r[LEAST];
    int index = -1, count = -1, flag = -1, in = -1;
    bool early = test_size > 1 && !is_late();
    for (int i = 0; i < LEAST; i++)
        r[i] = MPI_REQUEST_NULL;
    r[0] = sum_init();
    gate_wait();
    if (message)
        MPI_Irecv(&in, 1, MPI_INT, test_size - 1, DATA, MPI_COMM_WORLD, &r[7]);
    else
        MPI_Ibarrier(comm, &r[7]);
    for (int i = 0; early && i < 3; i++) {
        OK(MPI_Testany(LEAST, r, &index, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag && index == MPI_UNDEFINED);
        OK(MPI_Testsome(LEAST, r, &count, &index, MPI_STATUSES_IGNORE));
        EXPECT_INT(count, 0);
    }
    gate_open();
    for (int i = 0; message && is_late() && i < test_size; i++)
        MPI_Send(&i, 1, MPI_INT, i, DATA, MPI_COMM_WORLD);
    count = 1;
    if (some)
        MPI_Waitsome(LEAST, r, &count, &index, MPI_STATUSES_IGNORE);
    else
        MPI_Waitany(LEAST, r, &index, MPI_STATUS_IGNORE);
    CHECK(count == 1 && index == 7 && r[7] == MPI_REQUEST_NULL && (!message || in == test_rank));
    MPI_Request_free(&r[0]);
}

TEST(pending_one)
{
    for (int i = 0; i < 4; i++)
        await_one(i % 2, i / 2);
}

static void begin(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

static void end(void)
{
    MPI_Comm_free(&comm);
}

AROUND_TESTS(begin, end)
