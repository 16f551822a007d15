/* SPDX-License-Identifier: MIT */
/* Simulates persistent neighborhood collectives on 32 nodes of 8 ranks in the model of nbcsim: with
 * a message for each edge, and with what nbcshim chooses in MPI_..._init.
 *
 *   locality
 *
 * prints doc/performance/locality.tsv: the times of the exchanges of an algebraic multigrid
 * hierarchy, level by level, and of other patterns. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbcsim/calls.h"
#include "nbcsim/engine.h"
#include "pattern.h"

enum { NODES = 32, PPN = 8, P = NODES * PPN, X = 8, Y = 8, Z = P / X / Y };

/* --- patterns --------------------------------------------------------------------------------- */

static int64_t bytes[P][P]; /* from, to; 0: no edge */

static uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Points of a rank, along one dimension, in which a stencil of this radius differs from rank to
 * rank: those that a rank d away needs. */
static int64_t needed(int d, int side, int radius)
{
    int64_t left = radius - (int64_t)(abs(d) - 1) * side;
    return d == 0 ? side : left < 0 ? 0 : left < side ? left : side;
}

/* A level of a hierarchy: ranks on a grid, of which every step-th in each direction has points,
 * side × side × side of them; a stencil of this radius. Below the finest level some couplings are
 * missing, as coarsening makes them. */
static void level(int step, int side, int radius, int percent)
{
    for (int from = 0; from < P; from++)
        for (int to = 0; to < P; to++) {
            int x = to % X - from % X, y = to / X % Y - from / X % Y, z = to / X / Y - from / X / Y;
            bool points = from % X % step == 0 && from / X % Y % step == 0 &&
                          from / X / Y % step == 0 && x % step == 0 && y % step == 0 &&
                          z % step == 0;
            int64_t n = needed(x / step, side, radius) * needed(y / step, side, radius) *
                        needed(z / step, side, radius);
            bool coupled = hash((uint64_t)from * P + (uint64_t)to + 1) % 100 < (uint64_t)percent;
            bytes[from][to] = points && coupled && from != to ? 8 * n : 0;
        }
}

/* Each rank sends n bytes to so many random ones. */
static void scattered(int degree, int64_t n)
{
    memset(bytes, 0, sizeof bytes);
    for (int from = 0; from < P; from++)
        for (int k = 0; k < degree; k++)
            bytes[from][hash((uint64_t)from * 1000 + (uint64_t)k + 7) % P] = n;
    for (int from = 0; from < P; from++)
        bytes[from][from] = 0;
}

/* A grid with 2 · dims neighbors, or all around. */
static void halo(int dims, bool corners, int64_t n)
{
    for (int from = 0; from < P; from++)
        for (int to = 0; to < P; to++) {
            int x = abs(to % X - from % X), y = abs(to / X % Y - from / X % Y);
            int z = abs(to / X / Y - from / X / Y), most = x > y ? x : y;
            bool near = (z > most ? z : most) == 1 && (corners || x + y + z == 1);
            if (dims == 1)
                near = abs(to - from) == 1;
            if (dims == 2)
                near = abs(to - from) == 16 || (abs(to - from) == 1 && to / 16 == from / 16);
            bytes[from][to] = near ? n : 0;
        }
}

struct pattern {
    const char *name;
    enum { LEVEL, SCATTERED, HALO, STAR, ALL } kind;
    int a, b, c, d;
};

static const struct pattern patterns[] = {
    {"multigrid, level 0", LEVEL, 1, 40, 1, 100},
    {"multigrid, level 1", LEVEL, 1, 20, 2, 85},
    {"multigrid, level 2", LEVEL, 1, 10, 2, 85},
    {"multigrid, level 3", LEVEL, 1, 5, 2, 85},
    {"multigrid, level 4", LEVEL, 1, 2, 3, 85},
    {"multigrid, level 5", LEVEL, 1, 1, 3, 85},
    {"multigrid, level 6", LEVEL, 2, 1, 3, 85},
    {"ring, 8 B", HALO, 1, 0, 8, 0},
    {"2-d grid, 8 B", HALO, 2, 0, 8, 0},
    {"2-d grid, 4K", HALO, 2, 0, 4096, 0},
    {"3-d grid, 8 B", HALO, 3, 0, 8, 0},
    {"3-d grid, 1K", HALO, 3, 0, 1024, 0},
    {"27 points, 8 B", HALO, 3, 1, 8, 0},
    {"27 points, 256 B", HALO, 3, 1, 256, 0},
    {"27 points, 1K", HALO, 3, 1, 1024, 0},
    {"27 points, 2K", HALO, 3, 1, 2048, 0},
    {"4 random, 8 B", SCATTERED, 4, 8, 0, 0},
    {"16 random, 8 B", SCATTERED, 16, 8, 0, 0},
    {"16 random, 1K", SCATTERED, 16, 1024, 0, 0},
    {"64 random, 8 B", SCATTERED, 64, 8, 0, 0},
    {"64 random, 256 B", SCATTERED, 64, 256, 0, 0},
    {"64 random, 1K", SCATTERED, 64, 1024, 0, 0},
    {"one to all, 8 B", STAR, 8, 0, 0, 0},
    {"one to all, 1K", STAR, 1024, 0, 0, 0},
    {"all to all, 8 B", ALL, 8, 0, 0, 0},
    {"all to all, 64 B", ALL, 64, 0, 0, 0},
    {"all to all, 256 B", ALL, 256, 0, 0, 0},
    {"all to all, 1K", ALL, 1024, 0, 0, 0},
};

static void make(const struct pattern *p)
{
    if (p->kind == LEVEL) {
        level(p->a, p->b, p->c, p->d);
    } else if (p->kind == SCATTERED) {
        scattered(p->a, p->b);
    } else if (p->kind == HALO) {
        halo(p->a, p->b, p->c);
    } else {
        memset(bytes, 0, sizeof bytes);
        for (int from = 0; from < (p->kind == ALL ? P : 1); from++)
            for (int to = 0; to < P; to++)
                bytes[from][to] = from != to ? p->a : 0;
    }
}

/* --- shapes ----------------------------------------------------------------------------------- */

static const struct nbc_type types[NBC_TYPE_FIRST_PEER] = {
    {1, 1, 0, 1, true}, {1, 1, 0, 1, true}, {1, 1, 0, 1, true}};
static struct nbc_nodes nodes;

struct rank {
    struct nbc_shape shape;
    struct nbc_neighbors neighbors;
    int in[P], out[P];
    int64_t counts[2][P], displs[2][P];
    struct nbc_pattern pattern;
} ranks[P];

static void make_rank(int me)
{
    struct rank *r = &ranks[me];
    int64_t at[2] = {0};
    r->neighbors = (struct nbc_neighbors){.sources = r->in, .destinations = r->out};
    for (int peer = 0; peer < P; peer++)
        for (int in = 0; in < 2; in++) {
            int64_t n = in ? bytes[peer][me] : bytes[me][peer];
            int *degree = in ? &r->neighbors.indegree : &r->neighbors.outdegree;
            if (n == 0)
                continue;
            (in ? r->in : r->out)[*degree] = peer;
            r->counts[in][*degree] = n;
            r->displs[in][(*degree)++] = at[in];
            at[in] += n;
        }
    struct nbc_side send = {.counts = {r->counts[0], 8}, .displs = {r->displs[0], 8}},
                    recv = {.counts = {r->counts[1], 8}, .displs = {r->displs[1], 8}};
    send.type = NBC_TYPE_SEND;
    recv.type = NBC_TYPE_RECV;
    r->shape = (struct nbc_shape){.coll = NBC_NEIGHBOR_ALLTOALLV,
                                  .rank = me,
                                  .size = P,
                                  .types = types,
                                  .ntypes = NBC_TYPE_FIRST_PEER,
                                  .send = send,
                                  .recv = recv,
                                  .neighbors = &r->neighbors,
                                  .nodes = &nodes};
}

static void need(bool good)
{
    if (good)
        return;
    fputs("locality: out of memory, or a schedule is wrong\n", stderr);
    exit(1);
}

/* Returns the elements of the longest offer. */
static int make_patterns(void)
{
    static struct nbc_offer offers[P];
    int room = 1;
    for (int me = 0; me < P; me++) {
        need(nbc_offer_make(&offers[me], &ranks[me].shape));
        room = offers[me].n > room ? offers[me].n : room;
    }
    struct nbc_edge *all = calloc((size_t)PPN * (size_t)room, sizeof *all);
    need(all);
    for (int me = 0; me < P; me++) {
        for (int i = 0; i < PPN; i++) {
            const struct nbc_offer *o = &offers[me / PPN * PPN + i];
            memcpy(all + i * room, o->edges, (size_t)o->n * sizeof *all);
        }
        need(nbc_pattern_make(&ranks[me].pattern, all, PPN, room));
        ranks[me].shape.pattern = &ranks[me].pattern;
    }
    free(all);
    for (int me = 0; me < P; me++)
        free(offers[me].edges);
    return room;
}

/* --- times ------------------------------------------------------------------------------------ */

enum way { LINEAR, APART, TOGETHER, NWAYS };

static const char *const way_names[] = {"linear", "locality, two steps", "locality, three steps"};

static struct nbc_sched *build(int me, enum way way)
{
    ranks[me].pattern.apart = way == APART;
    struct nbc_sched *s = way == LINEAR ? nbc_build(nbc_neighbor_linear, &ranks[me].shape)
                                        : nbc_build(nbc_neighbor_locality, &ranks[me].shape);
    need(s);
    return s;
}

static double run(struct program *p, const struct network *net)
{
    struct result result;
    const char *wrong = program_match(p);
    if (!wrong)
        wrong = program_run(p, net, false, &result);
    need(!wrong);
    program_free(p);
    return result.time;
}

/* Microseconds; *most: the messages between nodes of the busiest sender. */
static double time_of(const struct network *net, enum way way, int *most)
{
    struct program *p = program_new(P, P, NONE);
    need(p);
    *most = 0;
    for (int me = 0; me < P; me++) {
        struct nbc_sched *s = build(me, way);
        int n = 0;
        for (nbc_id id = 0; id < s->nops; id++)
            n += s->ops[id].kind == NBC_OP_SEND && s->ops[id].peer / PPN != me / PPN;
        *most = n > *most ? n : *most;
        need(program_add(p, s, &ranks[me].shape));
        nbc_sched_free(s);
    }
    return run(p, net) * 1e6;
}

static enum way chosen(void)
{
    int64_t numbers[NBC_PATTERN_NUMBERS], largest[NBC_PATTERN_NUMBERS] = {0};
    int busiest = 0;
    for (int me = 0; me < P; me++) {
        struct nbc_sched *s[NWAYS];
        struct nbc_offer offer;
        for (enum way way = LINEAR; way < NWAYS; way++)
            s[way] = build(me, way);
        nbc_pattern_numbers(&ranks[me].shape, s[LINEAR], s[APART], s[TOGETHER], numbers);
        for (int i = 0; i < NBC_PATTERN_NUMBERS; i++)
            largest[i] = numbers[i] > largest[i] ? numbers[i] : largest[i];
        for (enum way way = LINEAR; way < NWAYS; way++)
            nbc_sched_free(s[way]);
        need(nbc_offer_make(&offer, &ranks[me].shape));
        busiest = offer.busiest > busiest ? offer.busiest : busiest;
        free(offer.edges);
    }
    enum nbc_pattern_choice choice = nbc_pattern_choose(largest, false);
    return busiest < NBC_PATTERN_LEAST      ? LINEAR
           : choice == NBC_PATTERN_APART    ? APART
           : choice == NBC_PATTERN_TOGETHER ? TOGETHER
                                            : LINEAR;
}

/* What MPI_..._init sends: three allreduces, and an exchange in each node. Without the exchange if
 * it ends with the first of them. */
static double init_time(const struct network *net, int room, bool all)
{
    const char *wrong;
    struct arguments a;
    struct call call = {.coll = NBC_ALLREDUCE, .size = P, .bytes = 48, .ppn = PPN};
    int64_t segment;
    need(arguments_make(&a, &call));
    const struct nbc_alg *alg = call_choice(&a, &nbc_default_rules, &segment);
    struct limits limits = {0};
    struct program *p = call_program(&a, alg, &limits, &wrong);
    need(p);
    double allreduce = run(p, net);
    arguments_free(&a);
    if (!all)
        return allreduce * 1e6;
    p = program_new(P, P, NONE);
    need(p);
    for (int me = 0; me < P; me++) {
        int mates[PPN];
        for (int i = 0; i < PPN; i++)
            mates[i] = me / PPN * PPN + i;
        struct nbc_neighbors neighbors = {mates, mates, PPN, PPN, false};
        struct nbc_side side = {.count = room * (int64_t)sizeof(struct nbc_edge)};
        struct nbc_shape shape = ranks[me].shape;
        shape.coll = NBC_NEIGHBOR_ALLGATHER;
        shape.neighbors = &neighbors;
        shape.send = shape.recv = side;
        struct nbc_sched *s = nbc_build(nbc_neighbor_linear, &shape);
        need(s && program_add(p, s, &shape));
        nbc_sched_free(s);
    }
    return (3 * allreduce + run(p, net)) * 1e6;
}

static void print(const char *network, const struct pattern *pattern)
{
    struct network net;
    double time[NWAYS];
    int most[NWAYS];
    need(network_read(&net, network));
    net.ppn = PPN;
    make(pattern);
    for (int me = 0; me < P; me++)
        make_rank(me);
    int room = make_patterns();
    for (enum way way = LINEAR; way < NWAYS; way++)
        time[way] = time_of(&net, way, &most[way]);
    enum way way = chosen();
    printf("%s\t%s\t%d\t%d\t%.1f\t%.2f\t%.2f\t%s\t%.2f\t%.1f\n", network, pattern->name,
           most[LINEAR], most[way], time[LINEAR], time[APART] / time[LINEAR],
           time[TOGETHER] / time[LINEAR], way_names[way], time[way] / time[LINEAR],
           init_time(&net, room, most[LINEAR] >= NBC_PATTERN_LEAST));
    for (int me = 0; me < P; me++)
        nbc_pattern_free(&ranks[me].pattern);
}

int main(void)
{
    nodes = nbc_nodes_blocks(P, PPN);
    puts("network\tpattern\tmessages between nodes, linear\tchosen\tlinear, µs\ttwo steps\tthree "
         "steps\tchosen by nbcshim\tof linear\tinit, µs");
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        print("infiniband", &patterns[i]);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        print("slingshot", &patterns[i]);
    return 0;
}
