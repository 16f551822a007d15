/* SPDX-License-Identifier: MIT */
#include "sched.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "staged.h"

enum {
    TEMP_ALIGN = 64,
    SMALL = 32 /* fewer items than this do not justify an allocation */
};

struct edge {
    nbc_id pre, op;
    bool issue; /* satisfied when pre is posted */
};

/* Memory of the builder. */
struct scratch {
    struct scratch *next;
    max_align_t memory[];
};

/* A schedule under construction. */
struct nbc_unfinished {
    struct nbc_sched sched;
    const struct nbc_shape *shape;
    struct nbc_op *ops;
    struct edge *edges;
    int nedges, edges_room, ops_room;
    struct scratch *scratch;
    bool out_of_memory;
    struct nbc_op few_ops[SMALL / 4];
    struct edge few_edges[SMALL / 2];
};

struct nbc_sched *nbc_sched_new(const struct nbc_shape *shape)
{
    struct nbc_unfinished *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    b->sched = (struct nbc_sched){.ops = b->few_ops,
                                  .segment = shape->segment,
                                  .local = shape->local,
                                  .sockets = shape->sockets,
                                  .build = b,
                                  .refs = 1};
    b->shape = shape;
    b->ops = b->few_ops;
    b->edges = b->few_edges;
    b->nedges = 0;
    b->ops_room = SMALL / 4;
    b->edges_room = SMALL / 2;
    b->scratch = NULL;
    b->out_of_memory = false;
    return &b->sched;
}

/* Makes room in an array of n elements, which is `few` at first. */
static bool make_room(struct nbc_unfinished *b, int n, void **array, void *few, int *room,
                      size_t element)
{
    if (b->out_of_memory || n < *room)
        return !b->out_of_memory;
    size_t size = (size_t)n * element;
    void *more = realloc(*array == few ? NULL : *array, 2 * size);
    b->out_of_memory = !more;
    if (!more)
        return false;
    *array = *array == few ? memcpy(more, few, size) : more;
    *room *= 2;
    return true;
}

static void add_edge(struct nbc_sched *s, nbc_id pre, nbc_id op, bool issue)
{
    struct nbc_unfinished *b = s->build;
    if (make_room(b, b->nedges, (void **)&b->edges, b->few_edges, &b->edges_room, sizeof *b->edges))
        b->edges[b->nedges++] = (struct edge){pre, op, issue};
}

static nbc_id sched_emit(struct nbc_sched *s, struct nbc_op op, nbc_id after)
{
    struct nbc_unfinished *b = s->build;
    if (!make_room(b, s->nops, (void **)&b->ops, b->few_ops, &b->ops_room, sizeof *b->ops))
        return NBC_NONE;
    s->ops = b->ops;
    nbc_id id = s->nops++;
    s->ops[id] = op;
    if (after != NBC_NONE)
        add_edge(s, after, id, false);
    return id;
}

static struct nbc_op op_on(enum nbc_op_kind kind, struct nbc_ref a)
{
    return (struct nbc_op){.kind = (uint8_t)kind,
                           .off = a.off,
                           .count = a.count,
                           .type = a.type,
                           .buf = (uint8_t)a.buf};
}

static nbc_id message(struct nbc_sched *s, enum nbc_op_kind kind, struct nbc_ref data, int peer,
                      nbc_id after)
{
    struct nbc_op op = op_on(kind, data);
    op.peer = peer;
    s->nmsgs++;
    return sched_emit(s, op, after);
}

nbc_id nbc_send(struct nbc_sched *s, struct nbc_ref data, int peer, nbc_id after)
{
    return message(s, NBC_OP_SEND, data, peer, after);
}

nbc_id nbc_recv(struct nbc_sched *s, struct nbc_ref data, int peer, nbc_id after)
{
    return message(s, NBC_OP_RECV, data, peer, after);
}

nbc_id nbc_copy(struct nbc_sched *s, struct nbc_ref dst, struct nbc_ref src, nbc_id after)
{
    /* In a call in place both sides are the same: there is nothing to copy. Data without room for
     * it is an error, which the copy finds. */
    const struct nbc_shape *shape = s->build->shape;
    if (nbc_same_place(dst, src) ||
        (nbc_ref_bytes(shape, dst) == 0 && nbc_ref_bytes(shape, src) == 0))
        return after;
    struct nbc_op op = op_on(NBC_OP_COPY, dst);
    op.b_off = src.off;
    op.b_count = src.count;
    op.b_type = src.type;
    op.b_buf = (uint8_t)src.buf & 7;
    return sched_emit(s, op, after);
}

nbc_id nbc_reduce(struct nbc_sched *s, struct nbc_ref dst, struct nbc_ref left,
                  struct nbc_ref right, nbc_id after)
{
    struct nbc_op op = op_on(NBC_OP_REDUCE, dst);
    op.b_off = left.off;
    op.b_buf = (uint8_t)left.buf & 7;
    op.c_off = right.off;
    op.c_buf = (uint8_t)right.buf & 7;
    op.uneven = ((left.count ^ dst.count) | (right.count ^ dst.count)) != 0;
    return sched_emit(s, op, after);
}

nbc_id nbc_join(struct nbc_sched *s, nbc_id x, nbc_id y)
{
    if (x == y || y == NBC_NONE)
        return x;
    if (x == NBC_NONE)
        return y;
    nbc_id id = sched_emit(s, (struct nbc_op){.kind = NBC_OP_JOIN}, x);
    nbc_after(s, id, y);
    return id;
}

nbc_id nbc_join_of(struct nbc_sched *s, const nbc_id *ids, int n)
{
    if (n == 1)
        return ids[0];
    nbc_id id = sched_emit(s, (struct nbc_op){.kind = NBC_OP_JOIN}, NBC_NONE);
    nbc_after_all(s, id, ids, n);
    return id;
}

nbc_id nbc_emit_again(struct nbc_sched *s, const struct nbc_op *op)
{
    struct nbc_op copy = *op;
    copy.npre = copy.succ = copy.nsucc_done = copy.nsucc_issue = 0;
    s->nmsgs += op->kind == NBC_OP_SEND || op->kind == NBC_OP_RECV;
    return sched_emit(s, copy, NBC_NONE);
}

nbc_id nbc_emit_staged(struct nbc_sched *s, enum nbc_op_kind kind, struct nbc_ref data,
                       struct nbc_ref from)
{
    struct nbc_op op = op_on(kind, data);
    op.b_off = from.off;
    op.b_buf = (uint8_t)from.buf & 7;
    s->nmsgs += kind != NBC_OP_RELEASE;
    return sched_emit(s, op, NBC_NONE);
}

void nbc_sched_fail(struct nbc_sched *s)
{
    s->build->out_of_memory = true;
}

void *nbc_scratch(struct nbc_sched *s, size_t n, size_t size)
{
    struct nbc_unfinished *b = s->build;
    struct scratch *scratch = malloc(sizeof *scratch + n * size);
    if (!scratch) {
        nbc_sched_fail(s);
        return NULL;
    }
    scratch->next = b->scratch;
    b->scratch = scratch;
    return scratch->memory;
}

void nbc_after(struct nbc_sched *s, nbc_id op, nbc_id pre)
{
    if (pre != NBC_NONE && op != NBC_NONE && pre != op)
        add_edge(s, pre, op, false);
}

void nbc_emit_edges(struct nbc_sched *s, const struct nbc_sched *from, const nbc_id *first,
                    const nbc_id *last)
{
    for (nbc_id id = 0; id < from->nops; id++) {
        const struct nbc_op *op = &from->ops[id];
        for (int i = 0; i < op->nsucc_done; i++)
            nbc_after(s, first[from->succ[op->succ + op->nsucc_issue + i]], last[id]);
    }
}

void nbc_after_all(struct nbc_sched *s, nbc_id op, const nbc_id *pre, int n)
{
    for (int i = 0; i < n; i++)
        nbc_after(s, op, pre[i]);
}

void nbc_after_since(struct nbc_sched *s, nbc_id op, nbc_id first)
{
    for (nbc_id pre = first; pre < op; pre++) /* mutants: <= for <: nbc_after ignores that */
        nbc_after(s, op, pre);
}

static int64_t take_temp(struct nbc_sched *s, int64_t bytes)
{
    int64_t off = s->temp_bytes;
    s->temp_bytes += (bytes + TEMP_ALIGN - 1) / TEMP_ALIGN * TEMP_ALIGN;
    return off;
}

struct nbc_ref nbc_temp_bytes(struct nbc_sched *s, int64_t n)
{
    return (struct nbc_ref){
        .off = take_temp(s, n), .count = n, .type = NBC_TYPE_BYTE, .buf = NBC_BUF_TEMP};
}

struct nbc_ref nbc_temp_like(struct nbc_sched *s, struct nbc_ref like)
{
    int64_t low, high;
    like.off = 0;
    like.buf = NBC_BUF_TEMP;
    nbc_ref_span(s->build->shape, like, &low, &high);
    low -= low & (TEMP_ALIGN - 1); /* keeps the alignment of the members of elements */
    like.off = take_temp(s, high - low) - low;
    return like;
}

/* The last message emitted to, or from, each peer. A hash table with open addressing; the key is
 * peer and direction. */
struct last {
    int32_t key; /* peer * 2 + direction, + 1 so that 0 is free */
    nbc_id op;
};

static struct last *last_of(struct last *table, uint32_t mask, int32_t key)
{
    uint32_t i = (uint32_t)key * 2654435761u & mask;
    while (table[i].key && table[i].key != key)
        i = (i + 1) & mask; /* mutants: - for +: another place in the table */
    return &table[i];
}

/* Adds issue edges. Messages between two ranks match in the order in which they are posted, so they
 * must be posted in the order of emission, whatever completes first. */
static bool order_messages(struct nbc_sched *s)
{
    struct last few[SMALL] = {{0}}, *table = few;
    uint32_t room = SMALL;
    while (room < 2 * (uint32_t)s->nmsgs) /* mutants: <= for <: a table larger than it need be */
        room *= 2;
    if (room > SMALL && !(table = calloc(room, sizeof *table))) /* mutants: >= for >: more memory */
        return false;
    for (nbc_id id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        if (op->kind != NBC_OP_SEND && op->kind != NBC_OP_RECV)
            continue;
        /* mutants: != for ==: another place in the table */
        int32_t key = op->peer * 2 + (op->kind == NBC_OP_RECV) + 1;
        struct last *l = last_of(table, room - 1, key);
        if (l->key)
            add_edge(s, l->op, id, true);
        *l = (struct last){key, id};
    }
    if (table != few)
        free(table);
    return !s->build->out_of_memory;
}

/* Makes the successor lists from the edges, by a counting sort. The issue edges of an operation
 * come first. */
static void link_edges(struct nbc_sched *s, const struct nbc_unfinished *b)
{
    for (int i = 0; i < b->nedges; i++) {
        struct edge e = b->edges[i];
        s->ops[e.op].npre++;
        if (e.issue)
            s->ops[e.pre].nsucc_issue++;
        else
            s->ops[e.pre].nsucc_done++;
    }
    int32_t place = 0;
    for (nbc_id id = 0; id < s->nops; id++) {
        s->ops[id].succ = place;
        place += s->ops[id].nsucc_issue + s->ops[id].nsucc_done;
    }
    /* succ advances while issue edges, then done edges are filled in, and is reset at the end. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->nedges; i++)
            if (b->edges[i].issue == (pass == 0))
                s->succ[s->ops[b->edges[i].pre].succ++] = b->edges[i].op;
    for (nbc_id id = 0; id < s->nops; id++)
        s->ops[id].succ -= s->ops[id].nsucc_issue + s->ops[id].nsucc_done;
}

/* Makes the schedule in memory of just the size that it needs, since schedules are cached: behind
 * the struct are the operations, then the successor lists. NULL without memory. */
static struct nbc_sched *move_out(const struct nbc_unfinished *b)
{
    const size_t ops = (size_t)b->sched.nops * sizeof *b->ops;
    struct nbc_sched *s = malloc(sizeof *s + ops + (size_t)b->nedges * sizeof *s->succ);
    if (!s)
        return NULL;
    *s = b->sched;
    s->build = NULL;
    s->nsucc = b->nedges;
    s->ops = memcpy(s + 1, b->ops, ops);
    s->succ = (int32_t *)(s->ops + s->nops);
    link_edges(s, b);
    return s;
}

static void unfinished_free(struct nbc_unfinished *b)
{
    for (struct scratch *scratch; (scratch = b->scratch);) {
        b->scratch = scratch->next;
        free(scratch);
    }
    if (b->ops != b->few_ops)
        free(b->ops);
    if (b->edges != b->few_edges)
        free(b->edges);
    free(b);
}

struct nbc_sched *nbc_sched_finish(struct nbc_sched *s)
{
    if (!s)
        return NULL;
    struct nbc_unfinished *b = s->build;
    struct nbc_sched *finished = !b->out_of_memory && order_messages(s) ? move_out(b) : NULL;
    unfinished_free(b);
    return finished;
}

struct nbc_sched *nbc_build(nbc_builder *emit, const struct nbc_shape *shape)
{
    struct nbc_sched *s = nbc_sched_new(shape);
    if (s)
        emit(s, shape);
    return nbc_sched_finish(s);
}

void nbc_sched_free(struct nbc_sched *s)
{
    if (!s)
        return;
    if (s->build) {
        unfinished_free(s->build);
        return;
    }
    nbc_staged_free(s->staged);
    free(s);
}

void nbc_sched_release(struct nbc_sched *s)
{
    if (s && --s->refs == 0)
        nbc_sched_free(s);
}
