/* SPDX-License-Identifier: MIT */
/* The executor: runs a schedule over a transport. It keeps a counter of unsatisfied edges for each
 * operation, a list of ready operations, and the handles of the messages in flight. Operations that
 * could be issued at the same time are issued in the order in which the builder emitted them. It
 * never searches the schedule for ready operations, does not recurse, and allocates no memory.
 *
 * An error does not end a run: other ranks wait for the messages of this one, and send theirs. So
 * all operations are executed, and the run returns the first error; but the messages that are sent
 * after it are empty, and reductions are left out. The transport reports a message that is not as
 * long as its receiver expects as an error, so a run without error has right results.
 *
 * All functions are local and never block. A run needs a lock of its caller: one thread at a time
 * may start or poll it. */
#ifndef NBC_EXEC_H
#define NBC_EXEC_H

#include "sched.h"
#include "transport.h"

struct nbc_exec {
    const struct nbc_sched *sched;
    const struct nbc_transport *transport;
    void *self;                /* the transport's state of this operation */
    uintptr_t base[NBC_NBUFS]; /* addresses of the buffers */
    int32_t *waits;            /* per operation: edges not yet satisfied; all, when it may start */
    int32_t *ready;            /* operations that may be issued, in order of emission */
    int32_t *inflight;         /* the operation of each handle */
    int *done;                 /* output array of the transport's poll */
    nbc_handle *handles;
    int nready, ninflight; /* both 0: the run is complete */
    int64_t defer; /* start leaves copies and reductions of this many elements to polls; 0: none */
    unsigned defer_kinds; /* start leaves operations of kind k to polls if bit 1 << k is set */
    int error;            /* first error, or 0 */
    bool lost;            /* a message could be neither sent nor received, not even an empty one */
    bool abandoned;       /* a message may still use memory of the run, which is not used again */
};

/* Returns the bytes of working memory that nbc_exec_init needs, aligned like malloc's. */
size_t nbc_exec_memory(const struct nbc_sched *sched);

/* Prepares *e; starts nothing. `memory` has nbc_exec_memory bytes, belongs to the caller and must
 * outlive the run, as the schedule must. The caller then sets e->base, and may set e->defer and
 * e->defer_kinds where another thread polls. */
void nbc_exec_init(struct nbc_exec *e, const struct nbc_sched *sched,
                   const struct nbc_transport *transport, void *self, void *memory);

/* Starts the run, for the first time or again after it completed: issues the operations that wait
 * for no other. Returns true if the run is complete; then e->error is its result. */
bool nbc_exec_start(struct nbc_exec *e);

/* Progresses the run: polls the transport once and issues the operations that have become ready.
 * Returns true if the run is complete; then e->error is its result, 0 or the transport's first
 * error code. If e->lost, messages may be missing on other ranks, or arrive here that nothing
 * receives. If e->abandoned, e->lost is set too. */
bool nbc_exec_poll(struct nbc_exec *e);

/* Ends a run that is not complete, with an error: drops what is in flight. Sets e->lost and, if a
 * message may still use its memory, e->abandoned. */
void nbc_exec_give_up(struct nbc_exec *e, int error);

/* nbc_exec_poll, but if nothing can be issued, it waits in the transport until a message is
 * complete. A transport that cannot wait is polled. */
bool nbc_exec_wait(struct nbc_exec *e);

#endif
