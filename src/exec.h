/* SPDX-License-Identifier: MIT */
/* Runs a schedule over a transport: a counter per operation of what it still waits for, successor
 * lists, and the handles of messages under way. No scans, no recursion, no allocation at start. */
#ifndef NBC_EXEC_H
#define NBC_EXEC_H

#include "sched.h"
#include "transport.h"

struct nbc_exec {
    const struct nbc_sched *sched;
    const struct nbc_transport *transport;
    void *self;                /* the transport's own state of this operation */
    uintptr_t base[NBC_NBUFS]; /* addresses of the buffers */
    int32_t *waits;            /* per operation: edges not yet satisfied */
    int32_t *ready;            /* stack of operations to be issued */
    int32_t *inflight;         /* operation of each handle */
    int *done;                 /* scratch of poll */
    nbc_handle *handles;
    int nready, ninflight;
    int64_t defer; /* copies and reductions of so many elements are left to polls; 0: none */
    int left;      /* operations not yet done; 0: complete */
    int error;     /* first error, or 0 */
};

/* Bytes of working memory that nbc_exec_init wants, aligned like malloc's. */
size_t nbc_exec_memory(const struct nbc_sched *sched);

/* Binds everything; nothing starts. memory has nbc_exec_memory bytes and outlives the run. `defer`
 * may be set afterwards, where another thread polls. */
void nbc_exec_init(struct nbc_exec *e, const struct nbc_sched *sched,
                   const struct nbc_transport *transport, void *self, void *memory);

/* Starts, for the first time or again after completion: posts all that waits for nothing.
 * Returns true when the run is complete. */
bool nbc_exec_start(struct nbc_exec *e);

/* Moves on what can be moved on, once. Returns true when the run is complete: then e->error is its
 * result. After an error nothing more is issued, what is under way is given up, and the run is
 * complete at once. */
bool nbc_exec_poll(struct nbc_exec *e);

/* After a failed run: whether this operation is a receive whose message may still arrive. Whoever
 * reuses the tag must first have received it. */
bool nbc_exec_owes(const struct nbc_exec *e, int32_t id);

#endif
