/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct testcase {
    struct spec spec;
    struct rng own;
    struct side send, recv;
    int *counts; /* reduce_scatter: elements for each rank */
    MPI_Count *large_counts;
    MPI_Op op;
    int round;
    bool in_place; /* this rank passes MPI_IN_PLACE */
};

/* --- what the collectives are ------------------------------------------------------------------*/

static const char *const names[NCOLLS] = {
#define COLL(NAME, name, Name) #name,
#include "colls.def"
#undef COLL
};

const char *coll_name(enum coll coll)
{
    return names[coll];
}

enum coll coll_by_name(const char *name)
{
    int i = 0;

    while (i < NCOLLS && strcasecmp(names[i], name) != 0)
        i++;
    return (enum coll)i;
}

bool coll_rooted(enum coll coll)
{
    return (coll >= BCAST && coll <= SCATTERV) || coll == REDUCE;
}

bool coll_reduces(enum coll coll)
{
    return coll >= REDUCE && coll <= EXSCAN;
}

/* The blocks may differ in size. */
static bool uneven(enum coll coll)
{
    switch (coll) {
    case GATHERV:
    case SCATTERV:
    case ALLGATHERV:
    case ALLTOALLV:
    case ALLTOALLW:
    case REDUCE_SCATTER:
    case NEIGHBOR_ALLGATHERV:
    case NEIGHBOR_ALLTOALLV:
    case NEIGHBOR_ALLTOALLW:
        return true;
    default:
        return false;
    }
}

static bool alltoall(enum coll coll)
{
    return coll >= ALLTOALL && coll <= ALLTOALLW;
}

static bool scatters(enum coll coll)
{
    return coll == SCATTER || coll == SCATTERV;
}

static bool reduce_scatters(enum coll coll)
{
    return coll == REDUCE_SCATTER || coll == REDUCE_SCATTER_BLOCK;
}

static enum placing send_placing(enum coll coll)
{
    if (coll == ALLTOALLW || coll == NEIGHBOR_ALLTOALLW)
        return TYPED;
    return coll == SCATTERV || coll == ALLTOALLV || coll == NEIGHBOR_ALLTOALLV ? SPREAD : DENSE;
}

static enum placing recv_placing(enum coll coll)
{
    if (coll == ALLTOALLW || coll == NEIGHBOR_ALLTOALLW)
        return TYPED;
    return coll == GATHERV || coll == ALLGATHERV || coll == ALLTOALLV ||
                   coll == NEIGHBOR_ALLGATHERV || coll == NEIGHBOR_ALLTOALLV
               ? SPREAD
               : DENSE;
}

/* --- groups and specs --------------------------------------------------------------------------*/

/* The group whose first process is the lower one in the world comes first. */
static void number_groups(struct group *g)
{
    MPI_Group world, local, remote;
    int zero = 0, here, there;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(g->comm, &local);
    MPI_Comm_remote_group(g->comm, &remote);
    MPI_Group_translate_ranks(local, 1, &zero, world, &here);
    MPI_Group_translate_ranks(remote, 1, &zero, world, &there);
    g->first = here < there ? 0 : g->remote;
    g->first_peer = here < there ? g->size : 0;
    MPI_Group_free(&world);
    MPI_Group_free(&local);
    MPI_Group_free(&remote);
}

struct group *group_new(MPI_Comm comm)
{
    struct group *g = test_alloc(sizeof *g);
    int inter;

    *g = (struct group){.comm = comm};
    MPI_Comm_rank(comm, &g->rank);
    MPI_Comm_size(comm, &g->size);
    MPI_Comm_test_inter(comm, &inter);
    if (inter) {
        MPI_Comm_remote_size(comm, &g->remote);
        number_groups(g);
    } else {
        g->topology = topology_of(comm);
    }
    return g;
}

int group_total(const struct group *g)
{
    return g->size + g->remote;
}

static int number_here(const struct group *g)
{
    return g->first + g->rank;
}

static int number_of_peers(const struct group *g)
{
    return g->remote ? g->remote : g->size;
}

static bool is_root(const struct spec *s)
{
    return s->root == number_here(s->group);
}

/* Gives to the root or takes from it: all ranks, or those of the other group. */
static bool is_leaf(const struct spec *s)
{
    int root = s->root - s->group->first_peer;

    return root >= 0 && root < number_of_peers(s->group);
}

static int root_argument(const struct spec *s)
{
    if (is_leaf(s))
        return s->root - s->group->first_peer;
    return is_root(s) ? MPI_ROOT : MPI_PROC_NULL;
}

void group_delete(struct group *g)
{
    if (g->comm != MPI_COMM_WORLD && g->comm != MPI_COMM_NULL)
        MPI_Comm_free(&g->comm);
    topology_free(g->topology);
    free(g);
}

struct spec spec_random(enum coll coll, const struct group *group, uint64_t seed, int max_count)
{
    struct rng rng = {mix_in(seed, 1)};
    struct spec s = {.coll = coll, .group = group, .seed = seed};

    s.root = rng_below(&rng, group_total(group));
    s.style.kind = &kinds[rng_below(&rng, NKINDS)];
    if (coll_reduces(coll)) {
        s.op = &opdefs[rng_below(&rng, NOPS)];
        s.style.kind = &kinds[s.op->kind];
    }
    s.count = rng_chance(&rng, 10) ? 0 : rng_below(&rng, max_count + 1);
    s.style.fine = rng_chance(&rng, 50);
    if (!s.style.fine)
        s.count = (s.count + SEXTET - 1) / SEXTET;
    s.style.plain = rng_chance(&rng, 20);
    s.in_place = coll != BARRIER && coll != BCAST && coll < NINTRA && rng_chance(&rng, 30);
    s.in_place = s.in_place && group->remote == 0;
    s.large = rng_chance(&rng, 25) && !test_native;
    s.extension = rng_chance(&rng, 25);
    return s;
}

/* --- data --------------------------------------------------------------------------------------*/

/* Data elements that go from src to dst over an edge. */
static int64_t units_of(const struct spec *s, int src, int dst, int tag)
{
    int64_t count = s->count;

    if (uneven(s->coll) && count > 0) {
        /* In place, alltoallv and alltoallw need the same count in both directions. */
        bool swap = s->in_place && dst != ANYONE && dst < src;
        uint64_t h = mix_in(mix_in(mix_in(s->seed, swap ? dst : src), swap ? src : dst), tag);
        count = h % 4 == 0 ? 0 : (int64_t)(h / 4 % (uint64_t)(2 * count + 1));
    }
    return count * (s->style.fine ? 1 : SEXTET);
}

/* Stream of the data of a block; a data element is made from it and its index. */
static uint64_t block_key(const struct testcase *c, int src, int dst, int tag)
{
    uint64_t key = mix_in(mix_in(c->spec.seed, c->round), src);

    return mix_in(mix_in(key, dst), tag);
}

static void datum(const struct testcase *c, uint64_t key, int64_t unit, void *element)
{
    c->spec.style.kind->fill(element, mix64(key + (uint64_t)unit));
}

/* --- the blocks of each collective -------------------------------------------------------------*/

static void add_send(struct testcase *c, int dst, int tag)
{
    int me = number_here(c->spec.group);

    side_add(&c->send, me, dst, tag, units_of(&c->spec, me, dst, tag));
}

static void add_recv(struct testcase *c, int src, int dst, int tag)
{
    side_add(&c->recv, src, dst, tag, units_of(&c->spec, src, dst, tag))->nobody =
        src == MPI_PROC_NULL;
}

static void send_blocks(struct testcase *c)
{
    const struct spec *s = &c->spec;
    const struct group *g = s->group;
    int peers = number_of_peers(g);

    switch (s->coll) {
    case BARRIER:
        break;
    case BCAST:
        if (is_root(s))
            add_send(c, ANYONE, 0);
        break;
    case SCATTER:
    case SCATTERV:
        for (int i = 0; is_root(s) && i < peers; i++)
            add_send(c, g->first_peer + i, 0);
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        for (int i = 0; i < peers; i++)
            add_send(c, g->first_peer + i, 0);
        break;
    case NEIGHBOR_ALLTOALL:
    case NEIGHBOR_ALLTOALLV:
    case NEIGHBOR_ALLTOALLW:
        for (int i = 0; i < g->topology->out.n; i++)
            add_send(c, g->topology->out.peer[i], g->topology->out.tag[i]);
        break;
    default:
        if (!coll_rooted(s->coll) || is_leaf(s))
            add_send(c, ANYONE, 0);
        break;
    }
}

static void recv_blocks(struct testcase *c)
{
    const struct spec *s = &c->spec;
    const struct group *g = s->group;
    int peers = number_of_peers(g);

    switch (s->coll) {
    case BARRIER:
        break;
    case BCAST:
        if (is_leaf(s) && !is_root(s))
            add_recv(c, s->root, ANYONE, 0);
        break;
    case GATHER:
    case GATHERV:
        for (int i = 0; is_root(s) && i < peers; i++)
            add_recv(c, g->first_peer + i, ANYONE, 0);
        break;
    case SCATTER:
    case SCATTERV:
        if (is_leaf(s))
            add_recv(c, s->root, number_here(g), 0);
        break;
    case ALLGATHER:
    case ALLGATHERV:
        for (int i = 0; i < peers; i++)
            add_recv(c, g->first_peer + i, ANYONE, 0);
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        for (int i = 0; i < peers; i++)
            add_recv(c, g->first_peer + i, number_here(g), 0);
        break;
    case NEIGHBOR_ALLGATHER:
    case NEIGHBOR_ALLGATHERV:
        for (int i = 0; i < g->topology->in.n; i++)
            add_recv(c, g->topology->in.peer[i], ANYONE, 0);
        break;
    default:
        for (int i = 0; i < g->topology->in.n; i++)
            add_recv(c, g->topology->in.peer[i], g->rank, g->topology->in.tag[i]);
        break;
    }
}

/* --- making a case -----------------------------------------------------------------------------*/

static void make_movement(struct testcase *c)
{
    const struct spec *s = &c->spec;
    bool arguments = s->coll >= NINTRA; /* also on a rank without neighbors */
    int64_t units = s->count * (s->style.fine ? 1 : SEXTET);

    if (!c->in_place || scatters(s->coll))
        send_blocks(c);
    if (!c->in_place || !scatters(s->coll))
        recv_blocks(c);
    if (c->send.n > 0 || arguments)
        side_make(&c->send, &s->style, send_placing(s->coll), units, &c->own);
    if (c->recv.n > 0 || arguments)
        side_make(&c->recv, &s->style, recv_placing(s->coll), units, &c->own);
    if (s->coll == NEIGHBOR_ALLTOALLW && !s->open && rng_chance(&c->own, 20)) {
        side_use_addresses(&c->send);
        side_use_addresses(&c->recv);
    }
}

/* Data elements of a reduction that come before the share of `rank` in reduce_scatter. The groups
 * of an intercommunicator each cut the same number of them. */
static int64_t units_before(const struct spec *s, int rank)
{
    const struct group *g = s->group;
    int64_t step = s->style.fine ? 1 : SEXTET, sum = 0;

    if (g->remote && s->coll == REDUCE_SCATTER)
        return (int64_t)s->count * g->remote * rank * rank / g->size * step;
    if (g->remote)
        return (int64_t)s->count * g->remote * rank * step;
    for (int i = 0; i < rank; i++)
        sum += units_of(s, i, ANYONE, 0);
    return sum;
}

static int64_t units_share(const struct spec *s, int rank)
{
    return units_before(s, rank + 1) - units_before(s, rank);
}

/* Data elements that each rank puts in, and that this rank gets out. */
static int64_t units_in(const struct spec *s)
{
    return reduce_scatters(s->coll) ? units_before(s, s->group->size)
                                    : units_of(s, number_here(s->group), ANYONE, 0);
}

static int64_t units_out(const struct spec *s)
{
    return reduce_scatters(s->coll) ? units_share(s, s->group->rank)
                                    : units_of(s, number_here(s->group), ANYONE, 0);
}

static void make_counts(struct testcase *c, const struct layout *layout)
{
    int size = c->spec.group->size;

    c->counts = test_alloc((size_t)size * sizeof *c->counts);
    c->large_counts = test_alloc((size_t)size * sizeof *c->large_counts);
    for (int i = 0; i < size; i++)
        c->large_counts[i] = c->counts[i] = (int)(units_share(&c->spec, i) / layout->units);
}

/* The type is the same on all ranks, so it is drawn from a generator that they share; only the
 * user's operators take others than the predefined ones. With absolute addresses there can be one
 * buffer only. */
static void make_reduction(struct testcase *c)
{
    const struct spec *s = &c->spec;
    int me = number_here(s->group);
    struct rng shared = {mix_in(s->seed, 3)};
    struct style style = s->style;
    struct side *first = c->in_place ? &c->recv : &c->send;
    const struct layout *layout;

    if (!s->op->user)
        style.plain = true;
    if (!c->in_place && (s->coll != REDUCE || is_leaf(s)))
        side_add(&c->send, me, ANYONE, 0, units_in(s));
    if (s->coll != REDUCE || is_root(s))
        side_add(&c->recv, me, ANYONE, 0, c->in_place ? units_in(s) : units_out(s));
    if (s->in_place && !style.plain && !reduce_scatters(s->coll) && side_absolute_fits(first) &&
        rng_chance(&shared, 25)) {
        side_make_absolute(first, &style, &c->own);
        return;
    }
    layout = side_draw_layout(first, &style, &shared, units_in(s));
    if (c->send.n > 0)
        side_make_with(&c->send, layout);
    if (c->recv.n > 0)
        side_make_with(&c->recv, layout);
    if (reduce_scatters(s->coll))
        make_counts(c, layout);
    if (s->coll == EXSCAN && me == 0 && !c->in_place && rng_chance(&c->own, 50) && !IS_MPICH_43)
        c->recv.buf = NULL; /* not significant there */
}

/* Arguments that do not count on this rank are wrong sometimes. MPI_Bcast_c of MPICH 4.3 refuses
 * them. */
static void spoil(struct testcase *c, struct side *s)
{
    if (s->used || !rng_chance(&c->own, 50) || (IS_MPICH_43 && c->spec.coll == BCAST))
        return;
    s->count = -1;
    s->type = MPI_DATATYPE_NULL;
}

/* A buffer that does not count on this rank may be the other one. */
static void use_elsewhere(struct testcase *c, struct side *s, const struct side *other)
{
    if (!s->used && rng_chance(&c->own, 50))
        s->buf = other->buf;
}

/* Where a buffer is to be: NBC_DEVICE=device puts all of them in the memory of a device, mixed
 * some. */
static enum device_memory draw_memory(struct rng *rng)
{
    const char *wanted = getenv("NBC_DEVICE");
    int draw;

    if (!wanted || !*wanted)
        return ON_HOST;
    device_load_tested(); /* when the program has been in nbcshim already */
    if (strcmp(wanted, "device") == 0)
        return ON_DEVICE;
    draw = rng_below(rng, 5);
    return draw < 2 ? ON_HOST : draw < 4 ? ON_DEVICE : MANAGED;
}

/* Half of the buffers have one. */
static void draw_walls(struct testcase *c)
{
    struct rng rng = {mix_in(mix_in(c->spec.seed, 4), test_rank)};

    for (int i = 0; i < 2; i++) {
        int draw = rng_below(&rng, 2 * (NWALLS - 1));
        struct side *s = i ? &c->send : &c->recv;
        s->in = draw_memory(&rng);
        s->wall = draw < NWALLS && !s->in ? (enum wall)draw : NO_WALL;
    }
}

struct testcase *case_new(const struct spec *spec)
{
    struct testcase *c = test_alloc(sizeof *c);

    *c = (struct testcase){.spec = *spec, .op = MPI_OP_NULL};
    c->own = (struct rng){mix_in(mix_in(spec->seed, 2), test_rank)};
    c->in_place = spec->in_place && (!coll_rooted(spec->coll) || is_root(spec));
    c->send.type = c->recv.type = MPI_BYTE;
    if (!spec->open)
        draw_walls(c);
    if (coll_reduces(spec->coll)) {
        make_reduction(c);
        if (is_leaf(spec) || is_root(spec) || spec->coll != REDUCE)
            c->op = op_make(spec->op);
        else
            spoil(c, &c->recv);
    } else {
        make_movement(c);
        spoil(c, &c->send);
        spoil(c, &c->recv);
    }
    use_elsewhere(c, &c->send, &c->recv);
    use_elsewhere(c, &c->recv, &c->send);
    return c;
}

/* --- contents ----------------------------------------------------------------------------------*/

static void fill_pattern(const struct testcase *c, struct side *s)
{
    unsigned char period[256];
    size_t i;

    for (i = 0; i < sizeof period; i++)
        period[i] = (unsigned char)(0xA5 + 7 * i + (size_t)c->round);
    for (i = 0; i + sizeof period <= s->size; i += sizeof period)
        memcpy(s->memory + i, period, sizeof period);
    if (i < s->size)
        memcpy(s->memory + i, period, s->size - i);
}

static void fill_block(const struct testcase *c, struct side *s, const struct block *b,
                       uint64_t key)
{
    const struct kind *kind = c->spec.style.kind;
    struct walk walk = side_walk(s, s->memory, b);
    unsigned char element[KIND_MAX_SIZE];

    for (int64_t i = 0; i < b->units; i++) {
        datum(c, key, i, element);
        kind_copy(kind, walk_next(&walk), element);
    }
}

/* In place, the receive buffer holds what this rank sends. */
static void fill_in_place(struct testcase *c)
{
    int me = c->spec.group->rank;

    for (int i = 0; i < c->recv.n; i++) {
        const struct block *b = &c->recv.block[i];
        if (alltoall(c->spec.coll))
            fill_block(c, &c->recv, b, block_key(c, me, b->src, 0));
        else if (b->src == me)
            fill_block(c, &c->recv, b, block_key(c, me, ANYONE, 0));
    }
}

void case_fill(struct testcase *c, int round)
{
    c->round = round;
    side_protect(&c->send, true);
    fill_pattern(c, &c->send);
    fill_pattern(c, &c->recv);
    for (int i = 0; i < c->send.n; i++) {
        const struct block *b = &c->send.block[i];
        fill_block(c, &c->send, b, block_key(c, b->src, b->dst, b->tag));
    }
    if (c->in_place)
        fill_in_place(c);
    if (c->send.used)
        memcpy(c->send.filled, c->send.memory, c->send.size);
    if (c->recv.used)
        memcpy(c->recv.filled, c->recv.memory, c->recv.size);
    side_push(&c->send);
    side_push(&c->recv);
    /* MPICH 4.3 and 5.0 broadcast to the root too, unless it is the first rank of its node. */
    side_protect(&c->send, IS_MPICH_43 && c->spec.coll == BCAST);
}

static const char *mode_name(enum mode mode)
{
    static const char *const text[] = {"blocking", "nonblocking", "persistent"};
    return text[mode];
}

static void describe(const struct testcase *c, char *text, size_t size)
{
    const struct spec *s = &c->spec;
    const struct group *g = s->group;
    char op[40] = "";

    if (coll_reduces(s->coll))
        snprintf(op, sizeof op, ", %s", s->op->name);
    snprintf(text, size, "%s%s on %d + %d ranks, here %d, root %d, count %d%s of %s%s%s, round %d",
             coll_name(s->coll), s->large ? "_c" : "", g->size, g->remote, number_here(g), s->root,
             s->count, s->style.fine ? "" : " * 6", s->style.kind->name, op,
             s->in_place ? ", in place" : "", c->round);
}

static bool shorten(int *counts, MPI_Count *large_counts, int n)
{
    bool changed = false;

    for (int i = 0; counts && i < n; i++)
        if (counts[i] > 1) {
            counts[i]--;
            if (large_counts)
                large_counts[i]--;
            changed = true;
        }
    return changed;
}

bool case_shorten(struct testcase *c, bool send)
{
    struct side *s = send ? &c->send : &c->recv;
    bool changed;

    if (reduce_scatters(c->spec.coll))
        return send && shorten(c->counts, c->large_counts, c->spec.group->size);
    if (!s->used || (!send && coll_reduces(c->spec.coll) && c->send.used))
        return false;
    changed = shorten(s->counts, s->large_counts, s->n);
    return shorten(&s->count, NULL, 1) || changed;
}

/* --- the call ----------------------------------------------------------------------------------*/

#define FORM(name) name
#define SUFFIX
#define INIT(suffix, Name) (c->spec.extension ? MPIX_##Name##_init : MPI_##Name##_init##suffix)
#define COUNTS(of) (of)->counts
#define DISPLS(of) (of)->displs
#include "calls.def"
#undef FORM
#undef SUFFIX
#undef INIT
#undef COUNTS
#undef DISPLS

#define FORM(name) name##_large
#define SUFFIX _c
#define INIT(suffix, Name) MPI_##Name##_init##suffix
#define COUNTS(of) (of)->large_counts
#define DISPLS(of) (of)->byte_displs
#include "calls.def"

int case_call(struct testcase *c, enum mode mode, MPI_Info info, MPI_Request *request)
{
    char text[200];

    describe(c, text, sizeof text);
    test_place("%s %s", mode_name(mode), text);
    return (c->spec.large ? call_large : call)(c, mode, info, request);
}

void case_drop(struct testcase *c)
{
    if (test_native)
        return;
    side_drop(&c->send);
    side_drop(&c->recv);
    if (c->counts) {
        memset(c->counts, 0x55, (size_t)c->spec.group->size * sizeof *c->counts);
        memset(c->large_counts, 0x55, (size_t)c->spec.group->size * sizeof *c->large_counts);
    }
    if (c->op != MPI_OP_NULL && c->spec.op->user)
        MPI_Op_free(&c->op);
    c->op = MPI_OP_NULL;
}

/* --- the check ---------------------------------------------------------------------------------*/

/* Input of ranks first to last, reduced in the order of ranks: data elements from `start` on. */
static unsigned char *reduce_inputs(const struct testcase *c, int first, int last, int64_t start,
                                    int64_t n)
{
    size_t size = (size_t)c->spec.style.kind->size;
    unsigned char *result = test_alloc((size_t)n * size);
    unsigned char next[KIND_MAX_SIZE];
    uint64_t *key = test_alloc((size_t)(last - first + 1) * sizeof *key);

    for (int i = first; i <= last; i++)
        key[i - first] = block_key(c, c->spec.group->first_peer + i, ANYONE, 0);
    for (int64_t u = 0; u < n; u++) {
        unsigned char *left = result + (size_t)u * size;
        memset(left, 0, size);
        datum(c, key[0], start + u, left);
        for (int i = first + 1; i <= last; i++) {
            memset(next, 0, sizeof next);
            datum(c, key[i - first], start + u, next);
            c->spec.op->apply(left, next);
            memcpy(left, next, size);
        }
    }
    free(key);
    return result;
}

/* What a reduction leaves open: gaps of pair types, what is behind the result in reduce_scatter in
 * place, the buffer of rank 0 in exscan. So these bytes are taken as they are. */
static void expect_reduction(const struct testcase *c, unsigned char *expected)
{
    const struct spec *s = &c->spec;
    const struct side *r = &c->recv;
    const struct block *b = &r->block[0];
    int me = s->group->rank, peers = number_of_peers(s->group);
    int first = 0, last = s->coll == SCAN ? me : s->coll == EXSCAN ? me - 1 : peers - 1;
    int64_t n = units_out(s);
    struct walk to = side_walk(r, expected, b), from = side_walk(r, r->memory, b);
    unsigned char *result;

    for (int64_t i = 0; i < b->units; i++)
        memcpy(walk_next(&to), walk_next(&from), (size_t)s->style.kind->size);
    if (last < first)
        return;
    result = reduce_inputs(c, first, last, reduce_scatters(s->coll) ? units_before(s, me) : 0, n);
    to = side_walk(r, expected, b);
    for (int64_t i = 0; i < n; i++)
        kind_copy(s->style.kind, walk_next(&to), result + (size_t)i * (size_t)s->style.kind->size);
    free(result);
}

static void expect_movement(const struct testcase *c, unsigned char *expected)
{
    const struct side *r = &c->recv;
    unsigned char element[KIND_MAX_SIZE];

    for (int i = 0; i < r->n; i++) {
        const struct block *b = &r->block[i];
        struct walk walk = side_walk(r, expected, b);
        uint64_t key = block_key(c, b->src, b->dst, b->tag);
        for (int64_t u = 0; u < b->units && !b->nobody; u++) {
            datum(c, key, u, element);
            kind_copy(c->spec.style.kind, walk_next(&walk), element);
        }
    }
}

/* What the byte at `at` belongs to. */
static void locate(const struct side *s, const unsigned char *at, char *text, size_t size)
{
    for (int i = 0; i < s->n; i++) {
        const struct block *b = &s->block[i];
        struct walk walk = side_walk(s, s->memory, b);
        for (int64_t u = 0; u < b->units; u++) {
            const unsigned char *unit = walk_next(&walk);
            if (at < unit || at >= unit + b->layout->kind->size)
                continue;
            snprintf(text, size, "block %d of %d, element %lld of %lld (%s of %d)", i, s->n,
                     (long long)u, (long long)b->units, form_name(b->layout->form),
                     b->layout->units);
            return;
        }
    }
    snprintf(text, size, "a gap, or outside of all blocks");
}

static void compare(const struct testcase *c, const struct side *s, const unsigned char *expected,
                    const char *name, const char *what)
{
    char text[200], place[120];
    size_t i = 0, wrong = 0;

    if (memcmp(s->memory, expected, s->size) == 0)
        return;
    while (s->memory[i] == expected[i])
        i++;
    for (size_t j = i; j < s->size; j++)
        wrong += s->memory[j] != expected[j];
    describe(c, text, sizeof text);
    locate(s, s->memory + i, place, sizeof place);
    test_fail("%s: %s: %s buffer wrong in %zu bytes, first in %s: %02x, not %02x (before: %02x)",
              what, text, name, wrong, place, s->memory[i], expected[i], s->filled[i]);
}

void case_untouched(struct testcase *c, const char *what)
{
    side_pull(&c->send);
    side_pull(&c->recv);
    if (c->send.used)
        compare(c, &c->send, c->send.filled, "send", what);
    if (c->recv.used)
        compare(c, &c->recv, c->recv.filled, "receive", what);
}

void case_check(struct testcase *c, const char *what)
{
    unsigned char *expected;

    side_pull(&c->send);
    side_pull(&c->recv);
    if (c->send.used)
        compare(c, &c->send, c->send.filled, "send", what);
    if (!c->recv.used)
        return;
    expected = test_alloc(c->recv.size);
    memcpy(expected, c->recv.filled, c->recv.size);
    if (coll_reduces(c->spec.coll))
        expect_reduction(c, expected);
    else
        expect_movement(c, expected);
    compare(c, &c->recv, expected, "receive", what);
    free(expected);
}

void case_delete(struct testcase *c)
{
    if (c->op != MPI_OP_NULL && c->spec.op->user)
        MPI_Op_free(&c->op);
    side_delete(&c->send);
    side_delete(&c->recv);
    free(c->counts);
    free(c->large_counts);
    free(c);
}

void case_expect(struct testcase *c, int code, const char *what)
{
    char text[200], error[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS)
        return;
    describe(c, text, sizeof text);
    MPI_Error_string(code, error, &length);
    test_fail("%s: %s: %s", what, text, error);
}

void case_run(const struct spec *spec, enum mode mode)
{
    struct testcase *c = case_new(spec);
    MPI_Request request = MPI_REQUEST_NULL;
    int rounds = mode == PERSISTENT ? 3 : 1;

    case_fill(c, 0);
    case_expect(c, case_call(c, mode, MPI_INFO_NULL, &request), mode_name(mode));
    if (mode != BLOCKING)
        case_drop(c);
    for (int i = 0; i < rounds; i++) {
        if (mode == PERSISTENT) {
            case_fill(c, i);
            MPI_Start(&request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        case_check(c, mode_name(mode));
    }
    if (mode == PERSISTENT)
        MPI_Request_free(&request);
    case_delete(c);
}
