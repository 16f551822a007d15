/* SPDX-License-Identifier: MIT */
#include "staged.h"

#include <stdlib.h>
#include <string.h>

/* The use of a staged buffer by an operation. */
struct use {
    struct nbc_ref ref;
    struct nbc_span span;
    nbc_id op;
    bool writes;
};

/* A sorted list of spans that neither overlap nor touch. */
struct set {
    struct nbc_span *list;
    int n, room;
};

struct stage {
    const struct nbc_shape *shape; /* its types */
    const struct nbc_sched *from;
    struct nbc_sched *to;
    unsigned buffers;
    int64_t piece;
    struct use *uses;
    int nuses;
    struct set in[2], out[2];
    int nfetches;
    nbc_id *first, *last; /* what an operation has become */
};

/* --- sets of bytes --------------------------------------------------------------------------- */

static bool set_add(struct set *s, struct nbc_span add)
{
    int first = 0, last;
    while (first < s->n && s->list[first].high < add.low)
        first++;
    for (last = first; last < s->n && s->list[last].low <= add.high; last++) {
        add.low = s->list[last].low < add.low ? s->list[last].low : add.low;
        add.high = s->list[last].high > add.high ? s->list[last].high : add.high;
    }
    if (s->n + 1 > s->room) {
        int room = s->room ? 2 * s->room : 8;
        struct nbc_span *more = realloc(s->list, (size_t)room * sizeof *more);
        if (!more)
            return false;
        s->list = more;
        s->room = room;
    }
    memmove(&s->list[first + 1], &s->list[last], (size_t)(s->n - last) * sizeof *s->list);
    s->n += first + 1 - last;
    s->list[first] = add;
    return true;
}

static bool set_covers(const struct set *s, struct nbc_span span)
{
    for (int i = 0; i < s->n; i++)
        if (s->list[i].low <= span.low && span.high <= s->list[i].high)
            return true;
    return false;
}

static bool overlap(struct nbc_span x, struct nbc_span y)
{
    return x.low < y.high && y.low < x.high;
}

/* --- what the operations use ----------------------------------------------------------------- */

static struct nbc_span span_of(const struct nbc_shape *shape, struct nbc_ref ref)
{
    struct nbc_span span;
    nbc_ref_span(shape, ref, &span.low, &span.high);
    return span;
}

/* The references of an operation, first those that it reads. Returns their number. */
static int refs_of(const struct nbc_op *op, struct nbc_ref refs[3], int *nread)
{
    int n = 0;
    if (op->kind == NBC_OP_COPY || op->kind == NBC_OP_REDUCE)
        refs[n++] = nbc_op_b(op);
    if (op->kind == NBC_OP_REDUCE)
        refs[n++] = nbc_op_c(op);
    *nread = n + (op->kind == NBC_OP_SEND);
    if (op->kind != NBC_OP_JOIN)
        refs[n++] = nbc_op_a(op);
    return n;
}

/* Lists the uses of some buffers, at most three of each operation. Returns their number. */
static int find_uses(const struct nbc_sched *s, const struct nbc_shape *shape, unsigned buffers,
                     struct use *uses)
{
    int nuses = 0;
    for (nbc_id id = 0; id < s->nops; id++) {
        struct nbc_ref refs[3];
        int nread, n = refs_of(&s->ops[id], refs, &nread);
        for (int i = 0; i < n; i++) {
            struct nbc_span span = span_of(shape, refs[i]);
            if (buffers >> refs[i].buf & 1 && span.low < span.high)
                uses[nuses++] = (struct use){refs[i], span, id, i >= nread};
        }
    }
    return nuses;
}

static bool is_packed(const struct stage *s, struct nbc_ref ref)
{
    return s->shape->types[ref.type].packed;
}

/* What operations read is input, unless one emitted before has written all of it. */
static void find_data(struct stage *s)
{
    bool ok = true;
    for (int i = 0; i < s->nuses && ok; i++) {
        const struct use *u = &s->uses[i];
        int buf = u->ref.buf;
        if (!u->writes)
            ok = set_covers(&s->out[buf], u->span) || set_add(&s->in[buf], u->span);
        else if (is_packed(s, u->ref))
            ok = set_add(&s->out[buf], u->span);
    }
    if (!ok)
        nbc_sched_fail(s->to);
}

/* --- the staged schedule --------------------------------------------------------------------- */

static struct nbc_ref bytes_of(struct nbc_span span, int buf)
{
    return (struct nbc_ref){
        .off = span.low, .count = span.high - span.low, .type = NBC_TYPE_BYTE, .buf = buf};
}

/* The pieces of a set, one after the other: sets *piece to the next one from *at on. */
static bool next_piece(const struct stage *s, const struct set *set, struct nbc_span *piece, int *i,
                       int64_t *at)
{
    if (*i < set->n && *at >= set->list[*i].high)
        ++*i;
    if (*i >= set->n)
        return false;
    int64_t low = *at > set->list[*i].low ? *at : set->list[*i].low, high = low + s->piece;
    *piece = (struct nbc_span){low, high < set->list[*i].high ? high : set->list[*i].high};
    *at = piece->high;
    return true;
}

/* A piece of the input, and the first operation that uses it. */
struct fetch {
    struct nbc_ref data;
    nbc_id first;
};

static int by_first_use(const void *x, const void *y)
{
    const struct fetch *a = x, *b = y;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->data.buf != b->data.buf ? a->data.buf - b->data.buf
                                      : (a->data.off > b->data.off) - (a->data.off < b->data.off);
}

static nbc_id first_use(const struct stage *s, struct nbc_span piece, int buf)
{
    int i = 0;
    while (s->uses[i].ref.buf != buf || !overlap(s->uses[i].span, piece))
        i++;
    return s->uses[i].op;
}

/* The pieces of the input; their number is returned, `list` may be NULL. */
static int list_fetches(const struct stage *s, struct fetch *list)
{
    struct nbc_span piece;
    int n = 0;
    for (int buf = 0; buf < 2; buf++) {
        int64_t at = INT64_MIN;
        for (int i = 0; next_piece(s, &s->in[buf], &piece, &i, &at); n++)
            if (list)
                list[n] = (struct fetch){bytes_of(piece, buf), first_use(s, piece, buf)};
    }
    return n;
}

/* In the order of their use: the device makes one copy after the other. */
static void emit_fetches(struct stage *s)
{
    int n = list_fetches(s, NULL);
    struct fetch *list = nbc_scratch(s->to, (size_t)n, sizeof *list);
    if (!list)
        return;
    list_fetches(s, list);
    qsort(list, (size_t)n, sizeof *list, by_first_use);
    for (int i = 0; i < n; i++)
        nbc_emit_staged(s->to, NBC_OP_FETCH, list[i].data, (struct nbc_ref){0});
}

static int64_t shift_of(const struct stage *s, struct nbc_ref ref)
{
    struct nbc_span span = span_of(s->shape, ref);
    bool staged = s->buffers >> ref.buf & 1 && span.low < span.high;
    return staged ? nbc_staged_shift(s->from->staged, ref.buf, span.low) : 0;
}

/* An operation, on the host's copies of the buffers. */
static nbc_id emit_on_host(const struct stage *s, const struct nbc_op *from)
{
    struct nbc_op op = *from;
    if (op.kind != NBC_OP_JOIN)
        op.off -= shift_of(s, nbc_op_a(from));
    if (op.kind == NBC_OP_COPY || op.kind == NBC_OP_REDUCE)
        op.b_off -= shift_of(s, nbc_op_b(from));
    if (op.kind == NBC_OP_REDUCE)
        op.c_off -= shift_of(s, nbc_op_c(from));
    return nbc_emit_again(s->to, &op);
}

/* The operations, with their edges, and those from the fetches. */
static void emit_operations(struct stage *s)
{
    s->nfetches = s->to->nops;
    for (nbc_id id = 0; id < s->from->nops; id++)
        s->first[id] = s->last[id] = emit_on_host(s, &s->from->ops[id]);
    nbc_emit_edges(s->to, s->from, s->first, s->last);
    for (nbc_id f = 0; f < s->nfetches; f++) {
        const struct nbc_op *fetch = &s->to->ops[f];
        const struct nbc_span span = {fetch->off, fetch->off + fetch->count};
        for (int i = 0; i < s->nuses; i++)
            if (s->uses[i].ref.buf == fetch->buf && overlap(s->uses[i].span, span))
                nbc_after(s->to, s->first[s->uses[i].op], f);
    }
}

static void emit_store(struct stage *s, struct nbc_ref data, struct nbc_span span)
{
    nbc_id store = nbc_emit_staged(s->to, NBC_OP_STORE, data, (struct nbc_ref){0});
    for (int i = 0; i < s->nuses; i++)
        if (s->uses[i].writes && s->uses[i].ref.buf == data.buf && overlap(s->uses[i].span, span))
            nbc_after(s->to, store, s->last[s->uses[i].op]);
}

static bool is_first_of(const struct stage *s, int n)
{
    const struct nbc_ref *ref = &s->uses[n].ref;
    for (int i = 0; i < n; i++) {
        const struct nbc_ref *other = &s->uses[i].ref;
        if (s->uses[i].writes && nbc_same_place(*ref, *other) && ref->count == other->count &&
            ref->type == other->type)
            return false;
    }
    return true;
}

static void emit_stores(struct stage *s, int buf)
{
    struct nbc_span piece;
    int64_t at = INT64_MIN;
    for (int i = 0; next_piece(s, &s->out[buf], &piece, &i, &at);)
        emit_store(s, bytes_of(piece, buf), piece);
    for (int i = 0; i < s->nuses; i++) {
        const struct use *u = &s->uses[i];
        if (u->writes && u->ref.buf == buf && !is_packed(s, u->ref) && is_first_of(s, i))
            emit_store(s, u->ref, u->span);
    }
}

static void emit_release(struct stage *s)
{
    const struct nbc_ref none = {0};
    nbc_after_since(s->to, nbc_emit_staged(s->to, NBC_OP_RELEASE, none, none), 0);
}

static void stage(struct stage *s)
{
    s->uses = nbc_scratch(s->to, 3 * (size_t)s->from->nops, sizeof *s->uses);
    if (!s->uses)
        return;
    s->nuses = find_uses(s->from, s->shape, s->buffers, s->uses);
    find_data(s);
    emit_fetches(s);
    emit_operations(s);
    for (int buf = 0; buf < 2; buf++)
        emit_stores(s, buf);
}

/* --- the direct schedule --------------------------------------------------------------------- */

static bool is_on_device(const struct stage *s, struct nbc_ref ref)
{
    return s->buffers >> ref.buf & 1;
}

static nbc_id emit_move(const struct stage *s, struct nbc_ref to, struct nbc_ref from, nbc_id after)
{
    nbc_id id = nbc_emit_staged(s->to, NBC_OP_MOVE, to, from);
    nbc_after(s->to, id, after);
    return id;
}

/* Bytes and the gaps between them are moved at once where that writes no gaps of the device. */
static nbc_id move_bytes(const struct stage *s, struct nbc_ref to, struct nbc_ref from)
{
    return emit_move(s, bytes_of(span_of(s->shape, to), to.buf),
                     bytes_of(span_of(s->shape, from), from.buf), NBC_NONE);
}

static void emit_copy(const struct stage *s, nbc_id id)
{
    struct nbc_ref to = nbc_op_a(&s->from->ops[id]), from = nbc_op_b(&s->from->ops[id]);
    bool stores = is_on_device(s, to);
    nbc_id at = NBC_NONE;
    if (is_packed(s, to) && is_packed(s, from)) {
        s->first[id] = s->last[id] = move_bytes(s, to, from);
        return;
    }
    if (is_on_device(s, from)) {
        struct nbc_ref host = nbc_temp_like(s->to, from);
        s->first[id] = at = move_bytes(s, host, from);
        from = host;
    }
    struct nbc_ref host = stores ? nbc_temp_like(s->to, to) : to;
    s->last[id] = nbc_copy(s->to, host, from, at);
    if (at == NBC_NONE)
        s->first[id] = s->last[id];
    if (stores)
        s->last[id] = emit_move(s, to, host, s->last[id]);
}

/* Whether an operation is a copy with a side on a device. If the sides differ in length it is an
 * error, which the transport returns before it reads anything. */
static bool is_for_device(const struct stage *s, const struct nbc_op *op)
{
    if (op->kind != NBC_OP_COPY)
        return false;
    struct nbc_ref to = nbc_op_a(op), from = nbc_op_b(op);
    return (is_on_device(s, to) || is_on_device(s, from)) &&
           nbc_ref_bytes(s->shape, to) == nbc_ref_bytes(s->shape, from);
}

static void emit_direct(const struct stage *s, nbc_id id)
{
    const struct nbc_op *op = &s->from->ops[id];
    if (is_for_device(s, op))
        emit_copy(s, id);
    else
        s->first[id] = s->last[id] = nbc_emit_again(s->to, op);
}

static void stage_direct(const struct stage *s)
{
    const struct nbc_ref none = {0};
    nbc_id settled = nbc_emit_staged(s->to, NBC_OP_SETTLE, none, none);
    for (nbc_id id = 0; id < s->from->nops; id++) {
        emit_direct(s, id);
        nbc_after(s->to, s->first[id], settled);
    }
    nbc_emit_edges(s->to, s->from, s->first, s->last);
}

/* Makes one of the two schedules. */
static struct nbc_sched *make(struct stage *s)
{
    s->to = nbc_sched_new(s->shape);
    if (!s->to)
        return NULL;
    s->to->temp_bytes = s->from->temp_bytes;
    s->first = nbc_scratch(s->to, (size_t)s->from->nops, sizeof *s->first);
    s->last = nbc_scratch(s->to, (size_t)s->from->nops, sizeof *s->last);
    if (!s->first || !s->last)
        return nbc_sched_finish(s->to);
    if (s->piece)
        stage(s);
    else
        stage_direct(s);
    emit_release(s);
    return nbc_sched_finish(s->to);
}

/* Of the bytes of a buffer that operations use. */
static bool make_parts(struct nbc_staged *staged, int buf, const struct set *all, int64_t far)
{
    struct nbc_part *parts = malloc((size_t)all->n * sizeof *parts + 1);
    int n = 0;
    for (int i = 0; i < all->n && parts; i++) {
        int64_t gap = i > 0 ? all->list[i].low - all->list[i - 1].high : 0;
        if (i > 0 && gap < far)
            parts[n - 1].span.high = all->list[i].high;
        else {
            parts[n] = (struct nbc_part){all->list[i], n > 0 ? parts[n - 1].shift : 0};
            parts[n++].shift += gap / far * far;
        }
    }
    staged->parts[buf] = parts;
    staged->nparts[buf] = n;
    return parts;
}

struct nbc_staged *nbc_staged_of(struct nbc_sched *s, const struct nbc_type *types, int ntypes,
                                 int64_t far)
{
    const struct nbc_shape shape = {.types = types, .ntypes = ntypes};
    if (s->staged)
        return s->staged;
    struct nbc_staged *staged = calloc(1, sizeof *staged);
    struct use *uses = malloc(3 * (size_t)s->nops * sizeof *uses + 1);
    bool ok = staged && uses;
    for (int buf = 0; buf < 2 && ok; buf++) {
        struct set all = {NULL, 0, 0};
        int n = find_uses(s, &shape, 1U << buf, uses);
        for (int i = 0; i < n && ok; i++)
            ok = set_add(&all, uses[i].span);
        ok = ok && make_parts(staged, buf, &all, far);
        free(all.list);
    }
    free(uses);
    if (!ok) {
        nbc_staged_free(staged);
        return NULL;
    }
    return s->staged = staged;
}

int64_t nbc_staged_size(const struct nbc_staged *staged, int buf)
{
    const struct nbc_part *parts = staged->parts[buf], *last = &parts[staged->nparts[buf] - 1];
    return staged->nparts[buf] > 0 ? last->span.high - last->shift - parts->span.low : 0;
}

int64_t nbc_staged_shift(const struct nbc_staged *staged, int buf, int64_t at)
{
    const struct nbc_part *part = staged->parts[buf];
    for (int i = 1; i < staged->nparts[buf] && at >= part[1].span.low; i++)
        part++;
    return part->shift;
}

struct nbc_sched *nbc_stage(struct nbc_sched *s, const struct nbc_type *types, int ntypes,
                            unsigned buffers, int64_t piece)
{
    const struct nbc_shape shape = {.types = types,
                                    .ntypes = ntypes,
                                    .segment = s->segment,
                                    .local = s->local,
                                    .sockets = s->sockets};
    struct nbc_sched **kept = piece ? &s->staged->with[buffers] : &s->staged->direct[buffers];
    if (*kept)
        return *kept;
    struct stage made = {.shape = &shape, .from = s, .buffers = buffers, .piece = piece};
    *kept = make(&made);
    for (int buf = 0; buf < 2; buf++) {
        free(made.in[buf].list);
        free(made.out[buf].list);
    }
    return *kept;
}

bool nbc_has_direct(const struct nbc_sched *s)
{
    for (nbc_id id = 0; id < s->nops; id++)
        if (s->ops[id].kind == NBC_OP_REDUCE)
            return false;
    return true;
}

bool nbc_direct_is_better(const struct nbc_sched *s, unsigned buffers)
{
    int nmessages = 0, nused = 0, ncopies = 0;
    for (nbc_id id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        bool uses = buffers >> op->buf & 1;
        if (op->kind == NBC_OP_COPY)
            ncopies += uses || buffers >> op->b_buf & 1;
        else if (op->kind != NBC_OP_JOIN) {
            nmessages++;
            nused += uses;
        }
    }
    return nmessages == 0 || nused >= ncopies;
}

void nbc_staged_free(struct nbc_staged *staged)
{
    if (!staged)
        return;
    for (unsigned i = 0; i < sizeof staged->with / sizeof *staged->with; i++) {
        nbc_sched_free(staged->with[i]);
        nbc_sched_free(staged->direct[i]);
    }
    free(staged->parts[0]);
    free(staged->parts[1]);
    free(staged);
}
