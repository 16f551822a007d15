/* SPDX-License-Identifier: MIT */
/* Point-to-point calls in which a rank can block: poll.h. MPI_Bsend and MPI_Mrecv are missing,
 * since they do not block: the first is local, and the message of the second has been matched. */
#include <stdlib.h>

#include "base/errors.h"
#include "below/quirks.h"
#include "hookless/poll.h"

NBC_ARCHIVE_MEMBER(p2p)

int nbc_wait_other(MPI_Request *request, MPI_Status *status)
{
    NBC_POLL_WHILE(nbc_must_poll(), NEXT(Test)(request, &flag, status),
                   NEXT(Wait)(request, status));
}

/* Completes a call whose nonblocking form has been called. MPICH raises the errors of completion on
 * MPI_COMM_WORLD; they are errors of this call. */
static int p2p_finish(MPI_Request *request, MPI_Comm comm, MPI_Status *status)
{
    nbc_suppress_errors_begin();
    int error = nbc_wait_other(request, status);
    return nbc_suppress_errors_end() && error ? nbc_raise(comm, error) : error;
}

/* --- sending and receiving --------------------------------------------------------------------*/

#if defined HAVE_MPI_SEND_C && defined HAVE_MPI_PACK_C
typedef MPI_Count number;
#define LARGE(name) NEXT(name##_c)
#else
typedef int number;
#define LARGE(name) NEXT(name)
#endif

struct side {
    void *buf;
    number count;
    MPI_Datatype type;
    int peer, tag;
};

#define SIDE(buf, count, type, peer, tag) \
    ((struct side){(void *)(uintptr_t)(buf), count, type, peer, tag})

/* MPICH 4.0.2 gives a receive from nobody the wrong status, unless it blocks. */
static int p2p_finish_receive(MPI_Request *request, const struct side *in, MPI_Comm comm,
                              MPI_Status *status)
{
    if (in->peer != MPI_PROC_NULL)
        return p2p_finish(request, comm, status);
    NEXT(Request_free)(request);
    return NEXT(Recv)(NULL, 0, MPI_BYTE, in->peer, in->tag, comm, status);
}

typedef int posts(NBC_CONST void *buf, number count, MPI_Datatype type, int dest, int tag,
                  MPI_Comm comm, MPI_Request *request);

static int p2p_send(posts *post, struct side out, MPI_Comm comm)
{
    MPI_Request r;
    int error = post(out.buf, out.count, out.type, out.peer, out.tag, comm, &r);
    return error ? error : p2p_finish(&r, comm, MPI_STATUS_IGNORE);
}

static int p2p_receive(struct side in, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request r;
    int error = LARGE(Irecv)(in.buf, in.count, in.type, in.peer, in.tag, comm, &r);
    return error ? error : p2p_finish_receive(&r, &in, comm, status);
}

/* A receive that is posted before a send. */
struct paired {
    MPI_Request *receive;
    bool sent;
};

/* If there is no send the receive is given up, also where an error handler ends the call by an
 * exception (C++, -fexceptions): it would take a later message. */
static void paired_end(const struct paired *p)
{
    if (p->sent)
        return;
    NEXT(Cancel)(p->receive);
    nbc_suppress_errors_begin();
    nbc_wait_other(p->receive, MPI_STATUS_IGNORE);
    nbc_suppress_errors_end();
}

static int p2p_send_beside(MPI_Request *receive, struct side out, MPI_Comm comm, MPI_Request *send)
{
    __attribute__((cleanup(paired_end))) struct paired p = {.receive = receive};
    int error = LARGE(Isend)(out.buf, out.count, out.type, out.peer, out.tag, comm, send);
    p.sent = !error;
    return error;
}

static int p2p_sendrecv(struct side out, struct side in, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request r[2];
    int error = LARGE(Irecv)(in.buf, in.count, in.type, in.peer, in.tag, comm, &r[0]);
    if (!error)
        error = p2p_send_beside(&r[0], out, comm, &r[1]);
    if (error)
        return error;
    error = p2p_finish_receive(&r[0], &in, comm, status);
    int failed = p2p_finish(&r[1], comm, MPI_STATUS_IGNORE);
    return error ? error : failed;
}

/* Packs data into a new buffer, which the caller frees: MPI_PACKED matches any datatype. By a
 * message of this rank to itself, since MPICH's MPI_Pack refuses MPI_BOTTOM. Under the lock, since
 * those of two threads would be alike. */
static int p2p_pack(struct side d, MPI_Comm comm, struct side *copy)
{
    number room;
    MPI_Status status;
    *copy = SIDE(NULL, 0, MPI_PACKED, d.peer, d.tag);
    int error = LARGE(Pack_size)(d.count, d.type, comm, &room);
    if (error)
        return error;
    copy->buf = malloc((size_t)room + 1);
    if (!copy->buf)
        return nbc_raise(comm, MPI_ERR_NO_MEM); /* unreached: no memory */
    nbc_lock();
    error = LARGE(Sendrecv)(d.buf, d.count, d.type, 0, 0, copy->buf, room, MPI_PACKED, 0, 0,
                            nbc_self_comm, &status);
    nbc_unlock();
    copy->count = error ? 0 : (number)nbc_quirks_length(&status);
    return error ? nbc_raise(comm, error) : MPI_SUCCESS;
}

static int p2p_replace(struct side out, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct side copy, in = SIDE(out.buf, out.count, out.type, source, tag);
    int error = p2p_pack(out, comm, &copy);
    if (!error)
        error = p2p_sendrecv(copy, in, comm, status);
    free(copy.buf);
    return error;
}

/* What takes the place of each call, with the names of its row's parameters. */
#define INSTEAD_Send p2p_send(LARGE(Isend), SIDE(buf, count, type, dest, tag), comm)
#define INSTEAD_Ssend p2p_send(LARGE(Issend), SIDE(buf, count, type, dest, tag), comm)
#define INSTEAD_Rsend p2p_send(LARGE(Irsend), SIDE(buf, count, type, dest, tag), comm)
#define INSTEAD_Recv p2p_receive(SIDE(buf, count, type, source, tag), comm, status)
#define INSTEAD_Sendrecv                                                                          \
    p2p_sendrecv(SIDE(out, n, outtype, dest, outtag), SIDE(in, nin, intype, source, intag), comm, \
                 status)
#define INSTEAD_Sendrecv_replace \
    p2p_replace(SIDE(buf, count, type, dest, outtag), source, intag, comm, status)

#define CALL(name, params, args, instead) \
    EXPORT(int, name, params, args)       \
    {                                     \
        if (!nbc_call_must_poll(0))       \
            return NEXT(name) args;       \
        int error = instead;              \
        NBC_STAY;                         \
        return error;                     \
    }

#define C int
#define MESSAGE(name, params, args) CALL(name, params, args, INSTEAD_##name)
#include "below/messages.def"
#undef C
#undef MESSAGE

#ifdef HAVE_MPI_SEND_C
#define C MPI_Count
#define MESSAGE(name, params, args) CALL(name##_c, params, args, INSTEAD_##name)
#include "below/messages.def"
#endif

/* --- probes ------------------------------------------------------------------------------------*/

EXPORT(int, Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
       (source, tag, comm, status))
{
    NBC_POLL_WHILE(nbc_call_must_poll(NBC_HOOK_MISSES_PROBES),
                   NEXT(Iprobe)(source, tag, comm, &flag, status),
                   NEXT(Probe)(source, tag, comm, status));
}

POLLED(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
       (source, tag, comm, flag, status))

NBC_IF(HAVE_MPI_PARRIVED, POLLED(Parrived, (MPI_Request request, int partition, int *flag),
                                 (request, partition, flag)))

#ifdef HAVE_MPI_IMPROBE
EXPORT(int, Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
       (source, tag, comm, message, status))
{
    NBC_POLL_WHILE(nbc_call_must_poll(NBC_HOOK_MISSES_PROBES),
                   NEXT(Improbe)(source, tag, comm, &flag, message, status),
                   NEXT(Mprobe)(source, tag, comm, message, status));
}

POLLED(Improbe,
       (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
       (source, tag, comm, flag, message, status))
#endif

/* --- buffers of MPI_Bsend ---------------------------------------------------------------------*/

/* The nonblocking form of a flush gives a request that is complete when the receivers have the
 * messages. then: after it, a detach does not wait. */
#define FLUSHED(name, params, args, flush, then)                            \
    EXPORT(int, name, params, args)                                         \
    {                                                                       \
        MPI_Request request;                                                \
        if (!nbc_call_must_poll(0))                                         \
            return NEXT(name) args;                                         \
        int error = flush;                                                  \
        if (!error)                                                         \
            error = p2p_finish(&request, MPI_COMM_NULL, MPI_STATUS_IGNORE); \
        return error ? error : (then);                                      \
    }
#define DETACHED(name, params, args, flush) FLUSHED(name, params, args, flush, NEXT(name) args)

#ifdef HAVE_MPI_BUFFER_IFLUSH
#define FLUSH NEXT(Buffer_iflush)(&request)
FLUSHED(Buffer_flush, (void), (), FLUSH, MPI_SUCCESS)
DETACHED(Buffer_detach, (void *buffer, int *size), (buffer, size), FLUSH)
NBC_IF(HAVE_MPI_BUFFER_DETACH_C,
       DETACHED(Buffer_detach_c, (void *buffer, MPI_Count *size), (buffer, size), FLUSH))
#undef FLUSH
#endif
#ifdef HAVE_MPI_COMM_IFLUSH_BUFFER
#define FLUSH NEXT(Comm_iflush_buffer)(comm, &request)
FLUSHED(Comm_flush_buffer, (MPI_Comm comm), (comm), FLUSH, MPI_SUCCESS)
DETACHED(Comm_detach_buffer, (MPI_Comm comm, void *buffer, int *size), (comm, buffer, size), FLUSH)
DETACHED(Comm_detach_buffer_c, (MPI_Comm comm, void *buffer, MPI_Count *size), (comm, buffer, size),
         FLUSH)
#undef FLUSH
#endif
#ifdef HAVE_MPI_SESSION_IFLUSH_BUFFER
#define FLUSH NEXT(Session_iflush_buffer)(session, &request)
FLUSHED(Session_flush_buffer, (MPI_Session session), (session), FLUSH, MPI_SUCCESS)
DETACHED(Session_detach_buffer, (MPI_Session session, void *buffer, int *size),
         (session, buffer, size), FLUSH)
DETACHED(Session_detach_buffer_c, (MPI_Session session, void *buffer, MPI_Count *size),
         (session, buffer, size), FLUSH)
#endif
