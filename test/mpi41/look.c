/* SPDX-License-Identifier: MIT */
/* MPI_Request_get_status_any, _some and _all on an array of a collective that is pending, a
 * receive, an inactive persistent collective and nothing: they tell what is complete, and end
 * nothing. MPI_Buffer_flush and MPI_Buffer_detach progress what rank 1 waits for before it ends
 * them. */
#include <mpi.h>

static int failures;
#define IF_IT_FAILS failures++
#include "../expect.h"

enum { BARRIER, NONE, RECEIVE, PERSISTENT, N };

static MPI_Request requests[N];

static int is_empty(const MPI_Status *s)
{
    int count = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    return s->MPI_SOURCE == MPI_ANY_SOURCE && s->MPI_TAG == MPI_ANY_TAG && count == 0;
}

static void scribble(MPI_Status *s, int n)
{
    for (int i = 0; i < n; i++)
        s[i].MPI_SOURCE = s[i].MPI_TAG = 77;
}

static void nothing_complete(void)
{
    int index = 7, flag = 7, outcount = 7, indices[N];
    MPI_Request_get_status_any(N, requests, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Request_get_status_some(N, requests, &outcount, indices, MPI_STATUSES_IGNORE);
    EXPECT_INT(outcount, 0);
    flag = 7;
    MPI_Request_get_status_all(N, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
}

/* Polls by these calls alone: they must move the barrier on. */
static void barrier_completes(void)
{
    int index, flag = 0, outcount, indices[N];
    MPI_Status s[N];
    scribble(s, N);
    while (!flag)
        MPI_Request_get_status_any(N, requests, &index, &flag, s);
    CHECK(index == BARRIER && is_empty(s));
    scribble(s, N);
    MPI_Request_get_status_some(N, requests, &outcount, indices, s);
    CHECK(outcount == 1 && indices[0] == BARRIER && is_empty(s) && s[1].MPI_TAG == 77);
    MPI_Request_get_status_all(N, requests, &flag, s);
    CHECK(!flag);
}

static void both_complete(void)
{
    int index, flag, outcount = 0, indices[N], seen = 0;
    MPI_Status s[N];
    while (outcount != 2)
        MPI_Request_get_status_some(N, requests, &outcount, indices, s);
    for (int i = 0; i < 2; i++) {
        seen |= 1 << indices[i];
        CHECK(indices[i] == BARRIER ? is_empty(&s[i]) : s[i].MPI_SOURCE == 1 && s[i].MPI_TAG == 5);
    }
    EXPECT_INT(seen, 1 << BARRIER | 1 << RECEIVE);
    MPI_Request_get_status_any(N, requests, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(flag && (index == BARRIER || index == RECEIVE));
    scribble(s, N);
    MPI_Request_get_status_all(N, requests, &flag, s);
    CHECK(flag && s[RECEIVE].MPI_TAG == 5);
    CHECK(is_empty(&s[BARRIER]) && is_empty(&s[NONE]) && is_empty(&s[PERSISTENT]));
}

static void none_active(void)
{
    int index, flag, outcount, indices[N];
    MPI_Status s[N];
    MPI_Request_get_status_any(N, requests, &index, &flag, s);
    CHECK(flag && index == MPI_UNDEFINED && is_empty(s));
    MPI_Request_get_status_some(N, requests, &outcount, indices, s);
    EXPECT_INT(outcount, MPI_UNDEFINED);
    MPI_Request_get_status_all(N, requests, &flag, s);
    CHECK(flag && is_empty(&s[BARRIER]) && is_empty(&s[RECEIVE]));
}

static void detach(void)
{
    void *buffer;
    int size = 7;
    MPI_Buffer_detach(&buffer, &size);
    EXPECT_INT(size, 0);
}

static void flush(void)
{
    MPI_Buffer_flush();
}

/* Half of the sums reaches rank 1 when rank 0 has made it. Rank 1 is late, so that rank 0 does this
 * in the call, which then waits for one message or two. */
static void call_progresses(int rank, void (*call)(void), int messages)
{
    int ones[2] = {1, 1}, sums[2] = {0, 0};
    MPI_Request request;
    for (double begin = MPI_Wtime(); rank == 1 && MPI_Wtime() - begin < 0.3;)
        ;
    MPI_Iallreduce(ones, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0)
        call();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; rank == 1 && i < messages; i++)
        MPI_Send(NULL, 0, MPI_INT, 0, 8, MPI_COMM_WORLD);
    CHECK(sums[0] == 2 && sums[1] == 2);
}

int main(int argc, char **argv)
{
    int rank, got = 0, sent = 42;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    requests[NONE] = requests[RECEIVE] = MPI_REQUEST_NULL;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[PERSISTENT]);
    if (rank == 0) {
        MPI_Irecv(&got, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[RECEIVE]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
        nothing_complete();
        MPI_Send(NULL, 0, MPI_INT, 1, 6, MPI_COMM_WORLD);
        barrier_completes();
        MPI_Send(NULL, 0, MPI_INT, 1, 6, MPI_COMM_WORLD);
        both_complete();
        EXPECT_INT(got, sent);
    } else {
        MPI_Recv(NULL, 0, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
        MPI_Recv(NULL, 0, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&sent, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
    MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
    CHECK(requests[BARRIER] == MPI_REQUEST_NULL && requests[PERSISTENT] != MPI_REQUEST_NULL);
    none_active();
    MPI_Request_free(&requests[PERSISTENT]);
    call_progresses(rank, flush, 1);
    call_progresses(rank, detach, 2); /* a flush, and what the MPI does */
    MPI_Finalize();
    return failures > 0;
}
