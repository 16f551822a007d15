/* SPDX-License-Identifier: MIT */
/* What an operation needs only while it is under way: the execution of its schedule, working
 * memory, and what the transport wants to know. A request that has not begun, or is over, does
 * without: thousands of them may be outstanding, while few are under way at once. A persistent
 * operation keeps its own. All under the lock. */
#ifndef NBC_RUN_H
#define NBC_RUN_H

#include "below/next.h"
#include "op/types.h"

#include "exec.h"

/* What an operation keeps from being freed until it is over. */
struct nbc_handle_refs {
    struct nbc_datatype **types; /* by slot */
    int ntypes;
    struct nbc_operator *reducer; /* or NULL */
};

struct nbc_run {
    struct nbc_exec exec;
    struct nbc_sched *sched; /* one owner of it; NULL: moved on by poll */

    /* For what is no collective of ours (idup.c): moves it on instead of exec, true when it is
     * complete; *error is set then. Under the lock, which it may let go meanwhile. */
    bool (*poll)(struct nbc_run *run, int *error);

    bool lengthy; /* worth waking the progress thread, where there is one */

    MPI_Comm comm; /* the hidden one */
    int tag;
    int cursor;         /* of polls over many messages */
    int32_t trace_id;   /* where nbc_tracing: of the operation */
    int32_t last_peer;  /* where nbc_tracing: of the message that came last */
    nbc_kernel *kernel; /* instead of the operator, where there is one */
    struct nbc_handle_refs holdings;
    struct nbc_request *request; /* whose it is now */
    struct nbc_run *prev, *next; /* those under way (progress.c), or those of a plan, or the pool */
    void *memory;                /* behind this struct, aligned to 64 */
    size_t room;                 /* of it, in bytes */
};

/* A run set up for this schedule, of which it becomes one owner more; NULL when memory ran out. It
 * does not hold the holdings. */
struct nbc_run *nbc_run_new(struct nbc_sched *sched, const struct nbc_handle_refs *holdings);

/* A run without a schedule, with so many bytes of memory. */
struct nbc_run *nbc_run_plain(size_t size, bool (*poll)(struct nbc_run *run, int *error));

/* It is not under way. */
void nbc_run_free(struct nbc_run *run);

/* Frees those in the pool, at finalize. */
void nbc_run_cleanup(void);

#endif
