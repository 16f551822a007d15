/* SPDX-License-Identifier: MIT */
/* The bytes of a call: what ranks have, and what they must have at the end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "topo.h"

static uint64_t affine(uint64_t x)
{
    uint64_t a = x % 65520 + 1, b = x / 65536 % 65521;
    return a | b << 32;
}

static void op_sum(void *dst, const void *left, const void *right)
{
    uint64_t x, y;
    memcpy(&x, left, ATOM);
    memcpy(&y, right, ATOM);
    x += y;
    memcpy(dst, &x, ATOM);
}

/* Maps x → ax + b modulo a prime, left one first: associative, not commutative. */
static void op_affine(void *dst, const void *left, const void *right)
{
    uint32_t x[2], y[2], z[2];
    memcpy(x, left, ATOM);
    memcpy(y, right, ATOM);
    z[0] = (uint32_t)((uint64_t)x[0] * y[0] % 65521);
    z[1] = (uint32_t)(((uint64_t)y[0] * x[1] + y[1]) % 65521);
    memcpy(dst, z, ATOM);
}

/* Neither associative nor commutative, for bits. With HASH the program says that it commutes, and
 * of the values that may be true, as of the maximum of −0 and +0. */
static void op_hash(void *dst, const void *left, const void *right)
{
    uint64_t x, y;
    memcpy(&x, left, ATOM);
    memcpy(&y, right, ATOM);
    x = hash3(1, x, y);
    memcpy(dst, &x, ATOM);
}

static void (*const op_functions[NOPS])(void *, const void *, const void *) = {
    op_sum, op_affine, op_hash, op_hash, op_hash};

/* Atom of block k of a rank's input; of reductions, of its whole vector (k = 0). */
static uint64_t input(const struct world *w, int id, int k, int64_t atom, int run)
{
    uint64_t value =
        hash3(w->c.seed + (uint64_t)run, (uint64_t)id << 32 | (uint64_t)k, (uint64_t)atom);
    return w->c.op == AFFINE ? affine(value) : value;
}

static int64_t vector_atoms(const struct world *w, int group)
{
    enum nbc_coll coll = w->c.alg->coll;
    int64_t sum = w->c.count;
    if (coll == NBC_REDUCE_SCATTER || coll == NBC_REDUCE_SCATTER_BLOCK) {
        sum = 0;
        for (int i = 0; i < group_size(w, group); i++)
            sum += scattered_units(w, group, i);
    }
    return sum * unit_atoms(w->c.layout);
}

static uint64_t *folded(const struct world *w, int id, int run)
{
    return &w->folded[(run * w->n + id) * w->total];
}

/* --- the order of a tree, as doc/reductions.md defines it --- */

struct element {
    const struct world *w;
    int64_t atom;
    int run;
};

static uint64_t combined(uint64_t left, uint64_t right)
{
    op_hash(&left, &left, &right);
    return left;
}

/* The ranks below 2 (P − 2^k) make pairs, so that 2^k numbers are left. */
static uint64_t leaf(const struct element *e, int i)
{
    int size = e->w->c.size, rest = size - nbc_pow2_floor(size);
    if (i >= rest)
        return input(e->w, i + rest, 0, e->atom, e->run);
    return combined(input(e->w, 2 * i, 0, e->atom, e->run),
                    input(e->w, 2 * i + 1, 0, e->atom, e->run));
}

static uint64_t subtree(const struct element *e, int first, int n)
{
    if (n == 1)
        return leaf(e, first);
    return combined(subtree(e, first, n / 2), subtree(e, first + n / 2, n / 2));
}

/* Scans: the n ranks up to this one, n a power of two, or as many as there are. */
static uint64_t window(const struct element *e, int rank, int n)
{
    if (n == 1)
        return input(e->w, rank, 0, e->atom, e->run);
    uint64_t upper = window(e, rank, n / 2);
    return rank < n / 2 ? upper : combined(window(e, rank - n / 2, n / 2), upper);
}

/* The ranks below `rank`: the one below, before it the two below that one and so on. */
static uint64_t windows_below(const struct element *e, int rank)
{
    uint64_t sum = window(e, rank - 1, 1);
    for (int n = 2; n <= rank; n *= 2)
        sum = combined(window(e, rank - n, n), sum);
    return sum;
}

/* The result to which rank `last` is the last to contribute. */
static uint64_t tree_result(const struct element *e, int last)
{
    int size = e->w->c.size;
    if (e->w->c.alg->coll == NBC_EXSCAN)
        return windows_below(e, last + 1);
    if (e->w->c.alg->coll == NBC_SCAN)
        return window(e, last, 1 << nbc_log2_ceil(size));
    return subtree(e, 0, nbc_pow2_floor(size));
}

static void grow_trees(struct world *w)
{
    bool scans = w->c.alg->coll == NBC_SCAN || w->c.alg->coll == NBC_EXSCAN;
    for (int run = 0; run < w->c.runs; run++)
        for (int id = scans ? 0 : w->n - 1; id < w->n; id++)
            for (int64_t i = 0; i < w->total; i++)
                folded(w, id, run)[i] = tree_result(&(struct element){w, i, run}, id);
}

/* Reductions over the ranks 0 … r of a group, for every r and run. Between groups the order is
 * always that of ranks. */
static void fold(struct world *w)
{
    w->total = vector_atoms(w, 0);
    free(w->folded);
    w->folded = malloc((size_t)(w->c.runs * w->n * w->total + 1) * sizeof *w->folded);
    if (w->c.op == TREE && !w->c.remote) {
        grow_trees(w);
        return;
    }
    for (int run = 0; run < w->c.runs; run++)
        for (int id = 0; id < w->n; id++)
            for (int64_t i = 0; i < w->total; i++) {
                uint64_t mine = input(w, id, 0, i, run), *to = folded(w, id, run) + i;
                if (local_of(w, id) == 0)
                    *to = mine;
                else
                    op_functions[w->c.op](to, to - w->total, &mine);
            }
}

/* Where a rank's part of a scattered vector begins. */
static int64_t vector_start(const struct world *w, int id, int i)
{
    int64_t sum = 0;
    enum nbc_coll coll = w->c.alg->coll;
    if (coll == NBC_REDUCE_SCATTER || coll == NBC_REDUCE_SCATTER_BLOCK)
        for (int k = 0; k < i; k++)
            sum += scattered_units(w, group_of(w, id), k);
    return sum * unit_atoms(w->c.layout);
}

/* The last rank whose input is in this rank's result, or −1. */
static int last_reduced(const struct world *w, int id)
{
    if (w->c.remote)
        return group_of(w, id) ? w->c.size - 1 : w->n - 1;
    if (w->c.alg->coll == NBC_SCAN)
        return id;
    return w->c.alg->coll == NBC_EXSCAN ? id - 1 : w->n - 1;
}

/* What block i must be at the end; false where the definition leaves it as it was. */
static bool result(const struct world *w, int id, int i, int64_t atoms, uint64_t *out, int run)
{
    int number, last = last_reduced(w, id);
    if (nbc_coll_reduces(w->c.alg->coll)) {
        int64_t first = vector_start(w, id, local_of(w, id));
        if (last >= 0)
            memcpy(out, folded(w, last, run) + first, (size_t)atoms * ATOM);
        return last >= 0;
    }
    int from = block_source(w, id, i, &number);
    for (int64_t k = 0; k < atoms && from >= 0; k++)
        out[k] = input(w, from, number, k, run);
    return from >= 0;
}

static int64_t block_atoms(const struct party *p, struct nbc_ref r)
{
    return nbc_ref_bytes(&p->shape, r) / ATOM;
}

static void widen(const struct party *p, struct nbc_ref r, int64_t low[2], int64_t high[2])
{
    int64_t from, to;
    nbc_ref_span(&p->shape, r, &from, &to);
    low[r.buf] = from < low[r.buf] ? from : low[r.buf];
    high[r.buf] = to > high[r.buf] ? to : high[r.buf];
}

/* Whether the input block is there on this rank. */
static bool gives(const struct party *p, int i)
{
    const struct nbc_neighbors *n = &p->neighbors;
    bool each = p->shape.coll >= NBC_NEIGHBOR_ALLTOALL;
    return !each || n->destinations[i] >= 0;
}

static bool scatter_in_place(const struct party *p)
{
    return p->shape.in_place && (p->shape.coll == NBC_SCATTER || p->shape.coll == NBC_SCATTERV);
}

enum { MARGIN = 64 };

static void make_buffers(struct world *w, struct party *p)
{
    int64_t low[2] = {0, 0}, high[2] = {0, 0};
    for (int i = 0; i < out_blocks(w, p->id); i++)
        widen(p, nbc_send_block(&p->shape, i), low, high);
    for (int i = 0; i < in_blocks(w, p->id); i++)
        widen(p, nbc_recv_block(&p->shape, i), low, high);
    for (int b = 0; b < 2; b++) {
        struct buffer *buf = &p->buffer[b];
        free(buf->memory); /* of an earlier simulation */
        free(buf->wanted);
        buf->size = (size_t)(high[b] - low[b] + 2 * MARGIN);
        buf->memory = malloc(buf->size);
        buf->wanted = malloc(buf->size);
        buf->base = buf->memory - low[b] + MARGIN;
    }
}

static void put(struct party *p, struct nbc_ref r, const uint64_t *atoms, bool wanted)
{
    struct buffer *b = &p->buffer[r.buf];
    char *base = wanted ? b->wanted + (b->base - b->memory) : b->base;
    layout_unpack(&p->layouts[r.type], base + r.off, r.count, atoms);
}

/* Other bytes in each buffer, rank and run. */
static void soil(const struct buffer *b, unsigned with)
{
    char period[256];
    for (unsigned i = 0; i < sizeof period; i++)
        period[i] = (char)(i * 7 + with);
    for (size_t i = 0; i < b->size; i += sizeof period) {
        size_t rest = b->size - i;
        memcpy(b->memory + i, period, rest < sizeof period ? rest : sizeof period);
    }
}

/* Fresh contents, and what they must become. */
static void fill(struct party *p, int run)
{
    struct world *w = p->world;
    bool bcast = p->shape.coll == NBC_BCAST, reduces = nbc_coll_reduces(p->shape.coll);
    for (int b = 0; b < 2; b++)
        soil(&p->buffer[b], (unsigned)(p->id * 13 + run));
    int nout = bcast ? is_root(w, p->id) : out_blocks(w, p->id);
    for (int i = 0; i < nout; i++) {
        struct nbc_ref r = nbc_send_block(&p->shape, i);
        int64_t n = block_atoms(p, r), start = reduces ? vector_start(w, p->id, i) : 0;
        uint64_t *atoms = malloc((size_t)(n + 1) * ATOM);
        for (int64_t k = 0; k < n; k++)
            atoms[k] = input(w, p->id, reduces || !gives(p, i) ? 0 : i, start + k, run);
        put(p, r, atoms, false);
        free(atoms);
    }
    for (int b = 0; b < 2; b++)
        memcpy(p->buffer[b].wanted, p->buffer[b].memory, p->buffer[b].size);
    for (int i = 0; i < in_blocks(w, p->id) && !scatter_in_place(p); i++) {
        struct nbc_ref r = nbc_recv_block(&p->shape, i);
        int64_t n = block_atoms(p, r);
        uint64_t *atoms = malloc((size_t)(n + 1) * ATOM);
        if (result(w, p->id, i, n, atoms, run))
            put(p, r, atoms, true);
        free(atoms);
    }
}

/* The same bits on every rank, whatever they are: rank 0's, once it is there. */
static void take_from_first(struct world *w, struct party *p)
{
    struct nbc_ref r = nbc_recv_block(&p->shape, 0);
    struct party *first = &w->party[p->world->c.remote && group_of(w, p->id) ? w->c.size : 0];
    uint64_t *atoms = malloc((size_t)(w->total + 1) * ATOM);
    layout_pack(&first->layouts[r.type], first->buffer[r.buf].base + r.off, r.count, atoms);
    put(p, r, atoms, true);
    free(atoms);
}

static void compare(struct world *w, struct party *p, int run)
{
    static const char *const names[] = {"send", "recv"};
    for (int b = 0; b < 2; b++) {
        struct buffer *buf = &p->buffer[b];
        size_t i = 0;
        if (memcmp(buf->memory, buf->wanted, buf->size) == 0)
            continue;
        while (buf->memory[i] == buf->wanted[i])
            i++;
        complain(w, "rank %d%s, run %d: byte %" PRId64 " of the %s buffer is wrong", p->shape.rank,
                 group_name(w, p->id), run, (int64_t)(buf->memory + i - buf->base), names[b]);
    }
}

/* Nobody leaves a barrier before all have entered it; of an intercommunicator, all ranks of the
 * other group. */
static void check_barrier(struct world *w, const struct party *p, int run)
{
    for (int id = 0; id < w->n; id++) {
        const struct sim_rank *r = &w->ranks[id];
        bool counts = w->c.remote ? group_of(w, id) != group_of(w, p->id) : id != p->id;
        if (counts && r->run <= run && !r->live)
            complain(w, "rank %d leaves before rank %d comes, run %d", p->shape.rank, r->local,
                     run);
    }
}

static void finished(struct sim_rank *r, int run)
{
    struct party *p = r->user;
    struct world *w = p->world;
    if (w->c.alg->coll == NBC_BARRIER)
        check_barrier(w, p, run);
    if (w->c.op == HASH) /* has no definition to compare with: see world_result */
        return;
    if (!r->spoiled)
        compare(w, p, run);
    if (run + 1 < w->c.runs)
        fill(p, run + 1);
}

void world_start(struct world *w, struct sim *sim)
{
    if (nbc_coll_reduces(w->c.alg->coll))
        fold(w);
    for (int id = 0; id < w->n; id++) {
        struct party *p = &w->party[id];
        make_buffers(w, p);
        fill(p, 0);
        w->ranks[id] = (struct sim_rank){
            .sched = p->sched,
            .layouts = p->layouts,
            .reduce = op_functions[w->c.op],
            .send = p->buffer[NBC_BUF_SEND].base,
            .recv = p->buffer[NBC_BUF_RECV].base,
            .runs = w->c.runs,
            .finished = finished,
            .user = p,
        };
    }
    sim_add(sim, w->ranks, w->c.size, w->c.remote);
}

const char *world_result(struct world *w)
{
    for (int id = 0; id < w->n && w->c.op == HASH && w->c.alg->coll == NBC_ALLREDUCE; id++) {
        take_from_first(w, &w->party[id]);
        compare(w, &w->party[id], 0);
    }
    return w->text[0] ? w->text : NULL;
}
