/* SPDX-License-Identifier: MIT */
/* Messages of runs that the MPI below moves: posting one, asking whether it is over, and giving it
 * up; and packing, for those that are copied. Ranks are those of the run's communicator. Under the
 * lock. Local. */
#ifndef NBC_MESSAGE_H
#define NBC_MESSAGE_H

#include <limits.h>
#include <string.h>

#include "base/errors.h"
#include "below/hook.h"
#include "below/next.h"
#include "below/quirks.h"
#include "op/rings.h"
#include "op/run.h"
#include "op/types.h"

#include "exec_over.h"

/* The least count that needs a datatype of its own is above this one. */
enum { NBC_CHUNK = 1 << 30 };

/* While this is set, polls look at each message instead of progressing them: below/hook.h. */
extern NBC_HIDDEN bool nbc_inside_mpi_loop;

/* This thread is in the progress loop of the MPI, which progresses its own operations: to ask about
 * one there would enter its list of them again. */
extern NBC_PER_THREAD bool nbc_is_below;

/* A receive of this process from itself that nobody sends: it stands for a pending request of
 * nbcshim. MPI_REQUEST_NULL if the MPI cannot make it. */
MPI_Request nbc_dummy_get(void);
void nbc_dummy_cleanup(void);

/* Whether the MPI is polling. */
static inline bool nbc_is_inside_mpi(void)
{
    return nbc_inside_mpi_loop || nbc_is_below;
}

/* Lets the MPI progress its messages, none of which is nbcshim's. */
void nbc_poll_the_mpi(void);

/* Does so in one of some calls: a rank whose messages are in shared memory when it asks for them
 * would never enter the MPI, which others may need. At the end of each operation. */
static inline void nbc_poll_now_and_then(void)
{
    enum { CALLS_APART = 16 };
    extern NBC_HIDDEN unsigned nbc_operations_ended;
    if (++nbc_operations_ended % CALLS_APART == 0 && nbc_shared_npeers > 0 && !nbc_is_inside_mpi())
        nbc_poll_the_mpi();
}

/* An nbc_handle holds an MPI_Request, which may be narrower, in its first bytes. */
static inline void nbc_message_store(nbc_handle *h, MPI_Request request)
{
    *h = 0;
    memcpy(h, &request, sizeof request);
}

static inline MPI_Request nbc_message_load(const nbc_handle *h)
{
    MPI_Request request;
    memcpy(&request, h, sizeof request);
    return request;
}

/* A message with a count above INT_MAX. */
__attribute__((cold)) int nbc_message_post_large(bool sends, void *addr, int64_t count,
                                                 MPI_Datatype type, int peer, int tag,
                                                 MPI_Comm comm, MPI_Request *request);

NBC_STEP int message_post(bool sends, void *addr, int n, MPI_Datatype type, int peer, int tag,
                          MPI_Comm comm, MPI_Request *request)
{
    return sends ? NEXT(Isend)(addr, n, type, peer, tag, comm, request)
                 : NEXT(Irecv)(addr, n, type, peer, tag, comm, request);
}

NBC_STEP int nbc_message_post(bool sends, void *addr, int64_t count, MPI_Datatype type, int peer,
                              int tag, MPI_Comm comm, MPI_Request *request)
{
    return __builtin_expect(count <= INT_MAX, 1)
               ? message_post(sends, addr, (int)count, type, peer, tag, comm, request)
               : nbc_message_post_large(sends, addr, count, type, peer, tag, comm, request);
}

/* Frees the request if it is complete, or has failed. pending: it was not complete a moment ago, so
 * that the MPI has to poll in any case; not inside its loop, where it must not poll again. */
static inline int nbc_message_end(MPI_Request *request, MPI_Status *status, bool pending,
                                  bool *over)
{
    int flag = 0, error;
    if (!NBC_GET_STATUS_BEFORE_TEST || nbc_quirks_tests_each || pending)
        error = NEXT(Test)(request, &flag, status);
    else {
        error = NEXT(Request_get_status)(*request, &flag, MPI_STATUS_IGNORE);
        if (flag || error)
            error = NEXT(Wait)(request, status);
    }
    *over = flag || error;
    return error;
}

/* Whether the request should be asked for its completion: always outside of the progress loop of
 * the MPI; inside, or if to ask enters the loop, only if the answer is yes. */
static inline bool nbc_message_is_worth_a_test(MPI_Request request)
{
    return __builtin_expect(!nbc_inside_mpi_loop && !nbc_quirks_tests_each, 1) ||
           nbc_hook_is_complete(request);
}

NBC_STEP int nbc_message_send(const struct nbc_run *r, uintptr_t addr, int64_t count, int type,
                              int rank, nbc_handle *h)
{
    const struct nbc_datatype *t = r->handles.types[type];
    MPI_Request request;
    int error =
        nbc_message_post(true, (void *)addr, count, t->sent, rank, r->tag, r->comm, &request);
    if (error)
        return error;
    if (request == nbc_quirks_complete_send)
        return NBC_SENT;
    bool over = false;
    if (!NBC_BLOCKS_TO_WAIT && count * t->layout.size <= NBC_EAGER &&
        nbc_message_is_worth_a_test(request))
        error = nbc_message_end(&request, MPI_STATUS_IGNORE, false, &over);
    if (over)
        return NBC_SENT - error;
    nbc_message_store(h, request);
    return 0;
}

/* The device ch3 of the MPICH family returns the error of a message that is too long from
 * MPI_Irecv, if that was there before. It has then been received. */
NBC_STEP int nbc_message_receive(const struct nbc_run *r, uintptr_t addr, int64_t count, int type,
                                 int rank, nbc_handle *h)
{
    MPI_Request request;
    int error = nbc_message_post(false, (void *)addr, count, r->handles.types[type]->handle, rank,
                                 r->tag, r->comm, &request);
    if (error)
        return nbc_error_is_of(error, MPI_ERR_TRUNCATE) ? NBC_SENT - error : error;
    nbc_message_store(h, request);
    return 0;
}

/* A message has been received without an error of the MPI. One that is shorter than its receive is
 * an error: the ranks disagree, or its sender has failed. */
static inline int nbc_message_compare(const MPI_Status *status, int64_t bytes)
{
    int64_t length = nbc_quirks_length(status);
    return __builtin_expect(length == bytes || length < 0, 1) ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}

/* Gives up a message, whose handle is invalid then. Returns whether it is over: whether its memory
 * is not used any more. cancelled: NULL, or whether nothing has been received. */
bool nbc_message_give_up(nbc_handle h, bool sends, bool *cancelled);

/* Packs elements at an address into bytes, or unpacks them. Returns an MPI error code. */
int nbc_message_pack(const struct nbc_run *run, bool packs, uintptr_t at, int64_t count, int type,
                     void *bytes);

#endif
