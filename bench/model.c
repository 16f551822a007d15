/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static const struct nbc_type layout_byte = {1, 1, 0, 1, true};
static const struct nbc_type layout_double = {8, 8, 0, 8, true};

/* Whether a side of the collective has counts and displacements. */
static bool has_counts(enum nbc_coll coll, bool send)
{
    switch (coll) {
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return true;
    case NBC_GATHERV:
    case NBC_ALLGATHERV:
    case NBC_NEIGHBOR_ALLGATHERV:
        return !send;
    case NBC_SCATTERV:
    case NBC_REDUCE_SCATTER:
        return send;
    default:
        return false;
    }
}

static void fill_side(const struct operands *o, bool send, struct nbc_side *side)
{
    side->type = send ? NBC_TYPE_SEND : NBC_TYPE_RECV;
    side->count = o->count;
    if (!has_counts(o->coll, send))
        return;
    side->counts = (struct nbc_ints){o->counts, sizeof *o->counts};
    if (o->coll == NBC_REDUCE_SCATTER)
        side->displs_implied = true;
    else
        side->displs = (struct nbc_ints){o->displs, sizeof *o->displs};
}

void model_shape(const struct operands *o, int rank, struct modelled *m)
{
    memset(m, 0, sizeof *m);
    m->types[NBC_TYPE_BYTE] = layout_byte;
    m->types[NBC_TYPE_SEND] = m->types[NBC_TYPE_RECV] = layout_double;
    m->sources[0] = m->destinations[0] = (rank + o->size - 1) % o->size;
    m->sources[1] = m->destinations[1] = (rank + 1) % o->size;
    m->neighbors = (struct nbc_neighbors){m->sources, m->destinations, 2, 2, true};
    m->shape = (struct nbc_shape){.coll = o->coll,
                                  .rank = rank,
                                  .size = o->size,
                                  .commutative = true,
                                  .local = o->local,
                                  .types = m->types,
                                  .ntypes = NBC_TYPE_FIRST_PEER,
                                  .neighbors = &m->neighbors};
    fill_side(o, true, &m->shape.send);
    fill_side(o, false, &m->shape.recv);
}

struct nbc_sched *model_schedule(const struct operands *o, int rank)
{
    struct modelled m;
    model_shape(o, rank, &m);
    const struct nbc_alg *alg = o->alg;
    if (alg && nbc_alg_applies(alg, &m.shape))
        m.shape.segment = o->segment;
    else /* it needs a node map, which only the library has: the one selected without a map */
        alg = nbc_select(&m.shape, NULL, &nbc_default_rules, &m.shape.segment);
    return nbc_build(alg->build, &m.shape);
}

/* --- all ranks' graphs at once ---------------------------------------------------------------- */

/* Start and end of each operation, in any unit, by relaxation until nothing changes. */
struct graph {
    struct nbc_sched **sched;
    double **start, **end;
    int size;
};

/* Finds the send that matches a receive: the k-th from one rank to another matches the k-th
 * receive. */
static int matching_send(const struct nbc_sched *from, int to, int k)
{
    for (int id = 0; id < from->nops; id++)
        if (from->ops[id].kind == NBC_OP_SEND && from->ops[id].peer == to && k-- == 0)
            return id;
    return -1;
}

/* Returns the match of a receive; NULL if there is none. */
static double *start_of_send(const struct graph *g, int rank, int id)
{
    const struct nbc_sched *s = g->sched[rank];
    int peer = s->ops[id].peer, k = 0;
    for (int i = 0; i < id; i++)
        k += s->ops[i].kind == NBC_OP_RECV && s->ops[i].peer == peer;
    int sent = matching_send(g->sched[peer], rank, k);
    return sent < 0 ? NULL : &g->start[peer][sent];
}

static void graph_free(struct graph *g)
{
    for (int r = 0; r < g->size; r++) {
        if (g->sched)
            nbc_sched_free(g->sched[r]);
        if (g->start)
            free(g->start[r]);
        if (g->end)
            free(g->end[r]);
    }
    free(g->sched);
    free(g->start);
    free(g->end);
}

static bool graph_make(struct graph *g, const struct operands *o)
{
    *g = (struct graph){.size = o->size};
    g->sched = calloc(g->size, sizeof *g->sched);
    g->start = calloc(g->size, sizeof *g->start);
    g->end = calloc(g->size, sizeof *g->end);
    bool ok = g->sched && g->start && g->end;
    for (int r = 0; ok && r < g->size; r++) {
        g->sched[r] = model_schedule(o, r);
        ok = g->sched[r] && (g->start[r] = calloc(g->sched[r]->nops + 1, sizeof(double))) &&
             (g->end[r] = calloc(g->sched[r]->nops + 1, sizeof(double)));
    }
    if (!ok)
        graph_free(g);
    return ok;
}

static bool raise_to(double *value, double least)
{
    bool less = *value < least;
    if (less)
        *value = least;
    return less;
}

/* --- rounds ----------------------------------------------------------------------------------- */

struct rounds {
    struct nbc_sched *sched;
    int *depth;
    int ndepths;
    char *temp;
    MPI_Comm comm;
    MPI_Request *requests;
};

/* The round of an operation is its start: one more than that of its predecessors. A message is sent
 * and received in the same round; otherwise two ranks could wait for later rounds of each other. */
static bool deepen(struct graph *g, int rank)
{
    const struct nbc_sched *s = g->sched[rank];
    bool changed = false;
    for (int id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        double *own = &g->start[rank][id], *sent = NULL;
        if (op->kind == NBC_OP_RECV)
            sent = start_of_send(g, rank, id);
        if (sent) {
            changed |= raise_to(own, *sent);
            changed |= raise_to(sent, *own);
        }
        for (int i = 0; i < op->nsucc_issue + op->nsucc_done; i++)
            changed |=
                raise_to(&g->start[rank][s->succ[op->succ + i]], *own + (i >= op->nsucc_issue));
    }
    return changed;
}

/* Returns false if there are no such rounds, since each would have to follow another. */
static bool find_rounds(struct graph *g)
{
    int turns = 2;
    for (int r = 0; r < g->size; r++)
        turns += g->sched[r]->nops;
    for (bool changed = true; changed; turns--) {
        if (turns == 0)
            return false;
        changed = false;
        for (int r = 0; r < g->size; r++)
            changed |= deepen(g, r);
    }
    return true;
}

/* Returns the rounds of this rank's operations; NULL if there are none, or memory ran out. */
static int *depths(const struct operands *o, int *ndepths)
{
    struct graph g;
    *ndepths = 0;
    if (!graph_make(&g, o))
        return NULL;
    int n = g.sched[o->rank]->nops;
    int *depth = find_rounds(&g) ? malloc((n + 1) * sizeof *depth) : NULL;
    for (int id = 0; depth && id < n; id++) {
        depth[id] = (int)g.start[o->rank][id];
        if (depth[id] + 1 > *ndepths)
            *ndepths = depth[id] + 1;
    }
    graph_free(&g);
    return depth;
}

struct rounds *rounds_new(const struct operands *o, MPI_Comm comm)
{
    struct rounds *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->comm = comm;
    r->sched = model_schedule(o, o->rank);
    if (r->sched) {
        r->depth = depths(o, &r->ndepths);
        r->temp = malloc(r->sched->temp_bytes + 1);
        r->requests = malloc((r->sched->nmsgs + 1) * sizeof *r->requests);
    }
    if (!r->sched || !r->depth || !r->temp || !r->requests) {
        rounds_free(r);
        return NULL;
    }
    return r;
}

void rounds_free(struct rounds *r)
{
    if (!r)
        return;
    nbc_sched_free(r->sched);
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

double wire_time(const struct wire *w, int64_t bytes)
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

static double arrival(const struct graph *g, const struct wire *w, int rank, int id)
{
    const double *sent = start_of_send(g, rank, id);
    return sent ? *sent + wire_time(w, (int64_t)bytes_of(nbc_op_a(&g->sched[rank]->ops[id]))) : 0;
}

static bool relax(struct graph *g, const struct wire *w, int rank)
{
    const struct nbc_sched *s = g->sched[rank];
    bool changed = false;
    for (int id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        double end = g->start[rank][id];
        if (op->kind == NBC_OP_RECV)
            raise_to(&end, arrival(g, w, rank, id));
        changed |= raise_to(&g->end[rank][id], end);
        for (int i = op->nsucc_issue; i < op->nsucc_issue + op->nsucc_done; i++)
            changed |= raise_to(&g->start[rank][s->succ[op->succ + i]], end);
    }
    return changed;
}

double critical_path(const struct operands *o, const struct wire *w)
{
    struct graph g;
    double longest = 0;
    if (!graph_make(&g, o))
        return 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int r = 0; r < g.size; r++)
            changed |= relax(&g, w, r);
    }
    for (int r = 0; r < g.size; r++)
        for (int id = 0; id < g.sched[r]->nops; id++)
            raise_to(&longest, g.end[r][id]);
    graph_free(&g);
    return longest;
}
