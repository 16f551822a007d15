/* SPDX-License-Identifier: MIT */
/* Point-to-point calls, and calls that complete requests of the MPI. Two ranks each make a pair. */
#include <stddef.h>

#include "routines.h"

#if MPI_VERSION * 10 + MPI_SUBVERSION >= 31

enum { TAG = 1, UNUSED_TAG = 2 };

#define TO(rank, tag) s->o->send, s->o->count, MPI_DOUBLE, rank, tag, s->o->comm
#define FROM(rank, tag) s->o->recv, s->o->count, MPI_DOUBLE, rank, tag, s->o->comm
#define OUT TO(s->peer, TAG)
#define IN FROM(s->peer, TAG)
#define MESSAGE s->peer, TAG, s->o->comm /* for a probe */
#define IGNORE MPI_STATUS_IGNORE

/* --- a message there and one back --------------------------------------------------------------*/

static int receive(struct side *s)
{
    return s->calls->Recv(IN, IGNORE);
}

static int probe_and_receive(struct side *s)
{
    s->calls->Probe(MESSAGE, IGNORE);
    return receive(s);
}

static int poll_and_receive(struct side *s)
{
    int flag = 0;
    while (!flag)
        s->calls->Iprobe(MESSAGE, &flag, IGNORE);
    return receive(s);
}

static int receive_message(struct side *s, MPI_Message *message)
{
    return s->calls->Mrecv(s->o->recv, s->o->count, MPI_DOUBLE, message, IGNORE);
}

static int mprobe_and_receive(struct side *s)
{
    MPI_Message message;
    s->calls->Mprobe(MESSAGE, &message, IGNORE);
    return receive_message(s, &message);
}

static int poll_and_receive_message(struct side *s)
{
    MPI_Message message;
    int flag = 0;
    while (!flag)
        s->calls->Improbe(MESSAGE, &flag, &message, IGNORE);
    return receive_message(s, &message);
}

#define PING_PONG(function, send, receive)                                \
    static int function(struct side *s)                                   \
    {                                                                     \
        bool second = s->o->rank % 2;                                     \
        if (s->peer < 0)                                                  \
            return MPI_SUCCESS;                                           \
        int error = second ? receive(s) : s->calls->send(OUT);            \
        return error ? error : second ? s->calls->send(OUT) : receive(s); \
    }

PING_PONG(send_receive, Send, receive)
PING_PONG(ssend, Ssend, receive)
PING_PONG(probe, Send, probe_and_receive)
PING_PONG(iprobe, Send, poll_and_receive)
PING_PONG(mprobe, Send, mprobe_and_receive)
PING_PONG(improbe, Send, poll_and_receive_message)

/* --- both at once ------------------------------------------------------------------------------*/

static int sendrecv(struct side *s)
{
    return s->peer < 0
               ? MPI_SUCCESS
               : s->calls->Sendrecv(s->o->send, s->o->count, MPI_DOUBLE, s->peer, TAG, IN, IGNORE);
}

static int sendrecv_replace(struct side *s)
{
    return s->peer < 0 ? MPI_SUCCESS
                       : s->calls->Sendrecv_replace(s->o->recv, s->o->count, MPI_DOUBLE, s->peer,
                                                    TAG, s->peer, TAG, s->o->comm, IGNORE);
}

/* An exchange without data tells that the receive of the other rank is posted. */
static int rsend(struct side *s)
{
    MPI_Request request;
    if (s->peer < 0)
        return MPI_SUCCESS;
    s->calls->Irecv(IN, &request);
    s->calls->Sendrecv(NULL, 0, MPI_BYTE, s->peer, UNUSED_TAG, NULL, 0, MPI_BYTE, s->peer,
                       UNUSED_TAG, s->o->comm, IGNORE);
    s->calls->Rsend(OUT);
    return s->calls->Wait(&request, IGNORE);
}

/* --- requests ----------------------------------------------------------------------------------*/

static void post(struct side *s)
{
    s->calls->Irecv(IN, &s->requests[0]);
    s->calls->Isend(OUT, &s->requests[1]);
}

static int wait_each(struct side *s)
{
    s->calls->Wait(&s->requests[0], IGNORE);
    return s->calls->Wait(&s->requests[1], IGNORE);
}

static int wait_all(struct side *s)
{
    return s->calls->Waitall(2, s->requests, no_statuses);
}

static int wait_any(struct side *s)
{
    int which;
    s->calls->Waitany(2, s->requests, &which, IGNORE);
    return s->calls->Waitany(2, s->requests, &which, IGNORE);
}

static int wait_some(struct side *s)
{
    int which[2];
    for (int done = 0, n; done < 2; done += n)
        s->calls->Waitsome(2, s->requests, &n, which, no_statuses);
    return MPI_SUCCESS;
}

static int test_each(struct side *s)
{
    for (int i = 0; i < 2; i++) {
        int flag = 0;
        while (!flag)
            s->calls->Test(&s->requests[i], &flag, IGNORE);
    }
    return MPI_SUCCESS;
}

static int test_all(struct side *s)
{
    int flag = 0;
    while (!flag)
        s->calls->Testall(2, s->requests, &flag, no_statuses);
    return MPI_SUCCESS;
}

static int test_any(struct side *s)
{
    for (int done = 0, flag, which; done < 2; done += flag)
        s->calls->Testany(2, s->requests, &which, &flag, IGNORE);
    return MPI_SUCCESS;
}

static int test_some(struct side *s)
{
    int which[2];
    for (int done = 0, n; done < 2; done += n)
        s->calls->Testsome(2, s->requests, &n, which, no_statuses);
    return MPI_SUCCESS;
}

static int poll_status(struct side *s)
{
    int flag = 0;
    while (!flag)
        s->calls->Request_get_status(s->requests[0], &flag, IGNORE);
    return wait_all(s);
}

#define EXCHANGE(function, complete)    \
    static int function(struct side *s) \
    {                                   \
        if (s->peer < 0)                \
            return MPI_SUCCESS;         \
        post(s);                        \
        return complete(s);             \
    }

EXCHANGE(with_wait, wait_each)
EXCHANGE(with_waitall, wait_all)
EXCHANGE(with_waitany, wait_any)
EXCHANGE(with_waitsome, wait_some)
EXCHANGE(with_test, test_each)
EXCHANGE(with_testall, test_all)
EXCHANGE(with_testany, test_any)
EXCHANGE(with_testsome, test_some)
EXCHANGE(with_status, poll_status)

static int make_persistent(struct side *s)
{
    int peer = s->peer < 0 ? MPI_PROC_NULL : s->peer;
    s->calls->Recv_init(FROM(peer, TAG), &s->requests[0]);
    return s->calls->Send_init(TO(peer, TAG), &s->requests[1]);
}

static void free_persistent(struct side *s)
{
    s->calls->Request_free(&s->requests[0]);
    s->calls->Request_free(&s->requests[1]);
}

static int start(struct side *s)
{
    s->calls->Start(&s->requests[0]);
    s->calls->Start(&s->requests[1]);
    return wait_all(s);
}

static int startall(struct side *s)
{
    s->calls->Startall(2, s->requests);
    return wait_all(s);
}

/* --- on one rank -------------------------------------------------------------------------------*/

static int to_self(struct side *s)
{
    MPI_Request request;
    s->calls->Irecv(FROM(s->o->rank, TAG), &request);
    s->calls->Send(TO(s->o->rank, TAG));
    return s->calls->Wait(&request, IGNORE);
}

static int request_free(struct side *s)
{
    MPI_Request receive, send;
    s->calls->Irecv(FROM(s->o->rank, TAG), &receive);
    s->calls->Isend(TO(s->o->rank, TAG), &send);
    s->calls->Request_free(&send);
    return s->calls->Wait(&receive, IGNORE);
}

static int cancel(struct side *s)
{
    MPI_Request request;
    s->calls->Irecv(FROM(s->o->rank, UNUSED_TAG), &request);
    s->calls->Cancel(&request);
    return s->calls->Wait(&request, IGNORE);
}

/* Receives that no message ends, for calls that find nothing complete. */
static int post_in_vain(struct side *s)
{
    s->calls->Irecv(FROM(s->o->rank, UNUSED_TAG), &s->requests[0]);
    return s->calls->Irecv(FROM(s->o->rank, UNUSED_TAG), &s->requests[1]);
}

static void take_back(struct side *s)
{
    s->calls->Cancel(&s->requests[0]);
    s->calls->Cancel(&s->requests[1]);
    wait_all(s);
}

#define IN_VAIN(function, ...)          \
    static int function(struct side *s) \
    {                                   \
        int flag;                       \
        return s->calls->__VA_ARGS__;   \
    }

IN_VAIN(test_in_vain, Test(&s->requests[0], &flag, IGNORE))
IN_VAIN(testall_in_vain, Testall(2, s->requests, &flag, no_statuses))
IN_VAIN(status_in_vain, Request_get_status(s->requests[0], &flag, IGNORE))
IN_VAIN(iprobe_in_vain, Iprobe(s->o->rank, UNUSED_TAG, s->o->comm, &flag, IGNORE))

static int testany_in_vain(struct side *s)
{
    int flag, which;
    return s->calls->Testany(2, s->requests, &which, &flag, IGNORE);
}

static int testsome_in_vain(struct side *s)
{
    int n, which[2];
    return s->calls->Testsome(2, s->requests, &n, which, no_statuses);
}

static int improbe_in_vain(struct side *s)
{
    MPI_Message message;
    int flag;
    return s->calls->Improbe(s->o->rank, UNUSED_TAG, s->o->comm, &flag, &message, IGNORE);
}

static int wait_for_nothing(struct side *s)
{
    MPI_Request request = MPI_REQUEST_NULL;
    return s->calls->Wait(&request, IGNORE);
}

static int waitall_for_nothing(struct side *s)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    return s->calls->Waitall(2, requests, no_statuses);
}

#define PAIR .ranks = 2
#define IDLE AROUND(post_in_vain, take_back)

const struct routine message_routines[] = {
    ROW("Send+Recv", send_receive, PAIR, .sized = true),
    ROW("Ssend+Recv", ssend, PAIR, .sized = true),
    ROW("Sendrecv", sendrecv, PAIR, .sized = true),
    ROW("Sendrecv_replace", sendrecv_replace, PAIR, .sized = true),
    ROW("Isend+Irecv+Waitall", with_waitall, PAIR, .sized = true),
    ROW("Irecv+Sendrecv+Rsend+Wait", rsend, PAIR),
    ROW("Send+Probe+Recv", probe, PAIR),
    ROW("Send+Iprobe+Recv", iprobe, PAIR),
    ROW("Send+Mprobe+Mrecv", mprobe, PAIR),
    ROW("Send+Improbe+Mrecv", improbe, PAIR),
    ROW("Irecv+Send+Wait to itself", to_self),
    ROW("Iprobe in vain", iprobe_in_vain),
    ROW("Improbe in vain", improbe_in_vain),
    {.name = NULL}};

const struct routine request_routines[] = {
    ROW("Isend+Irecv+Wait", with_wait, PAIR),
    ROW("Isend+Irecv+Waitany", with_waitany, PAIR),
    ROW("Isend+Irecv+Waitsome", with_waitsome, PAIR),
    ROW("Isend+Irecv+Test", with_test, PAIR),
    ROW("Isend+Irecv+Testall", with_testall, PAIR),
    ROW("Isend+Irecv+Testany", with_testany, PAIR),
    ROW("Isend+Irecv+Testsome", with_testsome, PAIR),
    ROW("Isend+Irecv+Request_get_status+Waitall", with_status, PAIR),
    ROW("Start+Waitall of persistent messages", start, AROUND(make_persistent, free_persistent),
        .ranks = 2),
    ROW("Startall+Waitall of persistent messages", startall,
        AROUND(make_persistent, free_persistent), .ranks = 2),
    ROW("Isend+Irecv+Request_free+Wait to itself", request_free),
    ROW("Irecv+Cancel+Wait", cancel),
    ROW("Test in vain", test_in_vain, IDLE),
    ROW("Testall in vain", testall_in_vain, IDLE),
    ROW("Testany in vain", testany_in_vain, IDLE),
    ROW("Testsome in vain", testsome_in_vain, IDLE),
    ROW("Request_get_status in vain", status_in_vain, IDLE),
    ROW("Wait for a null request", wait_for_nothing),
    ROW("Waitall for null requests", waitall_for_nothing),
    {.name = NULL}};

#else
const struct routine message_routines[] = {{.name = NULL}}, request_routines[] = {{.name = NULL}};
#endif
