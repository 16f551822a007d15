/* SPDX-License-Identifier: MIT */
/* Point-to-point calls in which a rank can block. While operations of nbcshim are pending, each is
 * replaced by its nonblocking form and a loop that progresses both (MPI-4.1 section 6.12: a blocked
 * rank takes part in all collectives that it has started).
 *
 * A receive polls MPI_Improbe for its message and then receives it. A posted receive would be no
 * faster, and MPI_Test would raise its errors: in MPICH 4.0.2 on the wrong communicator. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/looped.h"
#include "api/wait_test.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "below/export.h"
#include "engine/progress.h"
#include "op/types.h"

#include "coll.h"

NBC_ARCHIVE_MEMBER(p2p)

struct data {
    void *buf;
    int64_t count;
    MPI_Datatype type;
};

#define DATA(buf, count, type) ((struct data){(void *)(uintptr_t)(buf), count, type})

static bool find_type_layout(MPI_Datatype type, struct nbc_type *layout)
{
    nbc_lock();
    struct nbc_datatype *t;
    int error = nbc_datatype_find(type, &t);
    if (!error)
        *layout = t->layout;
    nbc_unlock();
    return !error;
}

/* Whether a message may be received there. If not, the MPI gets the arguments as they are, and
 * raises its error before it waits for a message or sends one. */
static bool is_valid(struct data d)
{
    struct nbc_type layout;
    if (d.count < 0 || !find_type_layout(d.type, &layout))
        return false;
    return d.buf || d.count == 0 || !nbc_is_relative(&layout);
}

static bool p2p_must_poll(void)
{
    return nbc_must_poll() && !nbc_inside;
}

/* --- probes -----------------------------------------------------------------------------------*/

static int p2p_probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    int spins = 0;
    while (nbc_must_poll()) {
        int flag = 0, error = NEXT(Iprobe)(source, tag, comm, &flag, status);
        if (error || flag)
            return error;
        nbc_progress_pause(&spins);
    }
    return NEXT(Probe)(source, tag, comm, status);
}

EXPORT(int, Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),
       (source, tag, comm, status))
{
    return p2p_must_poll() ? p2p_probe(source, tag, comm, status)
                           : NEXT(Probe)(source, tag, comm, status);
}

LOOPED(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
       (source, tag, comm, flag, status))

#ifdef HAVE_MPI_PARRIVED
LOOPED(Parrived, (MPI_Request request, int partition, int *flag), (request, partition, flag))
#endif

#ifdef HAVE_MPI_IMPROBE
LOOPED(Improbe,
       (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
       (source, tag, comm, flag, message, status))

static int p2p_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    int spins = 0;
    while (nbc_must_poll()) {
        int flag = 0, error = NEXT(Improbe)(source, tag, comm, &flag, message, status);
        if (error || flag)
            return error;
        nbc_progress_pause(&spins);
    }
    return NEXT(Mprobe)(source, tag, comm, message, status);
}

EXPORT(int, Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
       (source, tag, comm, message, status))
{
    return p2p_must_poll() ? p2p_mprobe(source, tag, comm, message, status)
                           : NEXT(Mprobe)(source, tag, comm, message, status);
}
#endif

/* --- receiving --------------------------------------------------------------------------------*/

static bool fits(const MPI_Status *message, struct data d)
{
    struct nbc_type layout;
#ifdef HAVE_MPI_GET_ELEMENTS_X
    MPI_Count bytes;
    NEXT(Get_elements_x)((MPI_Status *)message, MPI_BYTE, &bytes);
#else
    int bytes;
    NEXT(Get_count)((NBC_CONST MPI_Status *)message, MPI_BYTE, &bytes);
#endif
    return bytes >= 0 && find_type_layout(d.type, &layout) && bytes <= d.count * layout.size;
}

#ifdef HAVE_MPI_IMPROBE
static int p2p_post_matched(struct data d, MPI_Message *message, MPI_Request *request)
{
#ifdef HAVE_MPI_SEND_C
    if (d.count > INT_MAX)
        /* unreached: above 2 GiB */
        return NEXT(Imrecv_c)(d.buf, d.count, d.type, message, request);
#endif
    return NEXT(Imrecv)(d.buf, (int)d.count, d.type, message, request);
}

static int p2p_receive_matched(struct data d, MPI_Message *message, MPI_Status *status)
{
#ifdef HAVE_MPI_SEND_C
    if (d.count > INT_MAX)
        return NEXT(Mrecv_c)(d.buf, d.count, d.type, message, status); /* unreached: above 2 GiB */
#endif
    return NEXT(Mrecv)(d.buf, (int)d.count, d.type, message, status);
}

/* Receives a message that is too long. MPICH 4.0.2 would raise the error on MPI_COMM_WORLD. */
static int p2p_receive_truncated(struct data d, MPI_Message *message, MPI_Comm comm,
                                 MPI_Status *status)
{
    nbc_quiet_begin();
    int error = p2p_receive_matched(d, message, status);
    return nbc_quiet_end() ? nbc_raise(comm, error) : error;
}

static int p2p_probe_and_receive(struct data d, int source, int tag, MPI_Comm comm,
                                 MPI_Status *status)
{
    MPI_Message message;
    MPI_Status probed;
    MPI_Request request;
    int error = p2p_mprobe(source, tag, comm, &message, &probed);
    if (error)
        return error;
    if (!fits(&probed, d))
        return p2p_receive_truncated(d, &message, comm, status);
    error = p2p_post_matched(d, &message, &request);
    return error ? error : nbc_wait_other(&request, status);
}
#else
/* Another thread may receive the message between the probe and the receive, which then waits for
 * the next message. */
static int p2p_probe_and_receive(struct data d, int source, int tag, MPI_Comm comm,
                                 MPI_Status *status)
{
    MPI_Request request;
    MPI_Status probed;
    int error = p2p_probe(source, tag, comm, &probed);
    if (error)
        return error; /* unreached: the MPI fails */
    if (!fits(&probed, d))
        return NEXT(Recv)(d.buf, (int)d.count, d.type, probed.MPI_SOURCE, probed.MPI_TAG, comm,
                          status);
    error =
        NEXT(Irecv)(d.buf, (int)d.count, d.type, probed.MPI_SOURCE, probed.MPI_TAG, comm, &request);
    return error ? error : nbc_wait_other(&request, status);
}
#endif

static int p2p_receive(struct data d, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    if (source == MPI_PROC_NULL)
        return NEXT(Recv)(NULL, 0, MPI_BYTE, source, tag, comm, status);
    return p2p_probe_and_receive(d, source, tag, comm, status);
}

/* --- sending and receiving --------------------------------------------------------------------*/

static int p2p_post_send(struct data d, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
#ifdef HAVE_MPI_SEND_C
    if (d.count > INT_MAX)
        /* unreached: above 2 GiB */
        return NEXT(Isend_c)(d.buf, d.count, d.type, dest, tag, comm, request);
#endif
    return NEXT(Isend)(d.buf, (int)d.count, d.type, dest, tag, comm, request);
}

static int p2p_sendrecv(struct data out, int dest, int sendtag, struct data in, int source,
                        int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    int flag, error = NEXT(Iprobe)(source, recvtag, comm, &flag, MPI_STATUS_IGNORE);
    if (error)        /* the arguments are wrong: nothing may be sent */
        return error; /* unreached: the MPI fails */
    error = p2p_post_send(out, dest, sendtag, comm, &request);
    if (error)
        return error; /* unreached: the MPI fails */
    int received = p2p_receive(in, source, recvtag, comm, status);
    error = nbc_wait_other(&request, MPI_STATUS_IGNORE);
    return received ? received : error;
}

/* Describes the same data by an address other than MPI_BOTTOM. Sets *made if d->type is a new
 * datatype, which the caller frees. */
static int p2p_leave_bottom(struct data *d, bool *made)
{
    struct nbc_type layout;
    uintptr_t addr = (uintptr_t)d->buf;
    int n = (int)d->count;
    *made = false;
    if (addr || d->count == 0 || d->count > INT_MAX || !find_type_layout(d->type, &layout))
        return MPI_SUCCESS;
    int error = nbc_leave_bottom(&layout, &addr, &n, &d->type, made);
    *d = DATA(addr, n, d->type);
    return error;
}

/* Packs into a new buffer. Sets the buffer and the number of bytes of *copy. */
static int p2p_pack_into(struct data d, MPI_Comm comm, struct data *copy)
{
#ifdef HAVE_MPI_PACK_C
    MPI_Count size, position = 0;
    int error = NEXT(Pack_size_c)(d.count, d.type, comm, &size);
#else
    int size, position = 0;
    int error = NEXT(Pack_size)((int)d.count, d.type, comm, &size);
#endif
    if (error)
        return error; /* unreached: the MPI fails */
    copy->buf = malloc((size_t)size + 1);
    if (!copy->buf)
        return nbc_raise(comm, MPI_ERR_NO_MEM); /* unreached: no memory */
#ifdef HAVE_MPI_PACK_C
    error = NEXT(Pack_c)(d.buf, d.count, d.type, copy->buf, size, &position, comm);
#else
    error = NEXT(Pack)(d.buf, (int)d.count, d.type, copy->buf, size, &position, comm);
#endif
    copy->count = position;
    return error; /* unreached: the MPI fails */
}

/* Copies the data as MPI_PACKED, which matches any datatype. The caller frees the buffer. */
static int p2p_pack(struct data d, MPI_Comm comm, struct data *copy)
{
    bool made;
    *copy = DATA(NULL, 0, MPI_PACKED);
    int error = p2p_leave_bottom(&d, &made);
    error = error ? nbc_raise(comm, error) : p2p_pack_into(d, comm, copy);
    if (made)
        NEXT(Type_free)(&d.type);
    return error;
}

static int p2p_sendrecv_replace(struct data d, int dest, int sendtag, int source, int recvtag,
                                MPI_Comm comm, MPI_Status *status)
{
    struct data copy;
    int error = p2p_pack(d, comm, &copy);
    if (!error)
        error = p2p_sendrecv(copy, dest, sendtag, d, source, recvtag, comm, status);
    free(copy.buf);
    return error;
}

/* --- the calls --------------------------------------------------------------------------------*/

#define PARAMS(...) (__VA_ARGS__)
#define ARGS(...) (__VA_ARGS__)

#define SEND(name, immediate)                                                                    \
    EXPORT(                                                                                      \
        int, name,                                                                               \
        (NBC_CONST void *buf, C count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm), \
        (buf, count, datatype, dest, tag, comm))                                                 \
    {                                                                                            \
        MPI_Request request;                                                                     \
        if (!p2p_must_poll())                                                                    \
            return NEXT(name)(buf, count, datatype, dest, tag, comm);                            \
        int error = NEXT(immediate)(buf, count, datatype, dest, tag, comm, &request);            \
        return error ? error : nbc_wait_other(&request, MPI_STATUS_IGNORE);                      \
    }

#define CALL(name, params, args, when, instead)                         \
    EXPORT(int, name, params, args)                                     \
    {                                                                   \
        return p2p_must_poll() && (when) ? (instead) : NEXT(name) args; \
    }

#define NAME(name) name
#define C int
#include "api/p2p.def"
#undef NAME
#undef C

#ifdef HAVE_MPI_SEND_C
#define NAME(name) name##_c
#define C MPI_Count
#include "api/p2p.def"
#endif

/* --- buffers of MPI_Bsend ---------------------------------------------------------------------*/

/* The nonblocking form has one more parameter, a request that is complete when the receivers have
 * the buffered messages. */
#define FLUSH(name, params, args, immediate, its_args)                      \
    static int immediate##_done params                                      \
    {                                                                       \
        MPI_Request request;                                                \
        int error = NEXT(immediate) its_args;                               \
        return error ? error : nbc_wait_other(&request, MPI_STATUS_IGNORE); \
    }                                                                       \
    EXPORT(int, name, params, args)                                         \
    {                                                                       \
        return p2p_must_poll() ? immediate##_done args : NEXT(name) args;   \
    }

/* A buffer is detached when it has been flushed: then it does not wait. */
#define DETACH(name, params, args, flush)                    \
    EXPORT(int, name, params, args)                          \
    {                                                        \
        int error = p2p_must_poll() ? (flush) : MPI_SUCCESS; \
        return error ? error : NEXT(name) args;              \
    }

#ifdef HAVE_MPI_BUFFER_IFLUSH
FLUSH(Buffer_flush, (void), (), Buffer_iflush, (&request))
DETACH(Buffer_detach, (void *buffer, int *size), (buffer, size), Buffer_iflush_done())
#ifdef HAVE_MPI_BUFFER_DETACH_C
DETACH(Buffer_detach_c, (void *buffer, MPI_Count *size), (buffer, size), Buffer_iflush_done())
#endif
#endif
#ifdef HAVE_MPI_COMM_IFLUSH_BUFFER
FLUSH(Comm_flush_buffer, (MPI_Comm comm), (comm), Comm_iflush_buffer, (comm, &request))
DETACH(Comm_detach_buffer, (MPI_Comm comm, void *buffer, int *size), (comm, buffer, size),
       Comm_iflush_buffer_done(comm))
DETACH(Comm_detach_buffer_c, (MPI_Comm comm, void *buffer, MPI_Count *size), (comm, buffer, size),
       Comm_iflush_buffer_done(comm))
#endif
#ifdef HAVE_MPI_SESSION_IFLUSH_BUFFER
FLUSH(Session_flush_buffer, (MPI_Session session), (session), Session_iflush_buffer,
      (session, &request))
DETACH(Session_detach_buffer, (MPI_Session session, void *buffer, int *size),
       (session, buffer, size), Session_iflush_buffer_done(session))
DETACH(Session_detach_buffer_c, (MPI_Session session, void *buffer, MPI_Count *size),
       (session, buffer, size), Session_iflush_buffer_done(session))
#endif
