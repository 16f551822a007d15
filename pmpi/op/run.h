/* SPDX-License-Identifier: MIT */
/* A run: the state that an operation needs only while it is active, that is, the execution of its
 * schedule, working memory, and the data of the transport. Requests that have not started or are
 * complete need no run: thousands of requests may be outstanding, but few are active at once. A
 * persistent operation keeps its run. Under the lock. Local. */
#ifndef NBC_RUN_H
#define NBC_RUN_H

#include <string.h>

#include "base/settings.h"
#include "below/device.h"
#include "below/next.h"
#include "base/lock.h"
#include "op/mpi_transport.h"
#include "op/rings.h"
#include "op/types.h"

#include "exec.h"

/* The datatypes and the operator that an operation uses, and that may not be freed before it is
 * complete. */
struct nbc_handle_refs {
    struct nbc_datatype **types; /* by slot */
    int ntypes;
    struct nbc_operator *reducer; /* or NULL */
    bool predefined;              /* all of them: never freed, so nobody holds them */
};

/* Take and drop a reference of an operation to all of them. */
void nbc_handles_hold_own(const struct nbc_handle_refs *h);
void nbc_handles_release_own(const struct nbc_handle_refs *h);
static inline void nbc_handles_hold(const struct nbc_handle_refs *h)
{
    if (!h->predefined)
        nbc_handles_hold_own(h);
}

static inline void nbc_handles_release(const struct nbc_handle_refs *h)
{
    if (!h->predefined)
        nbc_handles_release_own(h);
}

struct nbc_run {
    struct nbc_exec exec;
    struct nbc_sched *sched; /* the run holds a reference; NULL: progressed by poll */

    /* For operations without a schedule (idup.c): progresses the operation. Returns true when it is
     * complete, and then sets *error. Under the lock, which the function may release
     * temporarily. */
    bool (*poll)(struct nbc_run *run, int *error);

    bool lengthy; /* worth waking the progress thread, if it runs */

    int64_t bytes;    /* result of nbc_shape_bytes, if the operation has no plan */
    MPI_Comm comm;    /* the hidden communicator */
    const int *ranks; /* ranks there of the peers; NULL: the same */
    int tag;
    bool shares;        /* messages may go through shared memory: shared.h */
    int cursor;         /* where the next poll over many messages begins */
    bool pending;       /* the last poll of few messages found none complete */
    int32_t trace_id;   /* if nbc_tracing: of the operation */
    uint64_t trace_key; /* if nbc_tracing: of the communicator, the same on all ranks */
    int32_t last_peer;  /* if nbc_tracing: source of the last message that arrived */
    nbc_kernel *kernel; /* runs instead of the operator, or NULL */
    struct nbc_handle_refs handles;
    void *input;                 /* memory for a copy of the send buffer, */
    size_t input_bytes;          /* of so many bytes; 0: the program's buffer is used */
    struct nbc_request *request; /* the request that uses the run */
    struct nbc_run *prev, *next; /* in the active list (progress.c), or in a plan */
    enum nbc_device_use device;  /* if it started where nbc_device_may_be */
    struct nbc_stage *stage;     /* if a buffer has been in a device's memory; or NULL */
    size_t size;                 /* bytes behind this struct */
    void *memory;                /* there, aligned to 64 */
};

/* The rank of a peer in the hidden communicator. */
static inline int nbc_run_peer(const struct nbc_run *run, int peer)
{
    return run->ranks ? run->ranks[peer] : peer;
}

/* Creates a run of a schedule and takes a reference to the schedule. It copies the list of handles
 * but does not hold them. input: the result of nbc_bound_input. NULL without memory. */
struct nbc_run *nbc_run_new(struct nbc_sched *sched, const struct nbc_handle_refs *handles,
                            size_t input);

/* Creates a run without a schedule, with this many bytes of memory. NULL without memory. */
struct nbc_run *nbc_run_plain(size_t size, bool (*poll)(struct nbc_run *run, int *error));

/* The send buffer with which a run starts that outlives the call: the program's, or the run's copy
 * of it. */
static inline const void *nbc_run_input(struct nbc_run *run, const void *send)
{
    return run->input_bytes ? memcpy(run->input, send, run->input_bytes) : send;
}

/* The kinds of operations that move data in the call that posts them, if the progress thread polls:
 * a start leaves them to it. */
unsigned nbc_run_put_off(const struct nbc_run *run);

static inline void nbc_run_set(struct nbc_run *run, MPI_Comm comm, const int *ranks, int tag,
                               const void *send, const void *recv)
{
    nbc_assert(!run->exec.abandoned);
    run->comm = comm;
    run->ranks = ranks;
    run->tag = tag;
    run->shares = comm == nbc_shared_comm;
    run->cursor = 0;
    run->pending = false;
    run->exec.base[NBC_BUF_SEND] = (uintptr_t)send;
    run->exec.base[NBC_BUF_RECV] = (uintptr_t)recv;
    run->exec.defer_kinds = __builtin_expect(run->lengthy, 0) ? nbc_run_put_off(run) : 0;
}

/* Starts a run with these buffers; its messages have the tag `tag` on the hidden communicator
 * `comm`. Returns as nbc_exec_start does. */
static inline bool nbc_run_start(struct nbc_run *run, MPI_Comm comm, const int *ranks, int tag,
                                 const void *send, const void *recv)
{
    nbc_run_set(run, comm, ranks, tag, send, recv);
    return nbc_transport_start(&run->exec);
}

/* The same, and its nbc_run_input if it `outlives` the call, where nbc_device_may_be: buffers may
 * be in the memory of a device, of which `use` is made. */
__attribute__((cold)) bool nbc_run_start_with_devices(struct nbc_run *run, MPI_Comm comm,
                                                      const int *ranks, int tag, const void *send,
                                                      const void *recv, bool outlives,
                                                      enum nbc_device_use use);

/* Frees a run that is not active. The memory of one that is abandoned (exec.h) stays. */
void nbc_run_free(struct nbc_run *run);

#endif
