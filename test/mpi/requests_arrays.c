/* SPDX-License-Identifier: MIT */
/* The rules of arrays of requests: all or none, fairness, operations that fail, and progress in
 * completion calls for something else. MPI-4.1 sections 3.7.5, 3.7.6. */
#include "completion.h"
#include "config.h"
#include "observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- all and any -------------------------------------------------------------------------------*/

/* MPI_Testall touches nothing while one is missing, whosever it is. */
TEST(testall_is_atomic)
{
    MPI_Request r[2], before[2];
    int flag = 1, x = -1;
    bool early = test_size > 1 && !is_late();

    /* The message is there, the barrier is not. */
    gate_wait();
    MPI_Irecv(&x, 1, MPI_INT, test_rank, DATA, MPI_COMM_WORLD, &r[0]);
    MPI_Send(&test_rank, 1, MPI_INT, test_rank, DATA, MPI_COMM_WORLD);
    MPI_Ibarrier(comm, &r[1]);
    memcpy(before, r, sizeof r);
    for (int i = 0; early && i < 100; i++) {
        CHECK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && !flag);
        CHECK(memcmp(r, before, sizeof r) == 0);
    }
    gate_open();
    CHECK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE) == MPI_SUCCESS && x == test_rank);

    /* The barrier is complete, the message is not there. */
    MPI_Irecv(&x, 1, MPI_INT, test_rank, DATA, MPI_COMM_WORLD, &r[0]);
    MPI_Ibarrier(comm, &r[1]);
    poll_status(r[1]);
    memcpy(before, r, sizeof r);
    for (int i = 0; i < 100; i++) {
        CHECK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && !flag);
        CHECK(memcmp(r, before, sizeof r) == 0);
    }
    MPI_Send(&test_rank, 1, MPI_INT, test_rank, DATA, MPI_COMM_WORLD);
    for (flag = 0; !flag;)
        OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
    CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
}

#ifdef MPICH_NUMVERSION
/* MPICH's generalized requests may be moved on by a function of the program, which is called by
 * completion calls for them. It must be called while MPI_Testall waits for one of ours; and not
 * under a lock, where what is ours would be the MPI's: a request that is never active. */
struct polled {
    MPI_Request r, pending; /* itself; one of ours, which waits for it */
    bool complete;
};

static int poll_once(void *state, MPI_Status *s)
{
    struct polled *p = state;
    (void)s; /* may be MPI_STATUS_IGNORE here */
    if (!p->complete) {
        int flag = 1;
        CHECK(MPI_Test(&p->pending, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
        p->complete = true;
        gate_open();
        MPI_Grequest_complete(p->r);
    }
    return MPI_SUCCESS;
}

static int wait_never(int n, void **states, double timeout, MPI_Status *s)
{
    (void)n, (void)states, (void)timeout, (void)s;
    return MPI_ERR_OTHER;
}

static int set_status(void *state, MPI_Status *s)
{
    (void)state;
    MPI_Status_set_elements(s, MPI_INT, 0);
    MPI_Status_set_cancelled(s, 0);
    return MPI_SUCCESS;
}

static int leave(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int not_cancelled(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_ERR_OTHER;
}

TEST(testall_polls_the_others)
{
    struct polled p = {.complete = false};
    MPI_Request r[2] = {MPI_REQUEST_NULL};
    int flag = 0;
    if (test_size == 1)
        return;
    gate_wait();
    if (!is_late()) {
        MPIX_Grequest_start(set_status, leave, not_cancelled, poll_once, wait_never, &p, &p.r);
        r[0] = p.r;
    }
    MPI_Ibarrier(comm, &r[1]);
    p.pending = r[1];
    while (!flag)
        OK(MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE));
    CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
}
#endif

/* A sum and a message, which comes late, behind requests that are never started. An MPI may report
 * one to MPI_PROC_NULL as complete in each call (test/tools/inactive.sh): that counts for nothing.
 */
static void late_behind(enum completion by, int n, int inactive)
{
    enum { LONGEST = 70 };
    MPI_Request r[LONGEST];
    MPI_Status s[LONGEST];
    int x = -1, done, at[LONGEST];
    for (int i = 0; i < n; i++)
        r[i] = MPI_REQUEST_NULL;
    r[n - 2] = sum_start();
    if (test_rank > 0) {
        OK(MPI_Wait(&r[n - 2], MPI_STATUS_IGNORE));
        usleep(5000);
        MPI_Send(&n, test_rank == 1, MPI_INT, test_rank == 1 ? 0 : MPI_PROC_NULL, DATA,
                 MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&x, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &r[n - 1]);
    if (inactive > 0)
        MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[0]);
    if (inactive > 1)
        MPI_Send_init(NULL, 0, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &r[1]);
    for (int left_over = completion_is_of_all(by) ? n : 2; left_over > 0;) {
        OK(completion_until(by, n, r, &done, at, n % 2 ? NULL : s));
        CHECK(done > 0);
        for (int i = 0; i < done; i++)
            left_over -= completion_is_of_all(by) || at[i] >= inactive;
        if (done <= 0)
            return;
    }
    CHECK(one_out == sum_of_ranks() && x == n && r[n - 2] == r[n - 1]);
    CHECK(by != BY_WAITALL || n % 2 || is_message(&s[n - 1], 1, DATA));
    for (int i = 0; i < inactive; i++)
        CHECK(r[i] != MPI_REQUEST_NULL && MPI_Request_free(&r[i]) == MPI_SUCCESS);
}

TEST(late_behind_inactive, .wanted = test_has_peers)
{
    static const int lengths[] = {4, 5, 17, 40, 70};
    for (enum completion by = BY_WAITALL; by < NCOMPLETIONS; by++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            for (int inactive = 0; inactive <= 2; inactive++)
                late_behind(by, lengths[k], inactive);
}

/* While all are ready all the time, each must be chosen now and then. Which of the messages is the
 * MPI's affair. */
static void starves(bool tests, int n)
{
    enum { MOST = 45 };
    MPI_Request r[MOST];
    int chosen[MOST] = {0}, in[MOST], rounds = 20 * n, messages = 0;
    for (int i = 0; i < n; i++)
        r[i] = MPI_REQUEST_NULL;
    for (int round = 0; round < rounds; round++) {
        int index = 0, flag = 0;
        for (int i = 0; i < n; i++) {
            if (r[i] != MPI_REQUEST_NULL)
                continue;
            if (i % 2)
                MPI_Ibarrier(MPI_COMM_SELF, &r[i]);
            else {
                MPI_Irecv(&in[i], 1, MPI_INT, test_rank, i, MPI_COMM_WORLD, &r[i]);
                MPI_Send(&test_rank, 1, MPI_INT, test_rank, i, MPI_COMM_WORLD);
            }
        }
        if (!tests)
            MPI_Waitany(n, r, &index, MPI_STATUS_IGNORE);
        while (tests && !flag)
            MPI_Testany(n, r, &index, &flag, MPI_STATUS_IGNORE);
        CHECK(index >= 0 && index < n);
        chosen[index]++;
    }
    for (int i = 0; i < n; i++) {
        CHECK(i % 2 == 0 || chosen[i] > 0);
        messages += i % 2 ? 0 : chosen[i];
    }
    CHECK(messages >= rounds / 32);
    OK(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
}

TEST(nobody_starves)
{
    for (int i = 0; i < 2; i++) {
        starves(i, 5);
        starves(i, 45);
    }
}

/* --- operations that fail ----------------------------------------------------------------------*/

/* A sum for which odd ranks send more than even ones expect, and receive less: it fails on both.
 * (Wrong, and that is the point: there is no other way to make an operation fail.) */
static int two_in[2], two_out[2];

static void fail_start(MPI_Comm pair, MPI_Request *r)
{
    MPI_Iallreduce(two_in, two_out, 1 + test_rank % 2, MPI_INT, MPI_SUM, pair, r);
}

static void failing_single(MPI_Comm pair)
{
    MPI_Request r;
    MPI_Status s;
    int done, at[1];

    for (enum completion by = BY_WAIT; by <= BY_TEST; by++) {
        fail_start(pair, &r);
        int code = completion_until(by, 1, &r, &done, at, &s);
        CHECK(class_of(code) == MPI_ERR_TRUNCATE && r == MPI_REQUEST_NULL);
        CHECK(raised_last(MPI_ERR_TRUNCATE, pair));
    }
    /* A persistent one is inactive afterwards, like one that succeeds. */
    MPI_Allreduce_init(two_in, two_out, 1 + test_rank % 2, MPI_INT, MPI_SUM, pair, MPI_INFO_NULL,
                       &r);
    for (int i = 0; i < 2; i++) {
        OK(MPI_Start(&r));
        int code = completion_until(BY_WAITANY, 1, &r, &done, at, &s);
        CHECK(class_of(code) == MPI_ERR_TRUNCATE && at[0] == 0);
        CHECK(raised_last(MPI_ERR_TRUNCATE, pair));
        single_inactive(r);
    }
    CHECK(MPI_Request_free(&r) == MPI_SUCCESS && r == MPI_REQUEST_NULL);
}

/* A sum that fails, one that does not, and a message. */
static void failing_start(MPI_Comm pair, MPI_Request *r, int *x)
{
    MPI_Ibarrier(pair, &r[0]);
    fail_start(pair, &r[1]);
    MPI_Irecv(x, 1, MPI_INT, test_rank, DATA, MPI_COMM_WORLD, &r[2]);
    MPI_Send(&test_rank, 1, MPI_INT, test_rank, DATA, MPI_COMM_WORLD);
}

static void failing_array(MPI_Comm pair, enum completion by)
{
    MPI_Request r[3];
    MPI_Status s[3];
    int x = 0, n, at[3];
    failing_start(pair, r, &x);
    for (int left_over = 3; left_over > 0; left_over -= n) {
        bool bad = false;
        spoil(s, 3);
        int class = class_of(completion_until(by, 3, r, &n, at, s));
        CHECK(n > 0 && n <= left_over);
        if (n <= 0 || n > left_over)
            return;
        for (int i = 0; i < n; i++)
            bad = bad || at[i] == 1;
        EXPECT_INT(class, bad ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
        CHECK(!bad || raised_last(MPI_ERR_IN_STATUS, pair));
        for (int i = 0; i < n; i++) {
            int fails = at[i] == 1;
            EXPECT_INT(bad ? class_of(s[i].MPI_ERROR) : 0, fails ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
            CHECK(fails || (at[i] == 0 ? is_empty(&s[i]) : is_message(&s[i], test_rank, DATA)));
            CHECK(r[at[i]] == MPI_REQUEST_NULL);
        }
    }
}

/* A message that fails, while one of ours is pending and another one complete, and one is null. It
 * is sent when its receive has begun: MPICH's device ch3 returns the error of one that is there
 * from MPI_Irecv. */
static void failing_message(MPI_Comm pair)
{
    int two[2] = {0}, x;
    MPI_Request r[4];
    if (test_rank == 1) { /* the late one */
        MPI_Recv(NULL, 0, MPI_INT, 0, GATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(two, 2, MPI_INT, 0, DATA, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_INT, 0, GATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibarrier(pair, &r[0]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        return;
    }
    MPI_Status s[4];
    spoil(s, 4);
    MPI_Ibarrier(pair, &r[0]);
    MPI_Irecv(&x, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &r[1]);
    MPI_Ibarrier(MPI_COMM_SELF, &r[2]);
    r[3] = MPI_REQUEST_NULL;
    MPI_Send(NULL, 0, MPI_INT, 1, GATE, MPI_COMM_WORLD);
    EXPECT_INT(class_of(MPI_Waitall(4, r, s)), MPI_ERR_IN_STATUS);
    EXPECT_INT(nraised, 1); /* once, by the MPI below and in its way */
    nraised = 0;
    CHECK(class_of(s[0].MPI_ERROR) == MPI_ERR_PENDING && r[0] != MPI_REQUEST_NULL);
    CHECK(class_of(s[1].MPI_ERROR) == MPI_ERR_TRUNCATE && r[1] == MPI_REQUEST_NULL);
    for (int i = 2; i < 4; i++)
        CHECK(s[i].MPI_ERROR == MPI_SUCCESS && r[i] == MPI_REQUEST_NULL);
    MPI_Send(NULL, 0, MPI_INT, 1, GATE, MPI_COMM_WORLD);
    OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
}

/* MPI_Testall of Open MPI 5.0.10 returns MPI_SUCCESS where a message has failed, unless a
 * persistent request of the array was started. */
#if defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5
enum { TESTALL_TELLS = 0 };
#else
enum { TESTALL_TELLS = 1 };
#endif

/* A message that fails beside two persistent operations, of which the first is complete and
 * inactive if it was started, and the other one was not. */
static void failing_beside_inactive(bool waits, bool starts)
{
    int two[2] = {0}, x, done, at[3];
    MPI_Request r[3];
    MPI_Status s[3];
    if (test_rank == 1) { /* the late one */
        MPI_Recv(NULL, 0, MPI_INT, 0, GATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(two, 2, MPI_INT, 0, DATA, MPI_COMM_WORLD);
        return;
    }
    MPI_Barrier_init(MPI_COMM_SELF, MPI_INFO_NULL, &r[0]);
    MPI_Irecv(&x, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &r[1]);
    MPI_Barrier_init(MPI_COMM_SELF, MPI_INFO_NULL, &r[2]);
    if (starts)
        MPI_Start(&r[0]);
    MPI_Send(NULL, 0, MPI_INT, 1, GATE, MPI_COMM_WORLD);
    spoil(s, 3);
    int code = completion_until(waits ? BY_WAITALL : BY_TESTALL, 3, r, &done, at, s);
    EXPECT(class_of(code) == MPI_ERR_IN_STATUS || (!code && !waits && !TESTALL_TELLS), "class %d",
           class_of(code));
    nraised = 0;
    EXPECT_INT(class_of(s[0].MPI_ERROR), MPI_SUCCESS);
    EXPECT_INT(class_of(s[1].MPI_ERROR), MPI_ERR_TRUNCATE);
    EXPECT_INT(class_of(s[2].MPI_ERROR), MPI_SUCCESS);
    for (int i = 0; i < 3; i += 2)
        OK(MPI_Request_free(&r[i]));
}

/* A gather that fails at its root, since rank 1 sends too much, before rank 2 has called: the
 * gather is over when rank 2's message is, too, so that this is taken for nothing else. */
static int gather_well(MPI_Comm three, int *out)
{
    static int in[2];
    MPI_Request r;
    in[0] = in[1] = 10 + test_rank;
    MPI_Igather(in, 1, MPI_INT, out, 1, MPI_INT, 0, three, &r);
    return class_of(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static void rank_2_waits_for_the_gate(void)
{
    if (test_rank == 2)
        MPI_Recv(NULL, 0, MPI_INT, 0, GATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 1 has sent when it says so, and some tests later rank 0 has received that, and has failed.
 */
static int failing_until_rank_2_calls(MPI_Request *r, MPI_Comm three)
{
    int flag = 0;
    if (test_rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, GATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 100; i++)
            CHECK(MPI_Test(r, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
        MPI_Send(NULL, 0, MPI_INT, 2, GATE, MPI_COMM_WORLD);
    }
    int class = class_of(MPI_Wait(r, MPI_STATUS_IGNORE));
    if (test_rank == 1)
        MPI_Send(NULL, 0, MPI_INT, 0, GATE, MPI_COMM_WORLD);
    CHECK(test_rank > 0 || raised_last(MPI_ERR_TRUNCATE, three));
    return class;
}

static void failing_before_others_call(MPI_Comm three)
{
    int in[2] = {0}, out[3] = {-1, -1, -1};
    MPI_Request r;
    rank_2_waits_for_the_gate();
    MPI_Igather(in, 1 + (test_rank == 1), MPI_INT, out, 1, MPI_INT, 0, three, &r);
    int class = failing_until_rank_2_calls(&r, three);
    CHECK(class == (test_rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS) && r == MPI_REQUEST_NULL);
    for (int i = 0; i < 3; i++) {
        OK(gather_well(three, out));
        for (int k = 0; test_rank == 0 && k < 3; k++)
            EXPECT_INT(out[k], 10 + k);
    }
}

/* A persistent one that has failed can be started again. */
static void failing_persistent_before_others_call(MPI_Comm three)
{
    int in[2] = {0}, out[3];
    MPI_Request r;
    MPI_Gather_init(in, 1 + (test_rank == 1), MPI_INT, out, 1, MPI_INT, 0, three, MPI_INFO_NULL,
                    &r);
    for (int i = 0; i < 3; i++) {
        rank_2_waits_for_the_gate();
        OK(MPI_Start(&r));
        int class = failing_until_rank_2_calls(&r, three);
        EXPECT_INT(class, test_rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    }
    OK(MPI_Request_free(&r));
}

TEST(failures_before_others_call)
{
    MPI_Comm three;
    MPI_Comm_split(comm, test_rank < 3 ? 0 : MPI_UNDEFINED, 0, &three);
    if (three == MPI_COMM_NULL)
        return;
    note_errors(three);
    if (test_size >= 3) {
        failing_before_others_call(three);
        failing_persistent_before_others_call(three);
        failing_before_others_call(three);
    }
    MPI_Comm_free(&three);
}

TEST(failures)
{
    MPI_Comm pair;
    MPI_Comm_split(comm, test_rank / 2, 0, &pair);
    note_errors(pair);
    if (test_rank / 2 < test_size / 2) {
        failing_single(pair);
        failing_array(pair, BY_WAITALL);
        failing_array(pair, BY_TESTALL);
        failing_array(pair, BY_WAITSOME);
        failing_array(pair, BY_TESTSOME);
        if (test_rank < 2 && !IS_MPICH_43) { /* which returns MPI_SUCCESS behind a handler */
            failing_message(pair);
            for (int way = 0; way < 4; way++)
                failing_beside_inactive(way & 1, way & 2);
        }
    }
    MPI_Comm_free(&pair);
}

/* --- progress ----------------------------------------------------------------------------------*/

/* Rank 0 has started a sum and waits for a message, which comes only after the sum is complete on
 * all others: for that rank 0 must forward its part while it waits. The sum has several rounds from
 * 3 ranks on, and none of it can have happened before rank 0 waits. */
static void wait_for_message(int how)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int x, flag = 0, at[2];
    MPI_Irecv(&x, 1, MPI_INT, test_size - 1, DATA, MPI_COMM_WORLD, &r[1]);
    while (how == NCOMPLETIONS && !flag)
        MPI_Request_get_status(r[1], &flag, MPI_STATUS_IGNORE);
    if (how == NCOMPLETIONS || completion_is_of_one(how))
        completion_until(how % NCOMPLETIONS, 1, &r[1], &flag, at, NULL);
    else
        completion_until(how, 2, r, &flag, at, NULL);
    CHECK(r[1] == MPI_REQUEST_NULL && x == how);
}

TEST(waiting_moves_ours_on)
{
    if (test_size < 2)
        return;
    for (int how = 0; how <= NCOMPLETIONS; how++) {
        MPI_Request r;
        if (test_rank > 0)
            MPI_Recv(NULL, 0, MPI_INT, 0, GATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        r = sum_start();
        for (int i = 1; test_rank == 0 && i < test_size; i++)
            MPI_Send(NULL, 0, MPI_INT, i, GATE, MPI_COMM_WORLD);
        if (test_rank == 0)
            wait_for_message(how);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        EXPECT_INT(one_out, sum_of_ranks());
        if (test_rank > 1)
            MPI_Recv(NULL, 0, MPI_INT, left(), DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (test_rank > 0)
            MPI_Send(&how, is_late(), MPI_INT, right(), DATA, MPI_COMM_WORLD);
    }
}

#ifdef HAVE_MPI_FILE_OPEN
static void open_own(MPI_File *file)
{
    char name[TEST_FILE_NAME];
    CHECK(test_file(name));
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  file);
}
#endif

/* Several requests of a file beside one of ours, or while one is pending. MPI_Testall of
 * MPICH 4.0.2 does not bear them, but MPI_Waitall does. */
TEST(requests_of_files)
{
#ifdef HAVE_MPI_FILE_OPEN
    enum { N = 3, LONG = 20, ROUNDS = 60 };
    int data[4] = {test_rank, 1, 2, 3}, out = 0;
    MPI_File file;
    MPI_Request r[LONG + 2];
    MPI_Status s[LONG + 2];

    open_own(&file);
    for (int k = 0; k < ROUNDS; k++) {
        int n = k % 5 ? N : LONG, ours = k % 2 ? n + 1 : LONG + 1, bytes = -1;
        bool ignored = k % 3 == 0;
        for (int i = 0; i < n; i++)
            MPI_File_iwrite_at(file, i * (MPI_Offset)sizeof data, data, 4, MPI_INT, &r[i]);
        r[n] = MPI_REQUEST_NULL;
        MPI_Iallreduce(&test_rank, &out, 1, MPI_INT, MPI_SUM, comm, &r[ours]);
        OK(MPI_Waitall(ours == n + 1 ? n + 2 : n, r, ignored ? MPI_STATUSES_IGNORE : s));
        MPI_Wait(&r[ours], MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) {
            if (!ignored)
                MPI_Get_count(&s[i], MPI_BYTE, &bytes);
            CHECK(r[i] == MPI_REQUEST_NULL);
            CHECK(ignored || (bytes == sizeof data && s[i].MPI_ERROR == MPI_SUCCESS));
        }
        EXPECT_INT(out, sum_of_ranks());
    }
    MPI_File_close(&file);
#endif
}

/* One of them beside a message that comes late. */
TEST(file_and_message)
{
#ifdef HAVE_MPI_FILE_OPEN
    enum { ROUNDS = 5, ALL = 3 };
    char late = 0, in = 0;
    MPI_File file;
    open_own(&file);
    for (int k = 0; k < ROUNDS; k++) {
        MPI_Request r[ALL] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Irecv(&in, 1, MPI_CHAR, left(), DATA, MPI_COMM_WORLD, &r[0]);
        MPI_File_iwrite_at(file, k, &late, 1, MPI_CHAR, &r[1]);
        if (is_late()) { /* the others wait */
            usleep(20000);
            MPI_Send(&late, 1, MPI_CHAR, right(), DATA, MPI_COMM_WORLD);
        }
        MPI_Ibarrier(comm, &r[2]);
        if (!is_late())
            MPI_Send(&late, 1, MPI_CHAR, right(), DATA, MPI_COMM_WORLD);
        OK(MPI_Waitall(ALL, r, MPI_STATUSES_IGNORE));
    }
    MPI_File_close(&file);
#endif
}

/* MPI_Testall of MPICH 4.0.2 does not bear partitioned requests, but MPI_Waitall does. */
TEST(partitioned_ones)
{
#ifdef HAVE_MPI_PSEND_INIT
    enum { PARTS = 3, ROUNDS = 3, ALL = 3 };
    int out[PARTS] = {0}, in[PARTS];
    MPI_Status statuses[ALL];
    MPI_Request r[ALL];
    MPI_Psend_init(out, PARTS, 1, MPI_INT, right(), DATA, comm, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, PARTS, 1, MPI_INT, left(), DATA, comm, MPI_INFO_NULL, &r[2]);
    for (int k = 0; k < 2 * ROUNDS; k++) {
        CHECK(MPI_Startall(1, &r[0]) == MPI_SUCCESS && MPI_Start(&r[2]) == MPI_SUCCESS);
        MPI_Ibarrier(comm, &r[1]);
        for (int i = 0; i < PARTS; i++) {
            out[i] = 100 * k + 10 * test_rank + i;
            MPI_Pready(i, r[0]);
        }
        if (k % 2) { /* a barrier that is in the array, or somewhere else */
            CHECK(MPI_Waitall(ALL, r, statuses) == MPI_SUCCESS && r[1] == MPI_REQUEST_NULL);
        } else {
            MPI_Request others[] = {r[0], r[2]};
            OK(MPI_Waitall(2, others, MPI_STATUSES_IGNORE));
            MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < PARTS; i++)
            EXPECT_INT(in[i], 100 * k + 10 * left() + i);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[2]);
#endif
}

int main(int argc, char **argv)
{
    /* Of several rounds from 3 ranks on: waiting_moves_ours_on needs that. */
    setenv("NBCSHIM_ALGORITHM_ALLREDUCE", "recursive_doubling", 1);
    /* The root receives from all: failures_before_others_call. */
    setenv("NBCSHIM_ALGORITHM_GATHER", "linear", 1);
    return test_main(argc, argv);
}

AROUND_TESTS(observe_begin, observe_end)
