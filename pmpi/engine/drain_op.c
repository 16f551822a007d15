/* SPDX-License-Identifier: MIT */
#include "engine/drain_op.h"

#include "below/next.h"
#include "op/run.h"

#include "coll.h"
#include "exec.h"
#include "sched.h"

/* The schedule of the draining operation: a receive for each message that the failed operation has
 * not received. Messages between two ranks match in order, so the receives are posted in the order
 * of the failed schedule's operations. */
static struct nbc_sched *drain_schedule(const struct nbc_request *failed)
{
    const struct nbc_run *run = failed->run;
    const struct nbc_sched *old = run->sched;
    const struct nbc_type byte = {1, 1, 0, 1, true};
    const struct nbc_shape shape = {.coll = failed->coll, .types = &byte, .ntypes = 1};
    struct nbc_sched *s = nbc_sched_new(&shape, old->nmsgs);
    for (int32_t id = 0; s && id < old->nops; id++) {
        if (!nbc_exec_owes(&run->exec, id))
            continue;
        const struct nbc_op *op = &old->ops[id];
        int64_t bytes = op->count * run->handles.types[op->type]->layout.size;
        nbc_recv(s, nbc_temp_bytes(s, bytes), op->peer, NBC_NONE);
    }
    return nbc_sched_finish(s);
}

struct nbc_request *nbc_drain_op_new(const struct nbc_request *failed, int *error)
{
    struct nbc_sched *sched = drain_schedule(failed);
    struct nbc_request *r;
    *error = sched ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (!sched)
        return NULL;
    if (sched->nops == 0) {
        nbc_sched_free(sched);
        return NULL;
    }
    const struct nbc_handle_refs bytes = {failed->run->handles.types, 1, NULL};
    const struct nbc_operation op = {
        .coll = failed->coll, .run = nbc_run_new(sched, &bytes), .drains = true};
    nbc_sched_release(sched);
    *error = op.run ? nbc_request_new(failed->context, &op, &r) : MPI_ERR_NO_MEM;
    if (*error)
        return NULL;
    r->persistent = failed->persistent;
    r->blocking = failed->blocking;
    r->tag = failed->tag;
    r->seq = failed->seq;
    return r;
}
