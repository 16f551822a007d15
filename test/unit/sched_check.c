/* SPDX-License-Identifier: MIT */
/* Static checks of one rank's schedule. They use spans: the lowest and the highest byte of a
 * reference. For packed types that is exact. Elements of other types have gaps, which may contain
 * other elements (columns of a matrix), so for those
 *  - two references of one type whose distance is a multiple of its extent touch the same bytes if
 *    they have an element in common, not if their spans overlap;
 *  - two references in different blocks of the user's buffer are taken as disjoint, as the standard
 *    requires of the blocks that a call writes;
 *  - any other overlap of spans counts as a conflict. */
#include "sched_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An access of an operation to memory. */
struct access {
    int64_t low, high;
    struct nbc_ref ref;
    nbc_id op;
    int block; /* of the user's buffer, or one of the two below */
    bool write;
};

enum { NOT_LOOKED_UP = -2, NO_BLOCK = -1 };

/* A block of a user's buffer. */
struct block {
    int64_t low, high;
    struct nbc_ref ref;
};

/* The blocks that may be accessed in one way, sorted by lowest byte; and the contiguous runs of
 * bytes that they form together. */
struct region {
    struct block *blocks, *runs;
    int nblocks, nruns;
};

enum use { READ_SEND, READ_RECV, WRITE_RECV, NUSES };

struct checker {
    const struct nbc_sched *s;
    const struct nbc_shape *shape;
    char *text;
    size_t size;
    struct region region[NUSES];
    struct access *accesses;
    int naccesses;
    nbc_id *last; /* per peer and direction: the last message; then, the one emitted before each */
    uint64_t *starts_before;
    size_t words; /* of a row of it */
};

static bool fail(struct checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct checker *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->text, c->size, format, args);
    va_end(args);
    return false;
}

/* --- what the call lets a rank touch ---------------------------------------------------------- */

static int peers(const struct nbc_shape *s)
{
    return s->remote_size ? s->remote_size : s->size;
}

static bool is_root(const struct nbc_shape *s)
{
    return s->remote_size ? s->root == NBC_ROOT_HERE : s->root == s->rank;
}

/* Whether this rank has data for, or of, the root. The other ranks of the root's group have none.
 */
static bool is_leaf(const struct nbc_shape *s)
{
    return s->remote_size ? s->root >= 0 : true;
}

/* Number of blocks that this rank sends. */
static int input_blocks(const struct nbc_shape *s)
{
    switch (s->coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_BCAST:
        return is_root(s);
    case NBC_GATHER:
    case NBC_GATHERV:
    case NBC_REDUCE:
        return is_leaf(s);
    case NBC_SCATTER:
    case NBC_SCATTERV:
        return is_root(s) ? peers(s) : 0;
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        return peers(s);
    case NBC_REDUCE_SCATTER_BLOCK:
    case NBC_REDUCE_SCATTER:
        return s->size;
    case NBC_NEIGHBOR_ALLGATHER:
    case NBC_NEIGHBOR_ALLGATHERV:
        return s->neighbors->outdegree > 0;
    case NBC_NEIGHBOR_ALLTOALL:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return s->neighbors->outdegree;
    default:
        return 1;
    }
}

/* Number of blocks that this rank receives. */
static int output_blocks(const struct nbc_shape *s)
{
    switch (s->coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_BCAST:
        return !is_root(s) && is_leaf(s);
    case NBC_GATHER:
    case NBC_GATHERV:
        return is_root(s) ? peers(s) : 0;
    case NBC_REDUCE:
        return is_root(s);
    case NBC_SCATTER:
    case NBC_SCATTERV:
        return is_leaf(s) && !s->in_place;
    case NBC_ALLGATHER:
    case NBC_ALLGATHERV:
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        return peers(s);
    case NBC_EXSCAN:
        return s->rank > 0;
    case NBC_NEIGHBOR_ALLGATHER:
    case NBC_NEIGHBOR_ALLGATHERV:
    case NBC_NEIGHBOR_ALLTOALL:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return s->neighbors->indegree;
    default:
        return 1;
    }
}

static void add_block(const struct nbc_shape *shape, struct region *region, struct nbc_ref r)
{
    struct block b = {.ref = r};
    nbc_ref_span(shape, r, &b.low, &b.high);
    if (b.low < b.high)
        region->blocks[region->nblocks++] = b;
}

static int compare_blocks(const void *x, const void *y)
{
    const struct block *a = x, *b = y;
    return (a->low > b->low) - (a->low < b->low);
}

static void find_runs(const struct nbc_shape *shape, struct region *region)
{
    for (int i = 0; i < region->nblocks; i++) {
        const struct block *b = &region->blocks[i];
        struct block *last = region->nruns ? &region->runs[region->nruns - 1] : NULL;
        if (!shape->types[b->ref.type].packed)
            continue;
        if (!last || b->low > last->high)
            region->runs[region->nruns++] = *b;
        else if (b->high > last->high)
            last->high = b->high;
    }
}

static bool in_a_run(const struct region *region, int64_t low, int64_t high)
{
    int first = 0, n = region->nruns; /* the last run that begins at or before low is among these */
    while (n > 1) {
        int half = n / 2;
        if (region->runs[first + half].low <= low)
            first += half;
        n -= half;
    }
    return n && region->runs[first].low <= low && high <= region->runs[first].high;
}

static bool find_regions(struct checker *c)
{
    const struct nbc_shape *s = c->shape;
    int nin = input_blocks(s), nout = output_blocks(s);
    for (int use = 0; use < NUSES; use++) {
        size_t room = (size_t)(nin + nout + 1) * sizeof(struct block);
        c->region[use].blocks = malloc(room);
        c->region[use].runs = malloc(room);
        if (!c->region[use].blocks || !c->region[use].runs)
            return fail(c, "out of memory");
    }
    for (int i = 0; i < nin; i++) {
        struct nbc_ref r = nbc_send_block(s, i);
        if (nbc_coll_is_neighborhood(s->coll) && nin > 1 && s->neighbors->destinations[i] < 0)
            continue;
        add_block(s, &c->region[r.buf == NBC_BUF_SEND ? READ_SEND : READ_RECV], r);
    }
    for (int i = 0; i < nout; i++) {
        if (nbc_coll_is_neighborhood(s->coll) && s->neighbors->sources[i] < 0)
            continue;
        struct nbc_ref r = nbc_recv_block(s, i);
        add_block(s, &c->region[READ_RECV], r);
        add_block(s, &c->region[WRITE_RECV], r);
    }
    for (int use = 0; use < NUSES; use++) {
        qsort(c->region[use].blocks, (size_t)c->region[use].nblocks, sizeof(struct block),
              compare_blocks);
        find_runs(s, &c->region[use]);
    }
    return true;
}

static bool same_layout(const struct nbc_type *x, const struct nbc_type *y)
{
    return x->size == y->size && x->extent == y->extent && x->true_lb == y->true_lb &&
           x->true_extent == y->true_extent && x->packed == y->packed;
}

/* Elements of two references to one layout, at a distance of whole extents. */
static bool on_one_grid(const struct nbc_type *types, struct nbc_ref x, struct nbc_ref y)
{
    const struct nbc_type *t = &types[x.type];
    if (!same_layout(t, &types[y.type]))
        return false;
    return t->extent == 0 ? x.off == y.off : (x.off - y.off) % t->extent == 0;
}

static bool inside(const struct nbc_type *types, struct nbc_ref r, struct nbc_ref block)
{
    const struct nbc_type *t = &types[r.type];
    if (!on_one_grid(types, r, block))
        return false;
    int64_t first = t->extent ? (r.off - block.off) / t->extent : 0;
    return first >= 0 && first + r.count <= block.count;
}

/* Index of a block that holds the reference's elements, or NO_BLOCK. */
static int find_block(const struct nbc_shape *s, const struct region *region, struct nbc_ref r)
{
    for (int i = 0; i < region->nblocks; i++)
        if (inside(s->types, r, region->blocks[i].ref))
            return i;
    return NO_BLOCK;
}

/* Whether every element of the reference is one of some block: contiguous blocks may be moved at
 * once. */
static bool made_of_blocks(const struct nbc_shape *s, const struct region *region, struct nbc_ref r)
{
    int64_t extent = s->types[r.type].extent;
    int n = region->nblocks, tries = 0; /* since the last block that has some */
    for (int i = 0; tries < n && r.count > 0; i = i + 1 < n ? i + 1 : 0) {
        struct nbc_ref block = region->blocks[i].ref;
        int64_t first = extent ? (r.off - block.off) / extent : 0;
        tries++;
        if (first < 0 || first >= block.count || !on_one_grid(s->types, r, block))
            continue;
        r.count -= block.count - first;
        r.off += (block.count - first) * extent;
        tries = 0;
    }
    return r.count <= 0;
}

/* Returns NULL if all bytes of the reference belong to blocks, else an error message. */
static const char *outside(const struct checker *c, const struct region *region,
                           const struct access *a)
{
    if (c->shape->types[a->ref.type].packed)
        return in_a_run(region, a->low, a->high) ? NULL : "leaves the bytes of the call";
    return made_of_blocks(c->shape, region, a->ref) ? NULL : "not elements of the call";
}

/* --- single operations ------------------------------------------------------------------------ */

static bool check_access(struct checker *c, const struct access *a)
{
    const char *what = a->write ? "writes" : "reads", *why = NULL;
    static const char *const names[] = {"send", "recv", "temp"};
    if (a->ref.buf == NBC_BUF_TEMP)
        why = a->low < 0 || a->high > c->s->temp_bytes ? "leaves the buffer" : NULL;
    else if (a->ref.buf == NBC_BUF_SEND)
        why = a->write ? "writes to the user's input" : outside(c, &c->region[READ_SEND], a);
    else
        why = outside(c, &c->region[a->write ? WRITE_RECV : READ_RECV], a);
    if (!why)
        return true;
    return fail(c, "operation %d %s %s [%" PRId64 ", %" PRId64 "): %s", (int)a->op, what,
                names[a->ref.buf], a->low, a->high, why);
}

static bool add_access(struct checker *c, nbc_id op, struct nbc_ref r, bool write)
{
    struct access a = {.ref = r, .op = op, .block = NOT_LOOKED_UP, .write = write};
    if (r.buf < 0 || r.buf >= NBC_NBUFS)
        return fail(c, "operation %d: no buffer %d", (int)op, (int)r.buf);
    if (r.type < 0 || r.type >= c->shape->ntypes)
        return fail(c, "operation %d: no type slot %d", (int)op, (int)r.type);
    if (r.count < 0)
        return fail(c, "operation %d: count %" PRId64, (int)op, r.count);
    nbc_ref_span(c->shape, r, &a.low, &a.high);
    if (a.low == a.high)
        return true;
    if (!check_access(c, &a))
        return false;
    c->accesses[c->naccesses++] = a;
    return true;
}

static bool neighbor(const int *list, int n, int peer)
{
    for (int i = 0; i < n; i++)
        if (list[i] == peer)
            return true;
    return false;
}

static bool check_peer(struct checker *c, nbc_id id, const struct nbc_op *op)
{
    const struct nbc_shape *s = c->shape;
    if (op->peer < 0 || op->peer >= peers(s))
        return fail(c, "operation %d: no peer %d", (int)id, (int)op->peer);
    if (!s->remote_size && op->peer == s->rank)
        return fail(c, "operation %d: message to itself", (int)id);
    const struct nbc_neighbors *n =
        nbc_coll_is_neighborhood(s->coll) && !s->pattern ? s->neighbors : NULL;
    if (n && op->kind == NBC_OP_SEND && !neighbor(n->destinations, n->outdegree, op->peer))
        return fail(c, "operation %d: rank %d is no destination", (int)id, (int)op->peer);
    if (n && op->kind == NBC_OP_RECV && !neighbor(n->sources, n->indegree, op->peer))
        return fail(c, "operation %d: rank %d is no source", (int)id, (int)op->peer);
    return true;
}

static bool check_copy(struct checker *c, nbc_id id, const struct nbc_op *op)
{
    struct nbc_ref dst = nbc_op_a(op), src = nbc_op_b(op);
    if (!add_access(c, id, dst, true) || !add_access(c, id, src, false))
        return false;
    int64_t room = nbc_ref_bytes(c->shape, dst), bytes = nbc_ref_bytes(c->shape, src);
    return room == bytes || fail(c, "operation %d copies %" PRId64 " bytes to a place of %" PRId64,
                                 (int)id, bytes, room);
}

static bool check_reduce(struct checker *c, nbc_id id, const struct nbc_op *op)
{
    struct nbc_ref dst = nbc_op_a(op), left = nbc_op_b(op), right = nbc_op_c(op);
    const struct nbc_shape *s = c->shape;
    if (!nbc_coll_reduces(s->coll))
        return fail(c, "operation %d reduces in a collective that has no op", (int)id);
    if (op->uneven)
        return fail(c, "operation %d: an operand and the result differ in count", (int)id);
    if (!add_access(c, id, dst, true) || !add_access(c, id, left, false) ||
        !add_access(c, id, right, false))
        return false;
    if (dst.type != s->send.type && dst.type != s->recv.type)
        return fail(c, "operation %d reduces a type that is not the call's", (int)id);
    bool data = nbc_ref_bytes(s, dst) > 0; /* places without any may be one */
    if (data && nbc_same_place(dst, left))
        return fail(c, "operation %d: result in the place of the left operand", (int)id);
    return true;
}

static bool check_op(struct checker *c, nbc_id id)
{
    const struct nbc_op *op = &c->s->ops[id];
    switch (op->kind) {
    case NBC_OP_SEND:
    case NBC_OP_RECV:
        return check_peer(c, id, op) && add_access(c, id, nbc_op_a(op), op->kind == NBC_OP_RECV);
    case NBC_OP_COPY:
        return check_copy(c, id, op);
    case NBC_OP_REDUCE:
        return check_reduce(c, id, op);
    case NBC_OP_JOIN:
        return true;
    default:
        return fail(c, "operation %d: no kind %d", (int)id, (int)op->kind);
    }
}

/* --- the graph -------------------------------------------------------------------------------- */

static bool check_edges(struct checker *c)
{
    const struct nbc_sched *s = c->s;
    int32_t *npre = calloc((size_t)s->nops + 1, sizeof *npre);
    int32_t edges = 0;
    bool good = npre ? true : fail(c, "out of memory");
    for (nbc_id id = 0; good && id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        int32_t n = op->nsucc_issue + op->nsucc_done;
        if (op->succ != edges || n > s->nsucc - edges)
            good = fail(c, "operation %d: successors out of place", (int)id);
        for (int32_t i = 0; good && i < n; i++) {
            nbc_id to = s->succ[op->succ + i];
            if (to <= id || to >= s->nops)
                good = fail(c, "edge from operation %d to %d", (int)id, (int)to);
            else
                npre[to]++;
        }
        if (good && npre[id] != op->npre)
            good = fail(c, "operation %d waits for %d edges and has %d", (int)id, (int)op->npre,
                        (int)npre[id]);
        edges += n;
    }
    if (good && edges != s->nsucc)
        good = fail(c, "%d edges, and %d in use", (int)s->nsucc, (int)edges);
    free(npre);
    return good;
}

/* Row of the operations that start only after this one has: through edges of both kinds. */
static uint64_t *starts_after(struct checker *c, nbc_id id)
{
    return &c->starts_before[(size_t)id * c->words];
}

static bool find_order(struct checker *c)
{
    const struct nbc_sched *s = c->s;
    c->words = (size_t)s->nops / 64 + 1;
    c->starts_before = calloc((size_t)s->nops + 1, c->words * sizeof *c->starts_before);
    if (!c->starts_before)
        return fail(c, "out of memory");
    for (nbc_id id = s->nops - 1; id >= 0; id--) {
        const struct nbc_op *op = &s->ops[id];
        uint64_t *row = starts_after(c, id);
        row[id / 64] |= UINT64_C(1) << id % 64;
        for (int32_t i = 0; i < op->nsucc_issue + op->nsucc_done; i++) {
            const uint64_t *later = starts_after(c, s->succ[op->succ + i]);
            for (size_t w = (size_t)id / 64; w < c->words; w++)
                row[w] |= later[w];
        }
    }
    return true;
}

static bool starts_before(struct checker *c, nbc_id x, nbc_id y)
{
    return starts_after(c, x)[y / 64] >> y % 64 & 1;
}

/* Whether x is done before y starts: a done edge leads from x to an operation that starts before y.
 * An issue edge from x does not suffice, since it implies nothing about the end of x. */
static bool done_before(struct checker *c, nbc_id x, nbc_id y)
{
    const struct nbc_op *op = &c->s->ops[x];
    const int32_t *succ = &c->s->succ[op->succ + op->nsucc_issue];
    for (int32_t i = 0; i < op->nsucc_done; i++)
        if (starts_before(c, succ[i], y))
            return true;
    return false;
}

/* Messages to (or from) one peer are posted in the order of the schedule. */
static bool check_message_order(struct checker *c)
{
    const struct nbc_sched *s = c->s;
    int32_t nmsgs = 0;
    c->last = malloc(2 * (size_t)peers(c->shape) * sizeof *c->last);
    if (!c->last)
        return fail(c, "out of memory");
    for (int i = 0; i < 2 * peers(c->shape); i++)
        c->last[i] = NBC_NONE;
    for (nbc_id id = 0; id < s->nops; id++) {
        const struct nbc_op *op = &s->ops[id];
        if (op->kind != NBC_OP_SEND && op->kind != NBC_OP_RECV)
            continue;
        nmsgs++;
        nbc_id *last = &c->last[2 * op->peer + (op->kind == NBC_OP_RECV)];
        if (*last != NBC_NONE && !starts_before(c, *last, id))
            return fail(c, "messages %d and %d with rank %d may be posted in either order",
                        (int)*last, (int)id, (int)op->peer);
        *last = id;
    }
    if (nmsgs != s->nmsgs)
        return fail(c, "%d messages, and %d announced", (int)nmsgs, (int)s->nmsgs);
    return true;
}

/* --- races ------------------------------------------------------------------------------------ */

static bool share_element(const struct nbc_type *t, struct nbc_ref x, struct nbc_ref y)
{
    int64_t apart = t->extent ? (y.off - x.off) / t->extent : 0;
    return apart < x.count && -apart < y.count;
}

static int block_of(const struct checker *c, struct access *a)
{
    const struct region *region = &c->region[a->ref.buf == NBC_BUF_SEND ? READ_SEND : READ_RECV];
    if (a->block == NOT_LOOKED_UP)
        a->block = find_block(c->shape, region, a->ref);
    return a->block;
}

/* Whether two references whose spans overlap have bytes in common. */
static bool touch(const struct checker *c, struct access *x, struct access *y)
{
    const struct nbc_type *types = c->shape->types;
    if (types[x->ref.type].packed && types[y->ref.type].packed)
        return true;
    if (on_one_grid(types, x->ref, y->ref))
        return share_element(&types[x->ref.type], x->ref, y->ref);
    if (x->ref.buf == NBC_BUF_TEMP)
        return true;
    int bx = block_of(c, x), by = block_of(c, y);
    return bx == NO_BLOCK || by == NO_BLOCK || bx == by;
}

static int compare_accesses(const void *x, const void *y)
{
    const struct access *a = x, *b = y;
    if (a->ref.buf != b->ref.buf)
        return a->ref.buf < b->ref.buf ? -1 : 1;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

/* Within one operation only a reduction may write where it reads, and there the same elements. */
static bool check_pair(struct checker *c, struct access *x, struct access *y)
{
    if ((!x->write && !y->write) || !touch(c, x, y))
        return true;
    if (x->op == y->op) {
        bool reduce = c->s->ops[x->op].kind == NBC_OP_REDUCE;
        return (reduce && nbc_same_place(x->ref, y->ref)) ||
               fail(c, "operation %d overwrites its operand", (int)x->op);
    }
    nbc_id first = x->op < y->op ? x->op : y->op, second = x->op < y->op ? y->op : x->op;
    if (done_before(c, first, second))
        return true;
    const struct access *late = x->op == second ? x : y;
    return fail(c, "race: operation %d does not wait for %d, and %s the same bytes %s+%" PRId64,
                (int)second, (int)first, late->write ? "writes" : "reads",
                late->ref.buf == NBC_BUF_TEMP ? "temp" : "recv", x->low > y->low ? x->low : y->low);
}

static bool check_races(struct checker *c)
{
    struct access *a = c->accesses;
    qsort(a, (size_t)c->naccesses, sizeof *a, compare_accesses);
    for (int i = 0; i < c->naccesses; i++)
        for (int j = i + 1;
             j < c->naccesses && a[j].ref.buf == a[i].ref.buf && a[j].low < a[i].high; j++)
            if (!check_pair(c, &a[i], &a[j]))
                return false;
    return true;
}

static bool check_all(struct checker *c)
{
    c->accesses = malloc(3 * ((size_t)c->s->nops + 1) * sizeof *c->accesses);
    if (!c->accesses)
        return fail(c, "out of memory");
    if (!find_regions(c) || !check_edges(c))
        return false;
    for (nbc_id id = 0; id < c->s->nops; id++)
        if (!check_op(c, id))
            return false;
    return find_order(c) && check_message_order(c) && check_races(c);
}

const char *sched_check(const struct nbc_sched *s, const struct nbc_shape *shape, char *text,
                        size_t size)
{
    struct checker c = {.s = s, .shape = shape, .text = text, .size = size};
    bool good = check_all(&c);
    for (int use = 0; use < NUSES; use++) {
        free(c.region[use].blocks);
        free(c.region[use].runs);
    }
    free(c.accesses);
    free(c.last);
    free(c.starts_before);
    return good ? NULL : text;
}
