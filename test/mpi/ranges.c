/* SPDX-License-Identifier: MIT */
/* Communicators share one hidden communicator, of which each has a range of tags. Many at once,
 * more than there are ranges; ranges that are given back and used again at once, while operations
 * of other communicators are pending; groups that overlap; agreements at the same time, in several
 * threads and by MPI_Comm_idup; more persistent requests than a range has tags. Each operation has
 * its own data, so that a message which reaches another one is found out. Meant for few ranges too
 * (NBCSHIM_TEST=tag_ub=65535). */
#include "config.h"
#include "util.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#pragma weak MPI_Bcast_init

/* --- one operation ------------------------------------------------------------------------------
 */

enum { WORDS = 32 };

struct operation {
    MPI_Request request;
    uint64_t own[WORDS], data[WORDS];
    uint64_t seed;
    int sources; /* the data is the sum of what so many ranks give */
    bool pending;
};

static uint64_t datum(uint64_t seed, int rank, int i)
{
    return mix64((seed * 64 + (unsigned)rank) * WORDS + (unsigned)i);
}

/* A broadcast or an allreduce. seed: the same on all ranks of the communicator, and no other
 * operation's. */
static void start(struct operation *op, MPI_Comm comm, uint64_t seed)
{
    int size, rank;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    int root = (int)(mix64(seed) % (unsigned)size);
    bool reduces = mix64(seed) >> 32 & 1;
    for (int i = 0; i < WORDS; i++) {
        op->own[i] = datum(seed, rank, i);
        op->data[i] = !reduces && rank == root ? datum(seed, 0, i) : 0;
    }
    op->seed = seed;
    op->sources = reduces ? size : 1;
    op->pending = true;
    if (reduces)
        OK(MPI_Iallreduce(op->own, op->data, WORDS, MPI_UINT64_T, MPI_SUM, comm, &op->request));
    else
        OK(MPI_Ibcast(op->data, WORDS, MPI_UINT64_T, root, comm, &op->request));
}

static void finish(struct operation *op)
{
    if (!op->pending)
        return;
    op->pending = false;
    OK(MPI_Wait(&op->request, MPI_STATUS_IGNORE));
    for (int i = 0; i < WORDS; i++) {
        uint64_t sum = 0;
        for (int rank = 0; rank < op->sources; rank++)
            sum += datum(op->seed, rank, i);
        EXPECT_INT(op->data[i], sum, "operation %llx", (unsigned long long)op->seed);
    }
}

static void use(MPI_Comm comm, uint64_t seed)
{
    struct operation op;
    start(&op, comm, seed);
    finish(&op);
}

static uint64_t next_seed(void)
{
    static uint64_t seed;
    return ++seed;
}

/* --- the tests ----------------------------------------------------------------------------------
 */

static struct rng shared; /* the same on all ranks */

static void begin(void)
{
    shared.state = test_seed;
}

static int below(int n)
{
    return (int)(mix64(shared.state++) % (unsigned)n);
}

/* More communicators than ranges, all with an operation pending; they are freed in another order.
 */
TEST(ranges_run_out)
{
    enum { N = 170 };
    static MPI_Comm comm[N];
    static struct operation op[N];
    test_place("ranges_run_out");
    for (int i = 0; i < N; i++) {
        OK(MPI_Comm_dup(i % 3 ? comm[i / 2] : MPI_COMM_WORLD, &comm[i]));
        start(&op[i], comm[i], next_seed());
    }
    for (int i = N - 1; i >= 0; i--)
        finish(&op[i]);
    for (int i = 0; i < N; i++)
        start(&op[(i * 7 + 1) % N], comm[(i * 7 + 1) % N], next_seed());
    for (int i = 0; i < N; i++) {
        int k = (i * 11 + 3) % N;
        OK(MPI_Comm_free(&comm[k]));
    }
    for (int i = 0; i < N; i++)
        finish(&op[i]);
}

/* Each communicator is freed with its operation pending, which each rank completes at another time,
 * while new communicators are made. */
TEST(pending_over_the_free)
{
    enum { PENDING = 8 };
    static struct operation op[PENDING];
    int rounds = test_scale(test_oversubscribed() ? 150 : 600, 100000);
    test_place("pending_over_the_free");
    for (int i = 0; i < rounds; i++) {
        MPI_Comm comm, part;
        int color = below(2) && test_rank < below(test_size) + 1;
        finish(&op[i % PENDING]);
        if (i % 4 == 1)
            OK(MPI_Comm_split(MPI_COMM_WORLD, color, -test_rank, &comm));
        else
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        start(&op[i % PENDING], comm, (next_seed() << 1) + (i % 4 == 1 && color));
        if (i % 8 == 2) {
            OK(MPI_Comm_split(comm, test_rank % 2 ? 0 : MPI_UNDEFINED, 0, &part));
            if (part != MPI_COMM_NULL) {
                use(part, (uint64_t)1 << 40 | (unsigned)i);
                OK(MPI_Comm_free(&part));
            }
        }
        OK(MPI_Comm_free(&comm));
        if ((i + test_rank) % 3 == 0)
            finish(&op[(i + test_rank) % PENDING]);
    }
    for (int i = 0; i < PENDING; i++)
        finish(&op[i]);
}

/* Each pair of neighbors in a ring has communicators, made from groups that overlap, with the other
 * members of the pairs meanwhile elsewhere. */
TEST(groups_overlap)
{
#ifdef HAVE_MPI_COMM_CREATE_GROUP
    MPI_Group world;
    struct operation op[2];
    test_place("groups_overlap");
    if (test_size < 3)
        return;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int round = 0; round < 50; round++) {
        MPI_Comm pair[2];
        for (int k = 0; k < 2; k++) {
            /* Even ranks begin with the pair to the right: no cycle, except at the ends. */
            bool to_right = (test_rank % 2 == 0) == (k == 0);
            int low = to_right ? test_rank : left();
            int ranks[2] = {low, to_right ? right() : test_rank};
            MPI_Group group;
            pair[k] = MPI_COMM_NULL;
            op[k].pending = false;
            if (low == test_size - 1)
                continue;
            OK(MPI_Group_incl(world, 2, ranks, &group));
            OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &pair[k]));
            OK(MPI_Group_free(&group));
            start(&op[k], pair[k], (uint64_t)2 << 40 | (unsigned)(round * test_size + low));
        }
        for (int k = 1; k >= 0; k--)
            if (pair[k] != MPI_COMM_NULL)
                OK(MPI_Comm_free(&pair[k]));
        finish(&op[0]);
        finish(&op[1]);
    }
    OK(MPI_Group_free(&world));
#endif
}

#ifdef HAVE_MPI_COMM_IDUP
/* Operations that a callback completes, one in each call. Rank 0 has started them before, the other
 * ranks start them there. */
static struct {
    MPI_Comm comm;
    MPI_Request request[2];
    int one, sum[2], ncalls;
} copied;

static void start_copied(int i)
{
    OK(MPI_Iallreduce(&copied.one, &copied.sum[i], 1, MPI_INT, MPI_SUM, copied.comm,
                      &copied.request[i]));
}

static int on_copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)keyval, (void)extra;
    int i = copied.ncalls++;
    if (i < 2) {
        if (test_rank > 0)
            start_copied(i);
        OK(MPI_Wait(&copied.request[i], MPI_STATUS_IGNORE));
        EXPECT_INT(copied.sum[i], test_size, "call %d of the callback", i);
    }
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}
#endif

/* Where no range is left, MPI_Comm_idup calls attribute callbacks twice: for the communicator, and
 * for a hidden duplicate of that: on rank 0 within the progress loop of the MPI, if that calls
 * nbcshim there. */
TEST(callbacks_of_an_idup)
{
#ifdef HAVE_MPI_COMM_IDUP
    enum { N = 170 };
    static MPI_Comm held[N];
    MPI_Comm parent, made;
    MPI_Request request;
    int keyval;
    test_place("callbacks_of_an_idup");
    OK(MPI_Comm_create_keyval(on_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    for (int i = 0; i < N; i++)
        OK(MPI_Comm_dup(parent, &held[i]));
    OK(MPI_Comm_set_attr(parent, keyval, &copied));
    copied.comm = held[0];
    copied.one = 1;
    copied.ncalls = 0;
    for (int i = 0; i < 2 && test_rank == 0; i++)
        start_copied(i);
    OK(MPI_Comm_idup(parent, &made, &request));
    for (int from = 1; from < test_size && test_rank == 0; from++)
        OK(MPI_Recv(NULL, 0, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (test_rank > 0)
        OK(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD));
    EXPECT(copied.ncalls > 0, "no callback was called");
    for (int i = copied.ncalls; i < 2; i++) {
        if (test_rank > 0)
            start_copied(i);
        OK(MPI_Wait(&copied.request[i], MPI_STATUS_IGNORE));
    }
    OK(MPI_Comm_free(&made));
    for (int i = 0; i < N; i++)
        OK(MPI_Comm_free(&held[i]));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free_keyval(&keyval));
#endif
}

/* One of the groups uses ranges that are free in the other. */
TEST(intercommunicators)
{
    enum { HELD = 40 };
    MPI_Comm half, held[HELD], inter, again, merged;
    test_place("intercommunicators");
    if (test_size < 2)
        return;
    OK(MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &half));
    for (int i = 0; test_rank % 2 && i < HELD; i++)
        OK(MPI_Comm_dup(half, &held[i]));
    for (int i = 0; i < 20; i++) {
        int size, sum = 0, remote, one = 1;
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 5, &inter));
        OK(MPI_Comm_dup(inter, &again));
#ifdef HAVE_MPI_COMM_IDUP
        MPI_Request made;
        OK(MPI_Comm_free(&again));
        OK(MPI_Comm_idup(inter, &again, &made));
        OK(MPI_Wait(&made, MPI_STATUS_IGNORE));
#endif
        OK(MPI_Intercomm_merge(again, test_rank % 2, &merged));
        MPI_Request request[2];
        int all = 0;
        OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, again, &request[0]));
        OK(MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, merged, &request[1]));
        OK(MPI_Comm_remote_size(again, &remote));
        OK(MPI_Comm_size(merged, &size));
        OK(MPI_Comm_free(&merged));
        OK(MPI_Comm_free(&again));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        EXPECT_INT(sum, remote);
        EXPECT_INT(all, size);
    }
    for (int i = 0; test_rank % 2 && i < HELD; i++)
        OK(MPI_Comm_free(&held[i]));
    OK(MPI_Comm_free(&half));
}

/* More persistent requests than a range has tags, on several communicators; a part is freed and
 * made again, so that their tags are agreed on again. */
TEST(many_persistent)
{
    enum { N = 3601, COMMS = 2 }; /* prime to 3 and to 7 */
    static struct operation op[COMMS][N];
    MPI_Comm comm[COMMS];
    test_place("many_persistent");
    if (!test_has_persistent())
        return;
    for (int c = 0; c < COMMS; c++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm[c]));
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < N; i++)
            for (int c = 0; c < COMMS; c++)
                if (turn == 0 || (i * 7 + turn) % 3 == 0) {
                    if (turn > 0)
                        OK(MPI_Request_free(&op[c][i].request));
                    OK(MPI_Bcast_init(op[c][i].data, WORDS, MPI_UINT64_T, i % test_size, comm[c],
                                      MPI_INFO_NULL, &op[c][i].request));
                }
        for (int i = 0; i < N; i++)
            for (int c = 0; c < COMMS; c++) {
                /* Each rank starts them in its own order. */
                struct operation *o = &op[c][(i * (test_rank % 2 ? 3 : 7) + test_rank) % N];
                int k = (int)(o - op[c]);
                for (int w = 0; w < WORDS; w++)
                    o->data[w] =
                        test_rank == k % test_size ? datum((unsigned)(k * COMMS + c), 0, w) : 0;
                OK(MPI_Start(&o->request));
            }
        for (int i = 0; i < N; i++)
            for (int c = 0; c < COMMS; c++) {
                OK(MPI_Wait(&op[c][i].request, MPI_STATUS_IGNORE));
                EXPECT_INT(op[c][i].data[1], datum((unsigned)(i * COMMS + c), 0, 1),
                           "persistent %d of %d", i, c);
            }
    }
    for (int c = 0; c < COMMS; c++)
        OK(MPI_Comm_free(&comm[c]));
    for (int i = 0; i < N; i++)
        for (int c = 0; c < COMMS; c++)
            OK(MPI_Request_free(&op[c][i].request));
}

/* With checks each of many calls is a message there and back: that is left to a soak. */
static bool is_quick(void)
{
    return test_soak || !getenv("NBCSHIM_CHECK");
}

/* More persistent operations, one after the other, than there are tags for them. */
TEST(tags_are_given_back, .wanted = is_quick)
{
    enum { MANY = 70000 };
    MPI_Request request;
    for (int i = 0; i < MANY && test_has_persistent(); i++) {
        OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Request_free(&request));
    }
}

/* The ranges that the tests have used are back. */
TEST(ranges_are_back)
{
    ranges_run_out();
}

/* --- threads ------------------------------------------------------------------------------------
 */

/* Open MPI 4.1.4 hangs when two threads make communicators at once, natively too. */
#ifndef OPEN_MPI
enum { THREADS = 3 };

struct worker {
    pthread_t thread;
    int id;
    MPI_Comm comm;
};

static void *worker_run(void *arg)
{
    struct worker *w = arg;
    int rounds = test_scale(test_oversubscribed() ? 20 : 300, 10000);
    struct operation op = {.pending = false};
    for (int i = 0; i < rounds; i++) {
        MPI_Comm comm, part;
        uint64_t seed = (uint64_t)(4 + w->id) << 40 | (unsigned)(2 * i);
        OK(MPI_Comm_dup(w->comm, &comm));
        finish(&op);
        start(&op, comm, seed);
        OK(MPI_Comm_split(comm, 0, -test_rank, &part));
        OK(MPI_Comm_free(&comm));
        use(part, seed + 1);
        OK(MPI_Comm_free(&part));
    }
    finish(&op);
    return NULL;
}

TEST(threads, .if_named = true, .level = MPI_THREAD_MULTIPLE)
{
    struct worker worker[THREADS];
    for (int i = 0; i < THREADS; i++) {
        worker[i].id = i;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &worker[i].comm));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&worker[i].thread, NULL, worker_run, &worker[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(worker[i].thread, NULL);
        OK(MPI_Comm_free(&worker[i].comm));
    }
}
#endif

AROUND_TESTS(begin, NULL)
