/* SPDX-License-Identifier: MIT */
/* Progress of collectives while rank 0 is blocked in point-to-point, completion and collective
 * calls: common/blocked.h. */
#include "blocked.h"
#include "config.h"

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

static void recv(void)
{
    EXPECT_INT(received(), 42);
}

static void recv_any(void)
{
    int value = -1, count;
    MPI_Status status;
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, blocked_comm, &status));
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT(value == 42 && count == 1 && status.MPI_SOURCE == 1 && status.MPI_TAG == TAG,
           "%d: count %d of %d, tag %d", value, count, status.MPI_SOURCE, status.MPI_TAG);
}

static void recv_large(void)
{
    large[LARGE - 1] = 0;
    OK(MPI_Recv(large, LARGE, MPI_CHAR, 1, TAG, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(large[LARGE - 1], 'x');
}

static void send_large(void)
{
    large[LARGE - 1] = 'x';
    if (test_rank == 1)
        MPI_Send(large, LARGE, MPI_CHAR, 0, TAG, blocked_comm);
}

static void probe(void)
{
    MPI_Status status;
    OK(MPI_Probe(MPI_ANY_SOURCE, TAG, blocked_comm, &status));
    EXPECT_INT(status.MPI_SOURCE, 1);
    EXPECT_INT(received(), 42);
}

static void iprobe(void)
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

static void mprobe(void)
{
    MPI_Message message;
    OK(MPI_Mprobe(MPI_ANY_SOURCE, TAG, blocked_comm, &message, MPI_STATUS_IGNORE));
    mrecv(&message);
}

static void improbe(void)
{
    MPI_Message message;
    int flag = 0;
    while (!flag)
        OK(MPI_Improbe(1, TAG, blocked_comm, &flag, &message, MPI_STATUS_IGNORE));
    mrecv(&message);
}
#endif

/* --- sending ----------------------------------------------------------------------------------*/

static void send(void)
{
    OK(MPI_Send(large, LARGE, MPI_CHAR, 1, TAG, blocked_comm));
}

static void ssend(void)
{
    OK(MPI_Ssend(large, 1, MPI_CHAR, 1, TAG, blocked_comm));
}

/* A ready send has its receive posted before. */
static MPI_Request ready;

static void expect_large(void)
{
    large[LARGE - 1] = test_rank == 0 ? 'r' : 0;
    if (test_rank == 1)
        MPI_Irecv(large, LARGE, MPI_CHAR, 0, TAG, blocked_comm, &ready);
    MPI_Barrier(blocked_comm);
}

static void rsend(void)
{
    OK(MPI_Rsend(large, LARGE, MPI_CHAR, 1, TAG, blocked_comm));
}

static void have_large(void)
{
    if (test_rank != 1)
        return;
    OK(MPI_Wait(&ready, MPI_STATUS_IGNORE));
    EXPECT_INT(large[LARGE - 1], 'r');
}

static void sendrecv_receives(void)
{
    int value = -1;
    OK(MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, TAG, &value, 1, MPI_INT, 1, TAG,
                    blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

static void sendrecv_sends(void)
{
    MPI_Status status;
    OK(MPI_Sendrecv(large, LARGE, MPI_CHAR, 1, TAG, NULL, 0, MPI_INT, MPI_PROC_NULL, TAG,
                    blocked_comm, &status));
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG,
           "status of %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
}

static void sendrecv_replace(void)
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
static void sendrecv_replace_bottom(void)
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

static void replace_it(void)
{
    int out[2] = {3, 4}, in[2] = {-1, -1};
    if (test_rank != 1)
        return;
    MPI_Sendrecv(out, 2, MPI_INT, 0, BACK, in, 2, MPI_INT, 0, TAG, blocked_comm, MPI_STATUS_IGNORE);
    EXPECT_INT(in[0], 1);
    EXPECT_INT(in[1], 2);
}

#ifdef HAVE_MPI_SEND_C
static void recv_c(void)
{
    int value = -1;
    OK(MPI_Recv_c(&value, 1, MPI_INT, 1, TAG, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

static void send_c(void)
{
    OK(MPI_Send_c(large, LARGE, MPI_CHAR, 1, TAG, blocked_comm));
}

static void ssend_c(void)
{
    OK(MPI_Ssend_c(large, 1, MPI_CHAR, 1, TAG, blocked_comm));
}

static void rsend_c(void)
{
    OK(MPI_Rsend_c(large, LARGE, MPI_CHAR, 1, TAG, blocked_comm));
}

static void sendrecv_c(void)
{
    int value = -1;
    OK(MPI_Sendrecv_c(&value, 1, MPI_INT, MPI_PROC_NULL, TAG, &value, 1, MPI_INT, 1, TAG,
                      blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

static void sendrecv_replace_c(void)
{
    int value[2] = {1, 2};
    OK(MPI_Sendrecv_replace_c(value, 2, MPI_INT, 1, TAG, 1, BACK, blocked_comm, MPI_STATUS_IGNORE));
    EXPECT_INT(value[0], 3);
    EXPECT_INT(value[1], 4);
}
#endif

/* Only the progress thread helps here: doc/progress.md. */
static void detach(void)
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

static void wait(void)
{
    MPI_Request request = receive();
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

static void waitall(void)
{
    MPI_Request request[2] = {MPI_REQUEST_NULL, receive()};
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    EXPECT_INT(value, 42);
}

static void waitany(void)
{
    MPI_Request request[2] = {MPI_REQUEST_NULL, receive()};
    int index;
    OK(MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
    EXPECT_INT(index, 1);
}

static void waitsome(void)
{
    MPI_Request request[2] = {MPI_REQUEST_NULL, receive()};
    int count, index[2];
    OK(MPI_Waitsome(2, request, &count, index, MPI_STATUSES_IGNORE));
    EXPECT_INT(value, 42);
    EXPECT_INT(count, 1);
}

static void test(void)
{
    MPI_Request request = receive();
    int flag = 0;
    while (!flag)
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

static void testall(void)
{
    MPI_Request request = receive();
    int flag = 0;
    while (!flag)
        OK(MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE));
    EXPECT_INT(value, 42);
}

static void testany(void)
{
    MPI_Request request = receive();
    int flag = 0, index;
    while (!flag)
        OK(MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

static void testsome(void)
{
    MPI_Request request = receive();
    int count = 0, index;
    while (!count)
        OK(MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE));
    EXPECT_INT(value, 42);
}

static void get_status(void)
{
    MPI_Request request = receive();
    int flag = 0;
    while (!flag)
        OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(value, 42);
}

#ifdef HAVE_MPI_PARRIVED
static void parrived(void)
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
#endif

/* --- blocking collectives --------------------------------------------------------------------- */

static void barrier(void)
{
    OK(MPI_Barrier(blocked_comm));
}

static void bcast(void)
{
    int data = test_rank == 1 ? 7 : -1;
    OK(MPI_Bcast(&data, 1, MPI_INT, 1, blocked_comm));
    EXPECT_INT(data, 7);
}

static void reduce(void)
{
    int mine = test_rank, sum = -1;
    OK(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, blocked_comm));
    EXPECT(test_rank != 0 || sum == test_size * (test_size - 1) / 2, "sum %d", sum);
}

static void allreduce(void)
{
    int mine = test_rank, sum = -1;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, blocked_comm));
    EXPECT_INT(sum, test_size * (test_size - 1) / 2);
}

static void alltoall(void)
{
    int out[64], in[64];
    for (int i = 0; i < test_size; i++)
        out[i] = 100 * test_rank + i;
    OK(MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, blocked_comm));
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(in[i], 100 * i + test_rank);
}

static const struct blocked cases[] = {
    {"recv", recv, send_it, NULL, false},
    {"recv_any", recv_any, send_it, NULL, false},
    {"recv_large", recv_large, send_large, NULL, false},
    {"probe", probe, send_it, NULL, false},
    {"iprobe", iprobe, send_it, NULL, false},
#ifdef HAVE_MPI_IMPROBE
    {"mprobe", mprobe, send_it, NULL, false},
    {"improbe", improbe, send_it, NULL, false},
#endif
    {"send", send, take_large, NULL, false},
    {"ssend", ssend, take_large, NULL, false},
    {"rsend", rsend, have_large, expect_large, false},
    {"sendrecv_receives", sendrecv_receives, send_it, NULL, false},
    {"sendrecv_sends", sendrecv_sends, take_large, NULL, false},
    {"sendrecv_replace", sendrecv_replace, replace_it, NULL, false},
    {"sendrecv_replace_bottom", sendrecv_replace_bottom, replace_it, NULL, false},
#ifdef HAVE_MPI_SEND_C
    {"recv_c", recv_c, send_it, NULL, false},
    {"send_c", send_c, take_large, NULL, false},
    {"ssend_c", ssend_c, take_large, NULL, false},
    {"rsend_c", rsend_c, have_large, expect_large, false},
    {"sendrecv_c", sendrecv_c, send_it, NULL, false},
    {"sendrecv_replace_c", sendrecv_replace_c, replace_it, NULL, false},
#endif
    {"detach", detach, take_large, NULL, true},
    {"wait", wait, send_it, NULL, false},
    {"waitall", waitall, send_it, NULL, false},
    {"waitany", waitany, send_it, NULL, false},
    {"waitsome", waitsome, send_it, NULL, false},
    {"test", test, send_it, NULL, false},
    {"testall", testall, send_it, NULL, false},
    {"testany", testany, send_it, NULL, false},
    {"testsome", testsome, send_it, NULL, false},
    {"get_status", get_status, send_it, NULL, false},
#ifdef HAVE_MPI_PARRIVED
    {"parrived", parrived, send_partition, NULL, false},
#endif
    {"barrier", barrier, NULL, NULL, false},
    {"bcast", bcast, NULL, NULL, false},
    {"reduce", reduce, NULL, NULL, false},
    {"allreduce", allreduce, NULL, NULL, false},
    {"alltoall", alltoall, NULL, NULL, false},
};

int main(int argc, char **argv)
{
    test_init(&argc, &argv);
    large = test_alloc(LARGE);
    blocked_run(cases, sizeof cases / sizeof *cases, argv + 1);
    free(large);
    return test_done();
}
