/* SPDX-License-Identifier: MIT */
#include "subcollective.h"

#include "select.h"

static struct nbc_ref moved(struct nbc_ref r, const struct nbc_subcollective *sub, int64_t temp)
{
    switch (r.buf) {
    case NBC_BUF_SEND:
        r.off += sub->send.off;
        r.buf = sub->send.buf;
        break;
    case NBC_BUF_RECV:
        r.off += sub->recv.off;
        r.buf = sub->recv.buf;
        break;
    default:
        r.off += temp;
    }
    return r;
}

static nbc_id emit_op(struct nbc_sched *s, const struct nbc_subcollective *sub,
                      const struct nbc_op *op, int64_t temp, nbc_id after)
{
    struct nbc_ref a = moved(nbc_op_a(op), sub, temp);
    switch (op->kind) {
    case NBC_OP_SEND:
        return nbc_send(s, a, sub->member(sub->group, op->peer), after);
    case NBC_OP_RECV:
        return nbc_recv(s, a, sub->member(sub->group, op->peer), sub->early ? NBC_NONE : after);
    case NBC_OP_COPY:
        return nbc_copy(s, a, moved(nbc_op_b(op), sub, temp), after);
    case NBC_OP_REDUCE:
        return nbc_reduce(s, a, moved(nbc_op_b(op), sub, temp), moved(nbc_op_c(op), sub, temp),
                          after);
    default:;
        nbc_id join = nbc_join_of(s, NULL, 0);
        nbc_after(s, join, after);
        return join;
    }
}

/* Copies the operations and edges of `from` into s. */
static nbc_id graft(struct nbc_sched *s, const struct nbc_subcollective *sub,
                    const struct nbc_sched *from, nbc_id after, nbc_id *ids, int *waits)
{
    int64_t temp = from->temp_bytes ? nbc_temp_bytes(s, from->temp_bytes).off : 0;
    int nlast = 0;
    for (int i = 0; i < from->nops; i++) /* mutants: <= for <: there is room for one more */
        waits[i] = 0;
    for (int i = 0; i < from->nops; i++) {
        const struct nbc_op *op = &from->ops[i];
        for (int k = 0; k < op->nsucc_done; k++)
            waits[from->succ[op->succ + op->nsucc_issue + k]]++;
    }
    for (int i = 0; i < from->nops; i++) /* mutants: <= for <: there is room for one more */
        ids[i] = emit_op(s, sub, &from->ops[i], temp, waits[i] ? NBC_NONE : after);
    nbc_emit_edges(s, from, ids, ids);
    for (int i = 0; i < from->nops; i++) /* mutants: <= for <: there is room for one more */
        if (from->ops[i].nsucc_done == 0)
            waits[nlast++] = ids[i];
    return nbc_join_of(s, waits, nlast);
}

/* Returns the shape of the call that the subcollective's ranks would make among themselves. */
static struct nbc_shape shape_of(const struct nbc_shape *shape, const struct nbc_subcollective *sub)
{
    struct nbc_shape own = {.coll = sub->coll,
                            .rank = sub->rank,
                            .size = sub->size,
                            .root = sub->root,
                            .in_place = sub->in_place,
                            .commutative = shape->commutative,
                            .order = shape->order,
                            .local = sub->local,
                            .sockets = !sub->local && shape->sockets,
                            .oversubscribed = sub->local && shape->oversubscribed,
                            .handshake = sub->local && shape->handshake,
                            .types = shape->types,
                            .ntypes = shape->ntypes,
                            .segment = shape->segment,
                            .eager = shape->eager};
    own.send = (struct nbc_side){.count = sub->send.count, .type = sub->send.type};
    own.recv = (struct nbc_side){.count = sub->recv.count, .type = sub->recv.type};
    if (sub->coll == NBC_REDUCE_SCATTER || sub->coll == NBC_SCATTERV) {
        own.send.counts = sub->counts;
        own.send.displs_implied = true;
    } else if (sub->counts.data) {
        own.recv.counts = sub->counts;
        own.recv.displs = sub->displs;
    }
    return own;
}

nbc_id nbc_emit_subcollective(struct nbc_sched *s, const struct nbc_shape *shape,
                              const struct nbc_subcollective *sub, nbc_id after)
{
    struct nbc_shape own = shape_of(shape, sub), all = own;
    int64_t segment;
    all.send.count *= sub->beside + 1;
    all.recv.count *= sub->beside + 1;
    const struct nbc_alg *alg = nbc_select(&all, sub->alg, &nbc_default_rules, &segment);
    if (own.segment == 0)
        own.segment = segment;
    struct nbc_sched *from = nbc_build(alg->build, &own);
    nbc_id last = after, *ids = from ? nbc_scratch(s, 2 * (size_t)from->nops, sizeof *ids) : NULL;
    if (!from)
        nbc_sched_fail(s);
    else if (ids && from->nops > 0)
        last = graft(s, sub, from, after, ids, ids + from->nops);
    nbc_sched_free(from);
    return last;
}
