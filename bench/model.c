/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "select.h"

struct tool_call model_call(const struct operands *o)
{
    return (struct tool_call){.coll = o->coll,
                              .size = o->size,
                              .bytes = o->count * (int64_t)sizeof(double),
                              .per_node = o->local ? 0 : 1};
}

/* Sets the segment size of the call, too. */
static const struct nbc_alg *algorithm_of(const struct operands *o, struct tool_call *call)
{
    struct tool_rank r;
    const struct nbc_alg *alg = o->alg;
    if (!tool_rank_make(&r, call, 0))
        return NULL;
    if (alg && nbc_alg_applies(alg, &r.shape))
        call->segment = o->segment;
    else /* it needs a node map, which only the library has: the one selected without a map */
        alg = nbc_select(&r.shape, NULL, &nbc_default_rules, &call->segment);
    tool_rank_free(&r);
    return alg;
}

/* --- all ranks' graphs at once ---------------------------------------------------------------- */

struct graph {
    struct tool_call call;
    struct tool_rank *ranks;
    struct picture picture;
    double *start, *end; /* of each operation of the picture, in any unit */
};

static void graph_free(struct graph *g)
{
    picture_free(&g->picture);
    tool_ranks_free(g->ranks, &g->call);
    free(g->start);
    free(g->end);
}

static bool graph_make(struct graph *g, const struct operands *o)
{
    *g = (struct graph){.call = model_call(o)};
    const struct nbc_alg *alg = algorithm_of(o, &g->call);
    g->ranks = alg ? tool_ranks_make(&g->call, alg) : NULL;
    if (g->ranks && !picture_make(&g->picture, &g->call, g->ranks)) {
        g->start = calloc(g->picture.nops + 1, sizeof *g->start);
        g->end = calloc(g->picture.nops + 1, sizeof *g->end);
    }
    if (g->start && g->end)
        return true;
    graph_free(g);
    return false;
}

static bool raise_to(double *value, double least)
{
    bool less = *value < least;
    if (less)
        *value = least;
    return less;
}

static const struct nbc_op *op_at(const struct graph *g, int i)
{
    int rank = g->picture.rank[i];
    return &g->ranks[rank].sched->ops[i - g->picture.first[rank]];
}

/* Raises the start of those successors of an operation which wait until it is done, and, by
 * `issued`, of those which it issues. */
static bool raise_successors(struct graph *g, int i, double done, double issued)
{
    int rank = g->picture.rank[i];
    const struct nbc_op *op = op_at(g, i);
    const int32_t *succ = g->ranks[rank].sched->succ + op->succ;
    bool changed = false;
    for (int k = 0; k < op->nsucc_issue + op->nsucc_done; k++)
        changed |= raise_to(&g->start[g->picture.first[rank] + succ[k]],
                            k < op->nsucc_issue ? issued : done);
    return changed;
}

/* --- rounds ----------------------------------------------------------------------------------- */

struct rounds {
    struct graph graph;
    const struct nbc_sched *sched; /* of this rank */
    int *depth;
    int ndepths;
    char *temp;
    MPI_Comm comm;
    MPI_Request *requests;
};

/* The round of an operation is its start: one more than that of its predecessors. A message is sent
 * and received in the same round; otherwise two ranks could wait for later rounds of each other. */
static bool deepen(struct graph *g, int i)
{
    double *own = &g->start[i];
    bool changed = false;
    if (g->picture.meets[i] >= 0) {
        double *sent = &g->start[g->picture.meets[i]];
        changed |= raise_to(own, *sent);
        changed |= raise_to(sent, *own);
    }
    return raise_successors(g, i, *own + 1, *own) || changed;
}

/* Returns false if there are no such rounds, since each would have to follow another. */
static bool find_rounds(struct graph *g)
{
    int turns = 2 + g->picture.nops;
    for (bool changed = true; changed; turns--) {
        if (turns == 0)
            return false;
        changed = false;
        for (int i = 0; i < g->picture.nops; i++)
            changed |= deepen(g, i);
    }
    return true;
}

/* Sets the rounds of this rank's operations. Returns false if there are none. */
static bool set_depths(struct rounds *r, int first)
{
    if (!find_rounds(&r->graph))
        return false;
    for (int id = 0; id < r->sched->nops; id++) {
        r->depth[id] = (int)r->graph.start[first + id];
        if (r->depth[id] + 1 > r->ndepths)
            r->ndepths = r->depth[id] + 1;
    }
    return true;
}

struct rounds *rounds_new(const struct operands *o, MPI_Comm comm)
{
    struct rounds *r = calloc(1, sizeof *r);
    if (!r || !graph_make(&r->graph, o)) {
        free(r);
        return NULL;
    }
    r->comm = comm;
    r->sched = r->graph.ranks[o->rank].sched;
    r->depth = malloc((r->sched->nops + 1) * sizeof *r->depth);
    r->temp = malloc(r->sched->temp_bytes + 1);
    r->requests = malloc((r->sched->nmsgs + 1) * sizeof *r->requests);
    if (r->depth && r->temp && r->requests && set_depths(r, r->graph.picture.first[o->rank]))
        return r;
    rounds_free(r);
    return NULL;
}

void rounds_free(struct rounds *r)
{
    if (!r)
        return;
    graph_free(&r->graph);
    free(r->depth);
    free(r->temp);
    free(r->requests);
    free(r);
}

static char *place(const struct rounds *r, const struct operands *o, struct nbc_ref ref)
{
    char *base[NBC_NBUFS] = {(char *)o->send, (char *)o->recv, r->temp};
    return base[ref.buf] + ref.off;
}

static size_t bytes_of(struct nbc_ref ref)
{
    return (size_t)ref.count * (ref.type == NBC_TYPE_BYTE ? 1 : sizeof(double));
}

static void reduce(const struct rounds *r, const struct operands *o, const struct nbc_op *op)
{
    char *dst = place(r, o, nbc_op_a(op)), *left = place(r, o, nbc_op_b(op)),
         *right = place(r, o, nbc_op_c(op));
    char *other = dst == left ? right : left;
    if (dst != left && dst != right)
        memcpy(dst, right, bytes_of(nbc_op_a(op)));
    MPI_Reduce_local(other, dst, (int)op->count, MPI_DOUBLE, MPI_SUM);
}

/* Posts or executes an operation. Returns the number of requests that it made. */
static int perform(struct rounds *r, const struct operands *o, const struct nbc_op *op, int n)
{
    MPI_Datatype type = op->type == NBC_TYPE_BYTE ? MPI_BYTE : MPI_DOUBLE;
    char *data = place(r, o, nbc_op_a(op));
    switch (op->kind) {
    case NBC_OP_SEND:
        native.Isend(data, (int)op->count, type, op->peer, 0, r->comm, &r->requests[n]);
        return 1;
    case NBC_OP_RECV:
        native.Irecv(data, (int)op->count, type, op->peer, 0, r->comm, &r->requests[n]);
        return 1;
    case NBC_OP_COPY:
        memcpy(data, place(r, o, nbc_op_b(op)), bytes_of(nbc_op_a(op)));
        return 0;
    case NBC_OP_REDUCE:
        reduce(r, o, op);
        return 0;
    default:
        return 0;
    }
}

void rounds_run(struct rounds *r, const struct operands *o)
{
    for (int depth = 0; depth < r->ndepths; depth++) {
        int n = 0, flag = 0;
        for (int id = 0; id < r->sched->nops; id++)
            if (r->depth[id] == depth)
                n += perform(r, o, &r->sched->ops[id], n);
        while (n && !flag)
            native.Testall(n, r->requests, &flag, no_statuses);
    }
}

/* --- the floor -------------------------------------------------------------------------------- */

static double wire_time(const struct wire *w, int64_t bytes)
{
    int i = 0;
    while (i < w->n && w->point[i].bytes < bytes)
        i++;
    if (i == 0)
        return w->n ? w->point[0].seconds : 0;
    if (i == w->n)
        return w->point[i - 1].seconds * (double)bytes / (double)w->point[i - 1].bytes;
    double from = (double)w->point[i - 1].bytes, to = (double)w->point[i].bytes;
    double share = ((double)bytes - from) / (to - from);
    return w->point[i - 1].seconds + share * (w->point[i].seconds - w->point[i - 1].seconds);
}

static bool relax(struct graph *g, const struct wire *w, int i)
{
    const struct nbc_op *op = op_at(g, i);
    int sent = g->picture.meets[i];
    double end = g->start[i];
    if (sent >= 0)
        raise_to(&end, g->start[sent] + wire_time(w, (int64_t)bytes_of(nbc_op_a(op))));
    bool changed = raise_to(&g->end[i], end);
    return raise_successors(g, i, end, 0) || changed;
}

double critical_path(const struct operands *o, const struct wire *w)
{
    struct graph g;
    double longest = 0;
    if (!graph_make(&g, o))
        return 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < g.picture.nops; i++)
            changed |= relax(&g, w, i);
    }
    for (int i = 0; i < g.picture.nops; i++)
        raise_to(&longest, g.end[i]);
    graph_free(&g);
    return longest;
}
