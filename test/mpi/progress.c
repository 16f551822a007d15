/* SPDX-License-Identifier: MIT */
/* Progress of collectives while rank 0 is blocked in point-to-point, completion and collective
 * calls: common/blocked.h. */
#include "blocked.h"
#include "cases.h"
#include "completion.h"
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG = 11, BACK = 12, LARGE = 1 << 20 }; /* LARGE: no MPI sends as much before it is asked */

static char *large; /* LARGE bytes */

static int received(void)
{
    int value = -1;
    MPI_Status status;
    OK(MPI_Recv(&value, 1, MPI_INT, 1, TAG, blocked_comm, &status));
    EXPECT_INT(status.MPI_SOURCE, 1);
    EXPECT_INT(status.MPI_TAG, TAG);
    return value;
}

static void send_it(void)
{
    int value = 42;
    if (test_rank == 1)
        MPI_Send(&value, 1, MPI_INT, 0, TAG, blocked_comm);
}

static void take_large(void)
{
    if (test_rank == 1)
        MPI_Recv(large, LARGE, MPI_CHAR, 0, TAG, blocked_comm, MPI_STATUS_IGNORE);
}

/* --- receiving and probing -------------------------------------------------------------------- */

BLOCKED(recv, .release = send_it, .in = "Recv")
{
    EXPECT_INT(received(), 42);
}

BLOCKED(recv_any, .release = send_it, .in = "Recv")
{
    int value = -1, count;
    MPI_Status status;
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, blocked_comm, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT(value == 42 && count == 1 && status.MPI_SOURCE == 1 && status.MPI_TAG == TAG,
           "%d: count %d of %d, tag %d", value, count, status.MPI_SOURCE, status.MPI_TAG);
}

static void send_large(void)
{
    large[LARGE - 1] = 'x';
    if (test_rank == 1)
        MPI_Send(large, LARGE, MPI_CHAR, 0, TAG, blocked_comm);
}

BLOCKED(recv_large, .release = send_large, .in = "Recv")
{
    large[LARGE - 1] = 0;
    OK(MPI_Recv(large, LARGE, MPI_CHAR, 1, TAG, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(large[LARGE - 1], 'x');
}

BLOCKED(probe, .release = send_it, .in = "Probe")
{
    MPI_Status status;
    OK(MPI_Probe(MPI_ANY_SOURCE, TAG, blocked_comm, &status));
    EXPECT_INT(status.MPI_SOURCE, 1);
    EXPECT_INT(received(), 42);
}

BLOCKED(iprobe, .release = send_it)
{
    int flag = 0;
    while (!flag)
        OK(MPI_Iprobe(1, TAG, blocked_comm, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(received(), 42);
}

#ifdef HAVE_MPI_IMPROBE
static void mrecv(MPI_Message *message)
{
    int value = -1;
    MPI_Status status;
    OK(MPI_Mrecv(&value, 1, MPI_INT, message, &status));
    EXPECT_INT(value, 42);
    EXPECT_INT(status.MPI_SOURCE, 1);
}

BLOCKED(mprobe, .release = send_it, .in = "Mprobe")
{
    MPI_Message message;
    OK(MPI_Mprobe(MPI_ANY_SOURCE, TAG, blocked_comm, &message, MPI_STATUS_IGNORE));
    mrecv(&message);
}

BLOCKED(improbe, .release = send_it)
{
    MPI_Message message;
    int flag = 0;
    while (!flag)
        OK(MPI_Improbe(1, TAG, blocked_comm, &flag, &message, MPI_STATUS_IGNORE));
    mrecv(&message);
}
#endif

/* --- sending ----------------------------------------------------------------------------------*/

#define SENDS(name, n, function, ...)                                 \
    BLOCKED(name, __VA_ARGS__)                                        \
    {                                                                 \
        OK(MPI_##function(large, n, MPI_CHAR, 1, TAG, blocked_comm)); \
    }
SENDS(send, LARGE, Send, .release = take_large, .in = "Send")
SENDS(ssend, 1, Ssend, .release = take_large, .in = "Ssend")

/* A ready send has its receive posted before. */
static MPI_Request ready;

static void expect_large(void)
{
    large[LARGE - 1] = test_rank == 0 ? 'r' : 0;
    if (test_rank == 1)
        MPI_Irecv(large, LARGE, MPI_CHAR, 0, TAG, blocked_comm, &ready);
    MPI_Barrier(blocked_comm);
}

static void have_large(void)
{
    if (test_rank != 1)
        return;
    OK(MPI_Wait(&ready, MPI_STATUS_IGNORE));
    EXPECT_INT(large[LARGE - 1], 'r');
}

SENDS(rsend, LARGE, Rsend, .release = have_large, .prepare = expect_large)

/* A message from rank 1, by a function with these arguments before it. */
#define RECEIVES(name, function, ...)                                           \
    BLOCKED(name, .release = send_it, .in = #function)                          \
    {                                                                           \
        int value = -1;                                                         \
        OK(MPI_##function(__VA_ARGS__ &value, 1, MPI_INT, 1, TAG, blocked_comm, \
                          MPI_STATUS_IGNORE));                                  \
        EXPECT_INT(value, 42);                                                  \
    }
RECEIVES(sendrecv_receives, Sendrecv, &value, 1, MPI_INT, MPI_PROC_NULL, TAG, )

BLOCKED(sendrecv_sends, .release = take_large, .in = "Sendrecv")
{
    MPI_Status status;
    OK(MPI_Sendrecv(large, LARGE, MPI_CHAR, 1, TAG, NULL, 0, MPI_INT, MPI_PROC_NULL, TAG,
                    blocked_comm, &status));
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG,
           "status of %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
}

static void replace_it(void)
{
    int out[2] = {3, 4}, in[2] = {-1, -1};
    if (test_rank != 1)
        return;
    MPI_Sendrecv(out, 2, MPI_INT, 0, BACK, in, 2, MPI_INT, 0, TAG, blocked_comm, MPI_STATUS_IGNORE);
    EXPECT_INT(in[0], 1);
    EXPECT_INT(in[1], 2);
}

BLOCKED(sendrecv_replace, .release = replace_it, .in = "Sendrecv_replace")
{
    int value[4] = {1, -1, 2, -1};
    MPI_Datatype sparse;
    MPI_Type_vector(2, 1, 2, MPI_INT, &sparse);
    MPI_Type_commit(&sparse);
    OK(MPI_Sendrecv_replace(value, 1, sparse, 1, TAG, 1, BACK, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT(value[0] == 3 && value[1] == -1 && value[2] == 4 && value[3] == -1,
           "received %d %d %d %d", value[0], value[1], value[2], value[3]);
    MPI_Type_free(&sparse);
}

/* The data is where the addresses in the type say. */
BLOCKED(sendrecv_replace_bottom, .release = replace_it, .in = "Sendrecv_replace")
{
    static int first, second;
    const int lengths[2] = {1, 1};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Aint places[2];
    MPI_Datatype both;
    MPI_Get_address(&first, &places[0]);
    MPI_Get_address(&second, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    first = 1, second = 2;
    OK(MPI_Sendrecv_replace(MPI_BOTTOM, 1, both, 1, TAG, 1, BACK, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(first, 3);
    EXPECT_INT(second, 4);
    MPI_Type_free(&both);
}

#ifdef HAVE_MPI_SEND_C
RECEIVES(recv_c, Recv_c, )
SENDS(send_c, LARGE, Send_c, .release = take_large, .in = "Send_c")
SENDS(ssend_c, 1, Ssend_c, .release = take_large, .in = "Ssend_c")
SENDS(rsend_c, LARGE, Rsend_c, .release = have_large, .prepare = expect_large)
RECEIVES(sendrecv_c, Sendrecv_c, &value, 1, MPI_INT, MPI_PROC_NULL, TAG, )

BLOCKED(sendrecv_replace_c, .release = replace_it, .in = "Sendrecv_replace_c")
{
    int value[2] = {1, 2};
    OK(MPI_Sendrecv_replace_c(value, 2, MPI_INT, 1, TAG, 1, BACK, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(value[0], 3);
    EXPECT_INT(value[1], 4);
}
#endif

/* Only the progress thread helps here: doc/progress.md. */
BLOCKED(detach, .release = take_large, .test.if_named = true)
{
    void *buffer;
    int size = LARGE + MPI_BSEND_OVERHEAD;
    MPI_Buffer_attach(test_alloc((size_t)size), size);
    OK(MPI_Bsend(large, LARGE, MPI_CHAR, 1, TAG, blocked_comm));
    OK(MPI_Buffer_detach(&buffer, &size));
    free(buffer);
}

/* --- completion of requests that are not ours ------------------------------------------------- */

static int value;

static MPI_Request receive(void)
{
    MPI_Request request;
    value = -1;
    MPI_Irecv(&value, 1, MPI_INT, 1, TAG, blocked_comm, &request);
    return request;
}

static void complete(enum completion by)
{
    MPI_Request request[2] = {receive(), MPI_REQUEST_NULL};
    int done, at[2];
    OK(completion_until(by, 2, request, &done, at, NULL));
    EXPECT_INT(value, 42);
    EXPECT_INT(done, completion_is_of_all(by) ? 2 : 1);
    EXPECT_INT(at[0], 0);
}

#define COMPLETES(name, by, function)                 \
    BLOCKED(name, .release = send_it, .in = function) \
    {                                                 \
        complete(by);                                 \
    }
COMPLETES(wait, BY_WAIT, "Wait")
COMPLETES(waitall, BY_WAITALL, "Waitall")
COMPLETES(waitany, BY_WAITANY, "Waitany")
COMPLETES(waitsome, BY_WAITSOME, "Waitsome")
COMPLETES(test, BY_TEST, NULL)
COMPLETES(testall, BY_TESTALL, NULL)
COMPLETES(testany, BY_TESTANY, NULL)
COMPLETES(testsome, BY_TESTSOME, NULL)

BLOCKED(get_status, .release = send_it)
{
    MPI_Request request = receive();
    int flag = 0;
    while (!flag)
        OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

#ifdef HAVE_MPI_PARRIVED
/* In Open MPI 5 nothing partitioned progresses before every rank of MPI_COMM_WORLD has made some
 * such request. */
static void send_partition_to_self(void)
{
    MPI_Request request[2];
    int sent = 1, received = 0;
    OK(MPI_Psend_init(&sent, 1, 1, MPI_INT, test_rank, TAG, blocked_comm, MPI_INFO_NULL,
                      &request[0]));
    OK(MPI_Precv_init(&received, 1, 1, MPI_INT, test_rank, TAG, blocked_comm, MPI_INFO_NULL,
                      &request[1]));
    OK(MPI_Startall(2, request));
    OK(MPI_Pready(0, request[0]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&request[0]));
    OK(MPI_Request_free(&request[1]));
}

static void send_partition(void)
{
    MPI_Request request;
    value = 42;
    if (test_rank != 1) {
        send_partition_to_self();
        return;
    }
    OK(MPI_Psend_init(&value, 1, 1, MPI_INT, 0, TAG, blocked_comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Pready(0, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
}

BLOCKED(parrived, .release = send_partition)
{
    MPI_Request request;
    int flag = 0;
    value = -1;
    OK(MPI_Precv_init(&value, 1, 1, MPI_INT, 1, TAG, blocked_comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    while (!flag)
        OK(MPI_Parrived(request, 0, &flag));
    EXPECT_INT(value, 42);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
}

#endif

/* --- blocking collectives --------------------------------------------------------------------- */

/* The ranks in reverse, so that rank 0 waits for others in a scan; and a ring of them. */
static MPI_Comm reverse, ring;

static void make_ring(void)
{
    int periodic = 1;
    MPI_Comm_split(blocked_comm, 0, -test_rank, &reverse);
    MPI_Cart_create(reverse, 1, &test_size, &periodic, 0, &ring);
}

/* Rank 0 waits for the root, or is the one that waits for all. */
static enum coll coll;

static void collective(void)
{
    struct group *group = group_new(coll < NINTRA ? reverse : ring);
    struct spec s = spec_random(coll, group, mix_in(2, coll), 20);
    bool waits_as_root = coll == GATHER || coll == GATHERV || coll == REDUCE;
    s.root = waits_as_root ? test_size - 1 : 0;
    s.count = 20;
    s.large = false;
    case_run(&s, BLOCKING);
    group_delete(group);
    MPI_Comm_free(coll < NINTRA ? &ring : &reverse);
}

static void of_one_collective(const struct test *test)
{
    coll = coll_by_name(test->name);
    blocked_run(test);
}

__attribute__((constructor)) static void add_collectives(void)
{
    static struct blocked all[NCOLLS];
    static char names[NCOLLS][40];
    for (enum coll i = 0; i < NCOLLS; i++) {
        snprintf(names[i], sizeof names[i], "%s", coll_name(i));
        names[i][0] = (char)toupper((unsigned char)names[i][0]);
        all[i] = (struct blocked){
            .test = {.name = coll_name(i), .run = collective, .runner = of_one_collective},
            .prepare = make_ring,
            .in = names[i]};
        test_add(&all[i].test);
    }
}

static void begin(void)
{
    large = test_alloc(LARGE);
    kinds_init();
    blocked_begin();
}

static void end(void)
{
    blocked_end();
    kinds_finish();
    free(large);
}

AROUND_TESTS(begin, end)
