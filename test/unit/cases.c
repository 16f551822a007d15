/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void complain(struct world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(struct world *w, const char *format, ...)
{
    if (w->text[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(w->text, sizeof w->text, format, args);
    va_end(args);
}

/* --- a case as text --------------------------------------------------------------------------- */

static const char *const layout_names[] = {"plain",    "pair",    "gap",   "scrambled", "column",
                                           "backward", "shifted", "empty", "mixed"};
static const char *const op_names[] = {"sum", "affine", "hash"};

void case_print(const struct test_case *c, char *text, size_t size)
{
    snprintf(text, size,
             "%s:%s P=%d remote=%d root=%d count=%" PRId64
             " op=%s in_place=%d layout=%s graph=%d nodes=%d segment=%" PRId64
             " rendezvous=%d runs=%d seed=%" PRIu64,
             nbc_coll_name(c->alg->coll), c->alg->name, c->size, c->remote, c->root, c->count,
             op_names[c->op], c->in_place, layout_names[c->layout], c->graph, c->nodes, c->segment,
             c->rendezvous, c->runs, c->seed);
}

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static bool parse_word(struct test_case *c, const char *key, const char *value)
{
    long long number = strtoll(value, NULL, 0);
    if (strcmp(key, "P") == 0)
        c->size = (int)number;
    else if (strcmp(key, "remote") == 0)
        c->remote = (int)number;
    else if (strcmp(key, "root") == 0)
        c->root = (int)number;
    else if (strcmp(key, "count") == 0)
        c->count = number;
    else if (strcmp(key, "op") == 0)
        c->op = find_name(op_names, NOPS, value);
    else if (strcmp(key, "in_place") == 0)
        c->in_place = number;
    else if (strcmp(key, "layout") == 0)
        c->layout = find_name(layout_names, NLAYOUTS, value);
    else if (strcmp(key, "graph") == 0)
        c->graph = (int)number;
    else if (strcmp(key, "nodes") == 0)
        c->nodes = (int)number;
    else if (strcmp(key, "segment") == 0)
        c->segment = number;
    else if (strcmp(key, "rendezvous") == 0)
        c->rendezvous = number;
    else if (strcmp(key, "runs") == 0)
        c->runs = (int)number;
    else if (strcmp(key, "seed") == 0)
        c->seed = strtoull(value, NULL, 0);
    else
        return false;
    return c->op >= 0 && c->layout >= 0;
}

const char *case_parse(struct test_case *c, int nwords, char **words)
{
    for (int i = 0; i < nwords; i++) {
        char key[32];
        const char *equals = strchr(words[i], '=');
        if (!equals || equals - words[i] >= (int)sizeof key)
            return words[i];
        memcpy(key, words[i], (size_t)(equals - words[i]));
        key[equals - words[i]] = 0;
        if (!parse_word(c, key, equals + 1))
            return words[i];
    }
    return NULL;
}

static bool has_in_place(enum nbc_coll coll)
{
    return coll != NBC_BARRIER && coll != NBC_BCAST && coll < NBC_NEIGHBOR_ALLGATHER;
}

static bool has_root(enum nbc_coll coll)
{
    return (coll >= NBC_BCAST && coll <= NBC_SCATTERV) || coll == NBC_REDUCE;
}

void case_normalize(struct test_case *c)
{
    enum nbc_coll coll = c->alg->coll;
    if (!has_root(coll) || c->root >= c->size)
        c->root = 0;
    if (!has_in_place(coll) || c->remote)
        c->in_place = false;
    if (!nbc_coll_reduces(coll) || (c->op == HASH && coll != NBC_ALLREDUCE))
        c->op = SUM;
    if (nbc_coll_reduces(coll) && c->layout == MIXED) /* one datatype for all */
        c->layout = SCRAMBLED;
    if (coll < NBC_NEIGHBOR_ALLGATHER)
        c->graph = 0;
    if (c->nodes < 2 || c->nodes > c->size || c->remote || coll >= NBC_NEIGHBOR_ALLGATHER)
        c->nodes = 0;
    if (coll == NBC_BARRIER) {
        c->count = c->segment = 0;
        c->layout = PLAIN;
    }
    if (c->op == HASH || c->runs < 1)
        c->runs = 1;
}

/* --- who takes part, and with how much -------------------------------------------------------- */

/* Atoms of a unit, the smallest amount a block can have. In a mixed call it can be cut into
 * elements of one, two and three atoms. */
static int unit_atoms(int layout)
{
    static const int atoms[NLAYOUTS] = {1, 2, 2, 3, 2, 1, 1, 0, 6};
    return atoms[layout];
}

static bool is_neighbor(enum nbc_coll coll)
{
    return coll >= NBC_NEIGHBOR_ALLGATHER;
}

static int group_of(const struct world *w, int id)
{
    return id >= w->c.size;
}

static const char *group_name(const struct world *w, int id)
{
    return group_of(w, id) ? " of the second group" : "";
}

static int local_of(const struct world *w, int id)
{
    return group_of(w, id) ? id - w->c.size : id;
}

static int group_size(const struct world *w, int group)
{
    return group ? w->c.remote : w->c.size;
}

static int npeers(const struct world *w, int id)
{
    return group_size(w, w->c.remote ? !group_of(w, id) : 0);
}

/* Number of a peer over both groups. */
static int peer_id(const struct world *w, int id, int peer)
{
    return w->c.remote && !group_of(w, id) ? w->c.size + peer : peer;
}

static bool is_root(const struct world *w, int id)
{
    return id == w->c.root;
}

/* In the group that the root talks to. */
static bool is_leaf(const struct world *w, int id)
{
    return !w->c.remote || group_of(w, id);
}

static bool uneven(enum nbc_coll coll)
{
    switch (coll) {
    case NBC_GATHERV:
    case NBC_SCATTERV:
    case NBC_ALLGATHERV:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
    case NBC_REDUCE_SCATTER:
    case NBC_NEIGHBOR_ALLGATHERV:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return true;
    default:
        return false;
    }
}

/* Units of an uneven block that x and y tell from others: a quarter of them are empty. */
static int64_t some_units(const struct test_case *c, uint64_t x, uint64_t y)
{
    uint64_t h = hash3(c->seed, x, y);
    if (c->even)
        return c->count;
    if (c->count == 0 || h % 4 == 0)
        return 0;
    return (int64_t)(h / 4 % (2 * (uint64_t)c->count + 1));
}

/* The groups of an intercommunicator reduce vectors of one length, each cut up for the other. */
static int64_t scattered_units(const struct world *w, int group, int local)
{
    const struct test_case *c = &w->c;
    if (c->alg->coll == NBC_REDUCE_SCATTER_BLOCK)
        return c->remote ? c->count * group_size(w, !group) : c->count;
    if (!c->remote)
        return some_units(c, 0, (uint64_t)local);
    int64_t n = c->count * (c->size + c->remote), parts = group_size(w, group);
    int64_t skew = local + 1 < parts ? 0 : n % 3; /* the last one has a little more */
    n -= n % 3;
    return nbc_part_start(n, (int)parts, local + 1) - nbc_part_start(n, (int)parts, local) + skew;
}

/* Index in the source's destinations of the edge that is this one of our sources. */
static int matching_edge(const struct world *w, int id, int k)
{
    const struct nbc_neighbors *mine = &w->party[id].neighbors;
    if (mine->cartesian)
        return k ^ 1; /* what is sent upwards comes from below */
    const struct nbc_neighbors *theirs = &w->party[mine->sources[k]].neighbors;
    int nth = 0, j = 0;
    for (int i = 0; i < k; i++)
        nth += mine->sources[i] == mine->sources[k];
    while (theirs->destinations[j] != id || nth-- > 0)
        j++;
    return j;
}

/* Units in the block that goes from one rank to its peer (or neighbor) k. */
static int64_t units(const struct world *w, int from, int k)
{
    const struct test_case *c = &w->c;
    uint64_t to = (uint64_t)(is_neighbor(c->alg->coll) ? k : peer_id(w, from, k));
    uint64_t x = (uint64_t)from;
    if (!uneven(c->alg->coll))
        return c->count;
    switch (c->alg->coll) {
    case NBC_SCATTERV:
        return some_units(c, 0, to);
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        if (c->in_place && x > to) /* what goes there comes back */
            return some_units(c, to, x);
        return some_units(c, x, to);
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return some_units(c, x, to);
    default:
        return some_units(c, x, 0);
    }
}

static int out_blocks(const struct world *w, int id)
{
    const struct nbc_neighbors *n = &w->party[id].neighbors;
    switch (w->c.alg->coll) {
    case NBC_BARRIER:
    case NBC_BCAST: /* has one side, the other one */
        return 0;
    case NBC_GATHER:
    case NBC_GATHERV:
    case NBC_REDUCE:
        return is_leaf(w, id);
    case NBC_SCATTER:
    case NBC_SCATTERV:
        return is_root(w, id) ? npeers(w, id) : 0;
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        return npeers(w, id);
    case NBC_REDUCE_SCATTER_BLOCK:
    case NBC_REDUCE_SCATTER:
        return group_size(w, group_of(w, id));
    case NBC_NEIGHBOR_ALLTOALL:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        return n->outdegree;
    default:
        return 1;
    }
}

static int in_blocks(const struct world *w, int id)
{
    switch (w->c.alg->coll) {
    case NBC_BARRIER:
        return 0;
    case NBC_GATHER:
    case NBC_GATHERV:
        return is_root(w, id) ? npeers(w, id) : 0;
    case NBC_REDUCE:
        return is_root(w, id);
    case NBC_BCAST:
        return is_root(w, id) || is_leaf(w, id);
    case NBC_SCATTER:
    case NBC_SCATTERV:
        return is_leaf(w, id);
    case NBC_ALLGATHER:
    case NBC_ALLGATHERV:
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        return npeers(w, id);
    default:
        return is_neighbor(w->c.alg->coll) ? w->party[id].neighbors.indegree : 1;
    }
}

/* Rank that the block comes from, and its number among that rank's. Not for reductions. */
static int block_source(const struct world *w, int id, int i, int *number)
{
    *number = 0;
    switch (w->c.alg->coll) {
    case NBC_BCAST:
        return w->c.root;
    case NBC_SCATTER:
    case NBC_SCATTERV:
        *number = local_of(w, id);
        return w->c.root;
    case NBC_ALLTOALL:
    case NBC_ALLTOALLV:
    case NBC_ALLTOALLW:
        *number = local_of(w, id);
        return peer_id(w, id, i);
    case NBC_NEIGHBOR_ALLGATHER:
    case NBC_NEIGHBOR_ALLGATHERV:
        return w->party[id].neighbors.sources[i];
    case NBC_NEIGHBOR_ALLTOALL:
    case NBC_NEIGHBOR_ALLTOALLV:
    case NBC_NEIGHBOR_ALLTOALLW:
        *number = w->party[id].neighbors.sources[i] < 0 ? 0 : matching_edge(w, id, i);
        return w->party[id].neighbors.sources[i];
    default:
        return peer_id(w, id, i);
    }
}

static int64_t out_units(const struct world *w, int id, int i)
{
    bool scatters =
        w->c.alg->coll == NBC_REDUCE_SCATTER || w->c.alg->coll == NBC_REDUCE_SCATTER_BLOCK;
    return scatters ? scattered_units(w, group_of(w, id), i) : units(w, id, i);
}

static int64_t in_units(const struct world *w, int id, int i)
{
    enum nbc_coll coll = w->c.alg->coll;
    int number;
    if (coll == NBC_REDUCE_SCATTER || coll == NBC_REDUCE_SCATTER_BLOCK)
        return scattered_units(w, group_of(w, id), local_of(w, id));
    if (nbc_coll_reduces(coll))
        return w->c.count;
    int from = block_source(w, id, i, &number);
    return from < 0 ? w->c.count : units(w, from, number);
}

/* --- neighborhoods ---------------------------------------------------------------------------- */

enum graph { RING, GRID, TORUS, CUBE, MULTIGRAPH, SPARSE };

/* Splits n into dimensions; dimensions of 1 and 2 come up often. */
static int grid_dims(int n, int graph, struct rng *rng, int dims[4])
{
    int ndims = graph == RING ? 1 : graph == CUBE ? 3 : 2;
    for (int d = 0; d + 1 < ndims; d++) {
        int divisor = 1 + (int)rng_below(rng, n);
        while (n % divisor)
            divisor--;
        dims[d] = divisor;
        n /= divisor;
    }
    dims[ndims - 1] = n;
    return ndims;
}

static void make_grid(struct world *w, struct rng *rng)
{
    int dims[4], periodic[4], ndims = grid_dims(w->n, w->c.graph, rng, dims);
    for (int d = 0; d < ndims; d++)
        periodic[d] = w->c.graph == GRID ? (int)rng_below(rng, 2) : 1;
    for (int id = 0; id < w->n; id++) {
        int *list = malloc(2 * (size_t)ndims * sizeof *list), stride = w->n;
        for (int d = 0; d < ndims; d++) {
            stride /= dims[d];
            int at = id / stride % dims[d];
            for (int up = 0; up < 2; up++) {
                int to = up ? at + 1 : at - 1;
                bool over = to < 0 || to >= dims[d];
                to = (to + dims[d]) % dims[d];
                list[2 * d + up] = over && !periodic[d] ? -1 : id + (to - at) * stride;
            }
        }
        w->edges[id] = list;
        w->party[id].neighbors = (struct nbc_neighbors){list, list, 2 * ndims, 2 * ndims, true};
    }
}

/* Random edges, some twice, some to oneself; shuffled sources; MPI_PROC_NULL here and there. */
static void make_graph(struct world *w, struct rng *rng)
{
    int most = w->c.graph == SPARSE ? 3 : 6;
    int *degree = calloc((size_t)w->n, sizeof *degree);
    int room = 2 * (most + 1) * w->n + 1;
    for (int id = 0; id < w->n; id++) {
        int *list = malloc((size_t)(room + most + 1) * sizeof *list);
        int out = w->c.graph == SPARSE && rng_below(rng, 3) == 0 ? 0 : (int)rng_below(rng, most);
        for (int k = 0; k < out; k++) {
            int to = (int)rng_below(rng, w->n);
            list[room + k] = rng_below(rng, 9) == 0        ? -2
                             : k && rng_below(rng, 4) == 0 ? list[room]
                                                           : to;
        }
        w->edges[id] = list;
        w->party[id].neighbors = (struct nbc_neighbors){list, list + room, 0, out, false};
    }
    for (int id = 0; id < w->n; id++)
        for (int k = 0; k < w->party[id].neighbors.outdegree; k++) {
            int to = w->party[id].neighbors.destinations[k];
            if (to >= 0)
                w->edges[to][degree[to]++] = id;
        }
    for (int id = 0; id < w->n; id++) {
        int *list = w->edges[id];
        if (rng_below(rng, 5) == 0)
            list[degree[id]++] = -2;
        for (int k = degree[id] - 1; k > 0; k--) {
            int j = (int)rng_below(rng, k + 1), swap = list[k];
            list[k] = list[j];
            list[j] = swap;
        }
        w->party[id].neighbors.indegree = degree[id];
    }
    free(degree);
}

/* --- arguments -------------------------------------------------------------------------------- */

enum side { OUT, IN };

/* Slots of elements in a buffer bound the distance of a column's two atoms. */
static struct layout make_layout(int kind, int64_t slots)
{
    int64_t far = ATOM * (slots > 0 ? slots : 1);
    switch (kind) {
    case PAIR:
        return layout_make(ATOM, 2, (const int64_t[]){0, 8}, 16);
    case GAP:
        return layout_make(ATOM, 2, (const int64_t[]){0, 16}, 32);
    case SCRAMBLED:
        return layout_make(ATOM, 3, (const int64_t[]){8, -16, 0}, 40);
    case COLUMN:
        return layout_make(ATOM, 2, (const int64_t[]){0, far}, 8);
    case BACKWARD:
        return layout_make(ATOM, 1, (const int64_t[]){0}, -16);
    case SHIFTED:
        return layout_make(ATOM, 1, (const int64_t[]){24}, 8);
    case EMPTY:
        return layout_make(ATOM, 0, NULL, 8);
    default:
        return layout_make(ATOM, 1, (const int64_t[]){0}, 8);
    }
}

static int layout_kind(const struct world *w, int id, enum side side, int peer)
{
    if (w->c.layout != MIXED)
        return w->c.layout;
    return (int)(hash3(w->c.seed, (uint64_t)(2 * id + (int)side), (uint64_t)peer) % EMPTY);
}

static int64_t elements(const struct world *w, int kind, int64_t n)
{
    int atoms = unit_atoms(kind);
    return atoms ? n * unit_atoms(w->c.layout) / atoms : n;
}

static void *make_ints(int64_t n, int width)
{
    return calloc((size_t)n + 1, (size_t)width);
}

static void set_int(struct nbc_ints v, int64_t i, int64_t value)
{
    if (v.width == 4)
        ((int32_t *)v.data)[i] = (int32_t)value;
    else
        ((int64_t *)v.data)[i] = value;
}

/* A random order of 0 … n − 1. */
static int *permutation(struct rng *rng, int n)
{
    int *order = malloc(((size_t)n + 1) * sizeof *order);
    for (int i = 0; i < n; i++) {
        int j = (int)rng_below(rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

/* Displacements in elements: blocks in any order, with holes. Returns the number of slots used. */
static int64_t place_elements(struct nbc_side *side, int n, struct rng *rng, int64_t start)
{
    int *order = permutation(rng, n);
    for (int k = 0; k < n; k++) {
        start += rng_below(rng, 3);
        set_int(side->displs, order[k], start);
        start += nbc_ints_at(side->counts, order[k]);
    }
    free(order);
    return start;
}

/* Displacements in bytes of blocks of different types, one behind the other in some order. */
static void place_bytes(struct party *p, struct nbc_side *side, int n, struct rng *rng)
{
    int *order = permutation(rng, n);
    int64_t at = 0;
    for (int k = 0; k < n; k++) {
        int64_t low, high;
        struct nbc_ref r = {.count = nbc_ints_at(side->counts, order[k]),
                            .type = side->type + order[k]};
        nbc_ref_span(&p->shape, r, &low, &high);
        set_int(side->displs, order[k], at - low);
        at += high - low + 8 * rng_below(rng, 2);
    }
    free(order);
}

static void set_type(struct party *p, int slot, struct layout l)
{
    p->layouts[slot] = l;
    p->types[slot] = l.type;
}

static void make_peer_types(struct party *p, enum side s, struct nbc_side *side, int n,
                            struct rng *rng)
{
    const struct world *w = p->world;
    side->peer_types = side->displs_bytes = true;
    if (w->c.layout == MIXED) {
        for (int i = 0; i < n; i++) {
            int kind = layout_kind(w, p->id, s, i);
            int64_t count =
                elements(w, kind, s == OUT ? out_units(w, p->id, i) : in_units(w, p->id, i));
            set_int(side->counts, i, count);
            set_type(p, side->type + i, make_layout(kind, count));
        }
        place_bytes(p, side, n, rng);
        return;
    }
    int64_t slots = place_elements(side, n, rng, 0);
    for (int i = 0; i < n; i++) {
        set_type(p, side->type + i, make_layout(w->c.layout, slots));
        set_int(side->displs, i, nbc_ints_at(side->displs, i) * p->types[side->type + i].extent);
    }
}

static bool has_displs(enum nbc_coll coll)
{
    return uneven(coll) && coll != NBC_REDUCE_SCATTER;
}

static bool per_peer_types(enum nbc_coll coll)
{
    return coll == NBC_ALLTOALLW || coll == NBC_NEIGHBOR_ALLTOALLW;
}

/* Arguments of a side with n blocks. The arrays are exactly as long as the standard says. */
static void make_side(struct party *p, enum side s, int n, struct rng *rng)
{
    const struct world *w = p->world;
    enum nbc_coll coll = w->c.alg->coll;
    struct nbc_side *side = s == OUT ? &p->shape.send : &p->shape.recv;
    int kind = layout_kind(w, p->id, s, -1), width = rng_below(rng, 2) ? 8 : 4;
    /* Not every collective with uneven blocks has a count per block on both sides. */
    bool one = coll == NBC_REDUCE_SCATTER ? s == IN
               : coll == NBC_GATHERV || coll == NBC_ALLGATHERV || coll == NBC_NEIGHBOR_ALLGATHERV
                   ? s == OUT
                   : coll == NBC_SCATTERV && s == IN;
    int64_t slots = 0;
    if (!uneven(coll) || one) {
        side->count = elements(w, kind, s == OUT ? out_units(w, p->id, 0) : in_units(w, p->id, 0));
        set_type(p, side->type, make_layout(kind, side->count * n));
        return;
    }
    side->counts = (struct nbc_ints){p->counts[s] = make_ints(n, width), width};
    for (int i = 0; i < n; i++) {
        int64_t count =
            elements(w, kind, s == OUT ? out_units(w, p->id, i) : in_units(w, p->id, i));
        set_int(side->counts, i, count);
        slots += count;
    }
    if (has_displs(coll))
        side->displs = (struct nbc_ints){p->displs[s] = make_ints(n, width), width};
    else
        side->displs_implied = true;
    if (per_peer_types(coll)) {
        make_peer_types(p, s, side, n, rng);
        return;
    }
    if (has_displs(coll))
        slots = place_elements(side, n, rng, rng_below(rng, 4));
    set_type(p, side->type, make_layout(kind, slots));
}

/* Arguments that are not significant on a rank may be anything. */
static void make_rubbish(struct party *p, enum side s)
{
    struct nbc_side *side = s == OUT ? &p->shape.send : &p->shape.recv;
    side->count = 1000003;
    if (!per_peer_types(p->shape.coll))
        set_type(p, side->type, layout_make(1, 3, (const int64_t[]){5, 1, 3}, 7));
}

static void make_shape(struct world *w, int id)
{
    const struct test_case *c = &w->c;
    struct party *p = &w->party[id];
    struct rng rng = {hash3(c->seed, 77, (uint64_t)id)};
    enum nbc_coll coll = c->alg->coll;
    bool scatter = coll == NBC_SCATTER || coll == NBC_SCATTERV;
    bool gather = coll == NBC_GATHER || coll == NBC_GATHERV || coll == NBC_REDUCE;
    int nout = out_blocks(w, id), nin = in_blocks(w, id), group = group_of(w, id);
    int nslots = NBC_TYPE_FIRST_PEER + (per_peer_types(coll) ? nout + nin : 0);
    p->types = calloc((size_t)nslots, sizeof *p->types);
    p->layouts = calloc((size_t)nslots, sizeof *p->layouts);
    p->shape = (struct nbc_shape){
        .coll = coll,
        .rank = local_of(w, id),
        .size = group_size(w, group),
        .remote_size = c->remote ? group_size(w, !group) : 0,
        .root = !c->remote       ? c->root
                : group          ? c->root
                : is_root(w, id) ? NBC_ROOT_HERE
                                 : NBC_ROOT_IDLE,
        .in_place = c->in_place && (!(scatter || gather) || is_root(w, id)),
        .commutative = c->op != AFFINE,
        .types = p->types,
        .ntypes = nslots,
        .segment = c->segment,
        .neighbors = is_neighbor(coll) ? &p->neighbors : NULL,
        .send.type = per_peer_types(coll) ? NBC_TYPE_FIRST_PEER : NBC_TYPE_SEND,
        .recv.type = per_peer_types(coll) ? NBC_TYPE_FIRST_PEER + nout : NBC_TYPE_RECV,
    };
    if (w->nodes.nnodes)
        p->shape.nodes = &w->nodes;
    for (int slot = 0; slot < nslots; slot++)
        set_type(p, slot, layout_make(1, 1, (const int64_t[]){0}, 1));
    bool out = nout && !(p->shape.in_place && !scatter),
         in = nin && !(p->shape.in_place && scatter);
    if (nbc_coll_reduces(coll)) { /* one count and type for both sides, significant everywhere */
        out = in = !c->remote || coll != NBC_REDUCE || p->shape.root != NBC_ROOT_IDLE;
        nout = nout ? nout : 1;
    }
    if (out)
        make_side(p, OUT, nout, &rng);
    else
        make_rubbish(p, OUT);
    if (in)
        make_side(p, IN, nin ? nin : 1, &rng);
    else
        make_rubbish(p, IN);
    if (nbc_coll_reduces(coll) && out) /* the same handle: the same layout */
        set_type(p, p->shape.recv.type, p->layouts[p->shape.send.type]);
}

/* Nodes by blocks of ranks, or dealt out; numbered by their lowest rank. */
static void make_nodes(struct world *w)
{
    int n = w->c.size, nodes = w->c.nodes;
    if (nodes < 2 || nodes > n)
        return;
    if (w->c.alg->needs & NBC_EQUAL) {
        while (n % nodes)
            nodes++;
        w->nodes = nbc_nodes_blocks(n, n / nodes);
        return;
    }
    w->node_of = malloc((size_t)n * sizeof *w->node_of);
    for (int i = 0; i < n; i++) {
        int spread = w->c.seed % 2 ? i : (int)((int64_t)i * nodes / n);
        w->node_of[i] = i < nodes && w->c.seed % 2 ? i : spread % nodes;
    }
    for (int i = 0, seen = 0; i < n && w->c.seed % 3 == 0; i++) { /* anywhere, but numbered so */
        if (w->node_of[i] == seen)
            seen++;
        else
            w->node_of[i] = (int)(hash3(w->c.seed, 5, (uint64_t)i) % (uint64_t)seen);
    }
    if (!nbc_nodes_make(&w->nodes, w->node_of, n))
        abort();
}

/* --- buffers and results ---------------------------------------------------------------------- */

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

/* For bits alone. The program says that it commutes, and of the values that may be true, as of the
 * maximum of −0 and +0. */
static void op_hash(void *dst, const void *left, const void *right)
{
    uint64_t x, y;
    memcpy(&x, left, ATOM);
    memcpy(&y, right, ATOM);
    x = hash3(1, x, y);
    memcpy(dst, &x, ATOM);
}

static void (*const op_functions[NOPS])(void *, const void *, const void *) = {op_sum, op_affine,
                                                                               op_hash};

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

/* Reductions over the ranks 0 … r of a group, for every r and run. */
static void fold(struct world *w)
{
    w->total = vector_atoms(w, 0);
    free(w->folded);
    w->folded = malloc((size_t)(w->c.runs * w->n * w->total + 1) * sizeof *w->folded);
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

/* Fresh contents, and what they must become. */
static void fill(struct party *p, int run)
{
    struct world *w = p->world;
    bool bcast = p->shape.coll == NBC_BCAST, reduces = nbc_coll_reduces(p->shape.coll);
    for (int b = 0; b < 2; b++)
        for (size_t i = 0; i < p->buffer[b].size; i++)
            p->buffer[b].memory[i] = (char)(i * 7 + (size_t)p->id * 13 + (size_t)run);
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
        while (i < buf->size && buf->memory[i] == buf->wanted[i])
            i++;
        if (i < buf->size)
            complain(w, "rank %d%s, run %d: byte %" PRId64 " of the %s buffer is wrong",
                     p->shape.rank, group_name(w, p->id), run,
                     (int64_t)(buf->memory + i - buf->base), names[b]);
    }
}

/* A barrier is left only when all ranks have entered it; of an intercommunicator, all ranks of the
 * other group. */
static void check_entered(struct world *w, const struct party *p, int run)
{
    for (int id = 0; id < w->n; id++) {
        const struct sim_rank *r = &w->ranks[id];
        if (id == p->id || (w->c.remote && group_of(w, id) == group_of(w, p->id)))
            continue;
        if (!r->live && r->run <= run)
            complain(w, "rank %d leaves the barrier before rank %d enters, run %d", p->id, id, run);
    }
}

/* Nobody leaves a barrier before all have entered it (from the other group, where there is one). */
static void check_barrier(struct world *w, const struct party *p, int run)
{
    for (int id = 0; id < w->n; id++) {
        const struct sim_rank *r = &w->ranks[id];
        bool counts = w->c.remote ? group_of(w, id) != group_of(w, p->id) : id != p->id;
        if (counts && r->run == run && !r->live)
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
    if (w->c.alg->coll == NBC_BARRIER)
        check_entered(w, p, run);
    if (w->c.op == HASH) /* has no definition to compare with: see world_result */
        return;
    compare(w, p, run);
    if (run + 1 < w->c.runs)
        fill(p, run + 1);
}

/* --- a case from start to end ----------------------------------------------------------------- */

struct world *world_new(const struct test_case *c)
{
    struct world *w = calloc(1, sizeof *w);
    struct rng rng = {hash3(c->seed, 3, 0)};
    w->c = *c;
    case_normalize(&w->c);
    c = &w->c;
    w->n = c->size + c->remote;
    w->party = calloc((size_t)w->n, sizeof *w->party);
    w->ranks = calloc((size_t)w->n, sizeof *w->ranks);
    w->edges = calloc((size_t)w->n, sizeof *w->edges);
    make_nodes(w);
    if (is_neighbor(c->alg->coll)) {
        if (c->graph < MULTIGRAPH)
            make_grid(w, &rng);
        else
            make_graph(w, &rng);
    }
    for (int id = 0; id < w->n; id++) {
        w->party[id].world = w;
        w->party[id].id = id;
        make_shape(w, id);
    }
    return w;
}

/* Whatever selection goes by must be the same on every rank: or they choose differently and hang.
 */
bool world_applies(struct world *w)
{
    bool first = nbc_alg_applies(w->c.alg, &w->party[0].shape);
    int64_t bytes = nbc_shape_bytes(&w->party[0].shape);
    for (int id = 1; id < w->n; id++) {
        const struct nbc_shape *s = &w->party[id].shape;
        if (nbc_alg_applies(w->c.alg, s) != first)
            complain(w, "the algorithm applies on some ranks only");
        if (nbc_shape_bytes(s) != bytes)
            complain(w, "shape bytes are %" PRId64 " on rank 0 and %" PRId64 " on rank %d%s", bytes,
                     nbc_shape_bytes(s), s->rank, group_name(w, id));
    }
    return first;
}

const char *world_build(struct world *w)
{
    for (int id = 0; id < w->n && !w->text[0]; id++) {
        struct party *p = &w->party[id];
        p->sched = w->c.alg->build(&p->shape);
        if (!p->sched)
            complain(w, "rank %d%s: there is no schedule", p->shape.rank, group_name(w, id));
        w->messages += p->sched ? p->sched->nmsgs : 0;
    }
    return w->text[0] ? w->text : NULL;
}

const char *world_check(struct world *w)
{
    char text[400];
    for (int id = 0; id < w->n && !w->text[0]; id++) {
        struct party *p = &w->party[id];
        const char *wrong = nbc_sched_check(p->sched, &p->shape, text, sizeof text);
        if (wrong)
            complain(w, "rank %d%s: %s", p->shape.rank, group_name(w, id), wrong);
    }
    return w->text[0] ? w->text : NULL;
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

void world_print(const struct world *w, FILE *out)
{
    for (int id = 0; id < w->n; id++) {
        const struct party *p = &w->party[id];
        fprintf(out, "--- rank %d%s: ", p->shape.rank, group_name(w, id));
        if (p->sched)
            nbc_sched_print(p->sched, out);
        else
            fputs("no schedule\n", out);
    }
}

void world_free(struct world *w)
{
    for (int id = 0; id < w->n; id++) {
        struct party *p = &w->party[id];
        nbc_sched_free(p->sched);
        for (int i = 0; i < 2; i++) {
            free(p->counts[i]);
            free(p->displs[i]);
            free(p->buffer[i].memory);
            free(p->buffer[i].wanted);
        }
        free(p->types);
        free(p->layouts);
        free(w->edges[id]);
    }
    free(w->edges);
    free(w->folded);
    free(w->node_of);
    nbc_nodes_free(&w->nodes);
    free(w->ranks);
    free(w->party);
    free(w);
}

static const char *simulate(struct world *w)
{
    const struct sim_config config = {
        .seed = w->c.seed,
        .rendezvous = w->c.rendezvous,
        .jitter = (int)(w->c.seed % 4),
        .delay = w->c.seed % 3 ? 0 : 5,
    };
    struct sim *sim = sim_new(&config);
    world_start(w, sim);
    const char *stuck = sim_run(sim);
    if (!world_result(w) && stuck)
        complain(w, "%s", stuck);
    sim_free(sim);
    return w->text[0] ? w->text : NULL;
}

enum outcome case_run(const struct test_case *c, int64_t most_messages, char *text, size_t size)
{
    struct world *w = world_new(c);
    enum outcome outcome = WENT_WELL;
    bool applies = world_applies(w);
    if (!w->text[0] && (!applies || (!world_build(w) && w->messages > most_messages)))
        outcome = NOT_RUN;
    else if (w->text[0] || world_check(w) || simulate(w))
        outcome = FAILED;
    snprintf(text, size, "%s", w->text);
    world_free(w);
    return outcome;
}
