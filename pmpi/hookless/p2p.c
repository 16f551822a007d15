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
    (&(struct side){(void *)(uintptr_t)(buf), count, type, peer, tag})

typedef int posts(NBC_CONST void *buf, number count, MPI_Datatype type, int dest, int tag,
                  MPI_Comm comm, MPI_Request *request);

/* A receive, and a send that is posted after it. */
struct exchange {
    MPI_Request receive, send;
    bool lacks_send; /* the receive is posted */
};

/* If there is no send the receive is given up, also where an error handler ends the call by an
 * exception (C++, -fexceptions): it would take a later message. */
static void exchange_end(struct exchange *x)
{
    if (!x->lacks_send)
        return;
    NEXT(Cancel)(&x->receive);
    nbc_suppress_errors_begin();
    nbc_wait_other(&x->receive, MPI_STATUS_IGNORE);
    nbc_suppress_errors_end();
}

/* Sends, receives or does both: `out` or `in` may be NULL. */
static int p2p_exchange(posts *post, const struct side *out, const struct side *in, MPI_Comm comm,
                        MPI_Status *status)
{
    __attribute__((cleanup(exchange_end))) struct exchange x = {.lacks_send = false};
    int error = MPI_SUCCESS, sent = MPI_SUCCESS;
    if (in)
        error = LARGE(Irecv)(in->buf, in->count, in->type, in->peer, in->tag, comm, &x.receive);
    x.lacks_send = in && out && !error;
    if (out && !error)
        error = post(out->buf, out->count, out->type, out->peer, out->tag, comm, &x.send);
    if (error)
        return error;
    x.lacks_send = false;
    if (in && in->peer != MPI_PROC_NULL) {
        error = p2p_finish(&x.receive, comm, status);
    } else if (in) {
        /* MPICH 4.0.2 gives a receive from nobody the wrong status, unless it blocks. */
        NEXT(Request_free)(&x.receive);
        error = NEXT(Recv)(NULL, 0, MPI_BYTE, in->peer, in->tag, comm, status);
    }
    if (out)
        sent = p2p_finish(&x.send, comm, MPI_STATUS_IGNORE);
    return error ? error : sent;
}

/* Packs data into a new buffer, which the caller frees: MPI_PACKED matches any datatype. By a
 * message of this rank to itself, since MPICH's MPI_Pack refuses MPI_BOTTOM. Under the lock, since
 * those of two threads would be alike. */
static int p2p_pack(const struct side *d, MPI_Comm comm, struct side *copy)
{
    number room;
    MPI_Status status;
    *copy = *SIDE(NULL, 0, MPI_PACKED, d->peer, d->tag);
    int error = LARGE(Pack_size)(d->count, d->type, comm, &room);
    if (error)
        return error;
    copy->buf = malloc((size_t)room + 1);
    if (!copy->buf)
        return nbc_raise(comm, MPI_ERR_NO_MEM); /* unreached: no memory */
    nbc_lock();
    error = LARGE(Sendrecv)(d->buf, d->count, d->type, 0, 0, copy->buf, room, MPI_PACKED, 0, 0,
                            nbc_self_comm, &status);
    nbc_unlock();
    copy->count = error ? 0 : (number)nbc_quirks_length(&status);
    return error ? nbc_raise(comm, error) : MPI_SUCCESS;
}

static int p2p_replace(const struct side *out, int source, int tag, MPI_Comm comm,
                       MPI_Status *status)
{
    struct side copy;
    int error = p2p_pack(out, comm, &copy);
    if (!error)
        error = p2p_exchange(LARGE(Isend), &copy,
                             SIDE(out->buf, out->count, out->type, source, tag), comm, status);
    free(copy.buf);
    return error;
}

/* What takes the place of each call, with the names of its row's parameters. */
#define SEND_BY(post) \
    p2p_exchange(LARGE(post), SIDE(buf, count, type, dest, tag), NULL, comm, MPI_STATUS_IGNORE)
#define INSTEAD_Send SEND_BY(Isend)
#define INSTEAD_Ssend SEND_BY(Issend)
#define INSTEAD_Rsend SEND_BY(Irsend)
#define INSTEAD_Recv p2p_exchange(NULL, NULL, SIDE(buf, count, type, source, tag), comm, status)
#define INSTEAD_Sendrecv                                            \
    p2p_exchange(LARGE(Isend), SIDE(out, n, outtype, dest, outtag), \
                 SIDE(in, nin, intype, source, intag), comm, status)
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
FLUSHED(Buffer_flush, (void), (), NEXT(Buffer_iflush)(&request), MPI_SUCCESS)
DETACHED(Buffer_detach, (void *buffer, int *size), (buffer, size), NEXT(Buffer_iflush)(&request))
NBC_IF(HAVE_MPI_BUFFER_DETACH_C, DETACHED(Buffer_detach_c, (void *buffer, MPI_Count *size),
                                          (buffer, size), NEXT(Buffer_iflush)(&request)))
#endif

#define BUFFERS_OF(Kind, of)                                                                      \
    FLUSHED(Kind##_flush_buffer, (MPI_##Kind of), (of), NEXT(Kind##_iflush_buffer)(of, &request), \
            MPI_SUCCESS)                                                                          \
    DETACHED(Kind##_detach_buffer, (MPI_##Kind of, void *buffer, int *size), (of, buffer, size),  \
             NEXT(Kind##_iflush_buffer)(of, &request))                                            \
    DETACHED(Kind##_detach_buffer_c, (MPI_##Kind of, void *buffer, MPI_Count *size),              \
             (of, buffer, size), NEXT(Kind##_iflush_buffer)(of, &request))

NBC_IF(HAVE_MPI_COMM_IFLUSH_BUFFER, BUFFERS_OF(Comm, comm))
NBC_IF(HAVE_MPI_SESSION_IFLUSH_BUFFER, BUFFERS_OF(Session, session))
