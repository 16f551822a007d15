/* SPDX-License-Identifier: MIT */
#include "parts.h"
#include "sched_check.h"
#include "sched_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- a case as text --------------------------------------------------------------------------- */

static const char *const layout_names[] = {"plain",    "pair",    "gap",   "scrambled", "column",
                                           "backward", "shifted", "empty", "mixed"};
static const char *const op_names[] = {"sum", "affine", "hash", "ranks", "tree"};

void case_print(const struct test_case *c, char *text, size_t size)
{
    snprintf(text, size,
             "%s:%s P=%d remote=%d root=%d count=%" PRId64
             " op=%s in_place=%d layout=%s graph=%d nodes=%d segment=%" PRId64
             " sockets=%d rendezvous=%d runs=%d seed=%" PRIu64,
             nbc_coll_name(c->alg->coll), c->alg->name, c->size, c->remote, c->root, c->count,
             op_names[c->op], c->in_place, layout_names[c->layout], c->graph, c->nodes, c->segment,
             c->sockets, c->rendezvous, c->runs, c->seed);
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
    else if (strcmp(key, "sockets") == 0)
        c->sockets = number;
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
    return coll != NBC_BARRIER && coll != NBC_BCAST && !nbc_coll_is_neighborhood(coll);
}

void case_normalize(struct test_case *c)
{
    enum nbc_coll coll = c->alg->coll;
    if (!nbc_coll_has_root(coll) || c->root >= c->size)
        c->root = 0;
    if (!has_in_place(coll) || c->remote)
        c->in_place = false;
    if (!nbc_coll_reduces(coll) || (c->op == HASH && coll != NBC_ALLREDUCE))
        c->op = SUM;
    if (nbc_coll_reduces(coll) && c->layout == MIXED) /* one datatype for all */
        c->layout = SCRAMBLED;
    if (!nbc_coll_is_neighborhood(coll))
        c->graph = 0;
    if (c->nodes < 2 || c->nodes > c->size || c->remote ||
        (nbc_coll_is_neighborhood(coll) && !(c->alg->needs & NBC_NODES)))
        c->nodes = 0;
    if (coll == NBC_BARRIER) {
        c->count = c->segment = 0;
        c->layout = PLAIN;
    }
    if (c->op == HASH || c->runs < 1)
        c->runs = 1;
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

/* Behind them one that nobody may look at. */
static void *make_ints(int64_t n, int width)
{
    char *ints = calloc((size_t)n + 1, (size_t)width);
    memset(ints + n * width, 0x3f, (size_t)width);
    return ints;
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

/* Arguments of a side with n blocks. The arrays are exactly as long as the standard says. */
static void make_side(struct party *p, enum side s, int n, struct rng *rng)
{
    const struct world *w = p->world;
    enum nbc_coll coll = w->c.alg->coll;
    struct nbc_side *side = s == OUT ? &p->shape.send : &p->shape.recv;
    int kind = layout_kind(w, p->id, s, -1), width = rng_below(rng, 2) ? 8 : 4;
    int64_t slots = 0;
    if (!nbc_coll_has_counts(coll, s == OUT)) {
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
    if (nbc_coll_has_types(coll)) {
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
    if (!nbc_coll_has_types(p->shape.coll))
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
    int nslots = NBC_TYPE_FIRST_PEER + (nbc_coll_has_types(coll) ? nout + nin : 0);
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
        .commutative = c->op == SUM || c->op == HASH,
        .order = c->op == RANKS  ? NBC_ORDER_RANKS
                 : c->op == TREE ? NBC_ORDER_TREE
                                 : NBC_ORDER_ANY,
        .types = p->types,
        .ntypes = nslots,
        .segment = c->segment,
        .sockets = c->sockets,
        .neighbors = nbc_coll_is_neighborhood(coll) ? &p->neighbors : NULL,
        .send.type = nbc_coll_has_types(coll) ? NBC_TYPE_FIRST_PEER : NBC_TYPE_SEND,
        .recv.type = nbc_coll_has_types(coll) ? NBC_TYPE_FIRST_PEER + nout : NBC_TYPE_RECV,
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

/* Every rank gets the offers of the ranks of its node. */
static void make_pattern(struct world *w, int id)
{
    struct party *p = &w->party[id];
    int node = nbc_node_of(&w->nodes, id), n = nbc_node_size(&w->nodes, node), room = 1;
    struct nbc_offer *offers = calloc((size_t)n, sizeof *offers);
    for (int i = 0; i < n; i++) {
        if (!nbc_offer_make(&offers[i], &w->party[nbc_node_member(&w->nodes, node, i)].shape))
            abort();
        room = offers[i].n > room ? offers[i].n : room;
    }
    struct nbc_edge *all = calloc((size_t)n * (size_t)room, sizeof *all);
    for (int i = 0; i < n; i++) {
        memcpy(all + i * room, offers[i].edges, (size_t)offers[i].n * sizeof *all);
        free(offers[i].edges);
    }
    if (!nbc_pattern_make(&p->pattern, all, n, room))
        abort();
    p->pattern.apart = w->c.seed / 7 % 2;
    p->shape.pattern = &p->pattern;
    free(all);
    free(offers);
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
    if (nbc_coll_is_neighborhood(c->alg->coll)) {
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
    bool has_pattern =
        w->nodes.nnodes && c->alg->needs & NBC_PATTERN && !w->party[0].shape.in_place;
    for (int id = 0; id < w->n && has_pattern; id++)
        make_pattern(w, id);
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
        p->sched = nbc_build(w->c.alg->build, &p->shape);
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
        const char *wrong = sched_check(p->sched, &p->shape, text, sizeof text);
        if (wrong)
            complain(w, "rank %d%s: %s", p->shape.rank, group_name(w, id), wrong);
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
        nbc_pattern_free(&p->pattern);
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
        .staged = w->c.seed / 4 % 3 == 0,
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
