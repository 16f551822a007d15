/* SPDX-License-Identifier: MIT */
/* nbcsim's model against times worked out by hand, its counts against formulas, its short cut (one
 * rank for all) against the long way, its bounds against everything, and what it writes for
 * LogGOPSim read back. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "calls.h"
#include "goal.h"
#include "list.h"
#include "unit.h"

static const struct link far = {7e-6, 2e-6, 1e-6, 3e-9}, near = {1e-6, 5e-7, 25e-8, 1e-9};

static struct network quiet(void)
{
    return (struct network){
        .name = "test", .between = far, .within = near, .eager = INT64_MAX, .ppn = 1};
}

/* One message, from when it may be sent to when it has been received. */
static double one(const struct link *l, int64_t n)
{
    return l->o + l->L + (double)(n > 1 ? n - 1 : 0) * l->G + l->o;
}

/* From one message to the next at the same port. */
static double pace(const struct link *l, int64_t n)
{
    double port = l->g + (double)(n > 1 ? n - 1 : 0) * l->G;
    return port > l->o ? port : l->o;
}

static struct result run(const struct network *net, enum nbc_coll coll, const char *name, int size,
                         int64_t bytes, bool every_rank)
{
    struct call call = {.coll = coll, .size = size, .bytes = bytes, .ppn = net->ppn};
    struct limits limits = {.no_symmetry = every_rank};
    struct arguments a;
    struct result result;
    const char *wrong;
    const struct nbc_alg *alg = nbc_alg_by_name(coll, name);
    need(alg && arguments_make(&a, &call));
    struct program *p = call_program(&a, alg, &limits, &wrong);
    ck_assert_msg(p, "%s", wrong);
    wrong = program_run(p, net, true, &result);
    ck_assert_msg(!wrong, "%s", wrong);
    program_free(p);
    arguments_free(&a);
    return result;
}

static void same(double x, double y, const char *what)
{
    ck_assert_msg(fabs(x - y) <= 1e-9 * (x + y), "%s: %.12g, by hand %.12g", what, x, y);
}

UNIT(a_message)
{
    struct network net = quiet();
    for (int64_t n = 0; n <= 4096; n = 3 * n + 1)
        same(run(&net, NBC_BCAST, "linear", 2, n, true).time, n ? one(&far, n) : 0, "ping");
    net.ppn = 2;
    same(run(&net, NBC_BCAST, "linear", 2, 100, true).time, one(&near, 100), "within a node");
    net.ppn = 1;
    net.eager = 99; /* asks, is let come, comes */
    same(run(&net, NBC_BCAST, "linear", 2, 100, true).time, one(&far, 100) + 2 * far.L, "asks");
    net.handshake = 50e-6;
    same(run(&net, NBC_BCAST, "linear", 2, 100, true).time, one(&far, 100) + 50e-6, "asks long");
    same(run(&net, NBC_BCAST, "linear", 2, 99, true).time, one(&far, 99), "does not ask");
}

/* Children of the root: the farthest first. T: a message, s: pace. */
UNIT(binomial)
{
    struct network net = quiet();
    for (int64_t n = 1; n <= 10000; n *= 10) {
        double T = one(&far, n), s = pace(&far, n), longer = s > T ? s : T;
        /* 5: 0 → 4, 2, 1 and 2 → 3. 6: and 4 → 5. 7: and 4 → 6, 5. 8: and 6 → 7. */
        const double by_hand[] = {
            [2] = T,
            [3] = s + T,
            [4] = longer + T,
            [5] = fmax(s + 2 * T, 2 * s + T),
            [6] = fmax(s + 2 * T, 2 * s + T),
            [7] = fmax(s + 2 * T, 2 * s + T),
            [8] = fmax(fmax(3 * T, s + 2 * T), 2 * s + T),
        };
        for (int P = 2; P <= 8; P++) {
            struct result r = run(&net, NBC_BCAST, "binomial", P, n, true);
            same(r.time, by_hand[P], "binomial broadcast");
            ck_assert_int_eq(r.messages, P - 1);
            ck_assert_int_eq(r.bytes, (P - 1) * n);
        }
        ck_assert_int_eq(run(&net, NBC_BCAST, "binomial", 8, n, true).path.messages, 3);
    }
}

UNIT(rings)
{
    struct network net = quiet();
    net.reduce = 2e-9;
    for (int P = 2; P <= 9; P++) {
        struct result r = run(&net, NBC_ALLGATHER, "ring", P, 1000, true);
        same(r.time, (P - 1) * one(&far, 1000), "allgather");
        ck_assert_int_eq(r.messages, P * (P - 1));
        ck_assert_int_eq(r.bytes, P * (P - 1) * 1000);
        ck_assert_int_eq(r.path.messages, P - 1);
        int64_t n = 800, whole = n * P;
        r = run(&net, NBC_ALLREDUCE, "ring", P, whole, true);
        same(r.time, 2 * (P - 1) * one(&far, n) + (P - 1) * (double)n * net.reduce, "allreduce");
        ck_assert_int_eq(r.messages, 2 * P * (P - 1));
        ck_assert_int_eq(r.bytes, 2 * (P - 1) * whole);
        ck_assert_int_eq(r.path.reduced, (P - 1) * n);
    }
}

/* All that one port sends, one behind the other. */
UNIT(ports)
{
    struct network net = quiet();
    for (int P = 2; P <= 9; P++)
        same(run(&net, NBC_BCAST, "linear", P, 5000, true).time,
             one(&far, 5000) + (P - 2) * pace(&far, 5000), "linear broadcast");
    /* Two ranks of a node share its port, or not. */
    double within = one(&near, 1000), across = one(&far, 2000);
    net.ppn = 2;
    same(run(&net, NBC_ALLGATHER, "recursive_doubling", 4, 1000, true).time,
         within + across + pace(&far, 2000), "a shared port");
    net.own_ports = true;
    same(run(&net, NBC_ALLGATHER, "recursive_doubling", 4, 1000, true).time, within + across,
         "own ports");
}

UNIT(noise)
{
    struct network net = quiet();
    double before = run(&net, NBC_ALLREDUCE, "recursive_doubling", 64, 8, true).time;
    net.noise = 0.5;
    double first = run(&net, NBC_ALLREDUCE, "recursive_doubling", 64, 8, true).time;
    double again = run(&net, NBC_ALLREDUCE, "recursive_doubling", 64, 8, true).time;
    net.seed = 1;
    double other = run(&net, NBC_ALLREDUCE, "recursive_doubling", 64, 8, true).time;
    ck_assert(first == again && first != other);
    ck_assert(first > 1.5 * before && first < 10 * before); /* the slowest of 64 sets the pace */
}

/* Where one rank stands for all, all together take as long. Local work may be cut up otherwise. */
UNIT(symmetry, .times = nbc_nalgs)
{
    struct network net = quiet();
    static const int sizes[] = {3, 8, 13, 16, 32, 33};
    const struct nbc_alg *alg = &nbc_algs[_i];
    net.reduce = 1e-9;
    if (alg->needs & (NBC_INTER | NBC_NODES | NBC_BY_MPI))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t each = 8; each <= 80000; each *= 100) {
            int P = sizes[i];
            bool vector = nbc_coll_reduces(alg->coll) || alg->coll == NBC_BCAST;
            int64_t bytes = vector ? each * P : each;
            if ((alg->needs & NBC_POW2 && P & (P - 1)) || (alg->needs & NBC_EVEN && P % 2))
                continue;
            struct result all = run(&net, alg->coll, alg->name, P, bytes, true);
            struct result short_cut = run(&net, alg->coll, alg->name, P, bytes, false);
            ck_assert_msg(fabs(all.time - short_cut.time) <= 1e-3 * all.time,
                          "%s:%s P=%d bytes=%" PRId64 ": %g by all ranks, %g by one",
                          nbc_coll_name(alg->coll), alg->name, P, bytes, all.time, short_cut.time);
            ck_assert_int_eq(all.messages, short_cut.messages);
            ck_assert_int_eq(all.bytes, short_cut.bytes);
        }
}

static int symmetric(enum nbc_coll coll, const char *name, int size, int64_t bytes)
{
    struct call call = {.coll = coll, .size = size, .bytes = bytes, .ppn = 1};
    struct arguments a;
    const char *wrong;
    /* so few operations that only one rank's are allowed */
    const struct limits limits = {.ops = 8 * size};
    need(arguments_make(&a, &call));
    struct program *p = call_program(&a, nbc_alg_by_name(coll, name), &limits, &wrong);
    bool few = p != NULL;
    ck_assert(few || wrong == call_too_large);
    program_free(p);
    arguments_free(&a);
    return few;
}

UNIT(symmetry_is_seen)
{
    ck_assert(symmetric(NBC_ALLGATHER, "ring", 100, 8));
    ck_assert(symmetric(NBC_ALLGATHER, "neighbor_exchange", 100, 8));
    ck_assert(symmetric(NBC_ALLTOALL, "pairwise", 128, 8));
    ck_assert(symmetric(NBC_ALLTOALL, "linear", 100, 8));
    ck_assert(symmetric(NBC_ALLREDUCE, "ring", 100, 80000));
    ck_assert(!symmetric(NBC_ALLREDUCE, "ring", 100, 80080)); /* parts differ */
    ck_assert(!symmetric(NBC_BCAST, "scatter_allgather", 100, 80000));
    ck_assert(symmetric(NBC_ALLREDUCE, "recursive_multiplying", 1024, 8));
    ck_assert(!symmetric(NBC_ALLREDUCE, "recursive_multiplying", 1023, 8)); /* 31 is a factor */
}

/* Ranks that differ in the order of their reductions: one of each class takes as long as all. */
UNIT(classes)
{
    static const int sizes[] = {60, 96, 128, 420, 512, 1024};
    struct network net = quiet();
    net.reduce = 1e-9;
    net.copy = 1e-10;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t n = 8; n <= 8000; n *= 10)
            for (int rendezvous = 0; rendezvous < 2; rendezvous++) {
                net.eager = rendezvous ? 0 : INT64_MAX;
                const char *name = "recursive_multiplying";
                struct result all = run(&net, NBC_ALLREDUCE, name, sizes[i], n, true);
                struct result few = run(&net, NBC_ALLREDUCE, name, sizes[i], n, false);
                same(few.time, all.time, "one rank of each class");
                ck_assert_int_eq(few.messages, all.messages);
            }
}

/* What would not fit into memory is found too large from a few of its ranks. */
UNIT(too_large)
{
    ck_assert(!symmetric(NBC_ALLTOALL, "linear", 1 << 20, 8));
    ck_assert(symmetric(NBC_ALLREDUCE, "recursive_multiplying", 1 << 20, 8));
}

/* No algorithm beats the bounds. */
UNIT(bounds, .times = nbc_nalgs)
{
    struct network net = quiet();
    const struct nbc_alg *alg = &nbc_algs[_i];
    net.reduce = 1e-9;
    if (alg->needs & (NBC_INTER | NBC_NODES | NBC_BY_MPI))
        return;
    for (int P = 2; P <= 17; P++)
        for (int64_t bytes = 8; bytes <= 80000; bytes *= 100) {
            if ((alg->needs & NBC_POW2 && P & (P - 1)) || (alg->needs & NBC_EVEN && P % 2))
                continue;
            struct call call = {.coll = alg->coll,
                                .size = P,
                                .bytes = alg->coll == NBC_BARRIER ? 0 : bytes,
                                .ppn = 1};
            struct bounds b = call_bounds(&call, &net);
            struct result r = run(&net, alg->coll, alg->name, P, call.bytes, true);
            ck_assert_msg(r.time >= bounds_most(&b) * (1 - 1e-9),
                          "%s:%s P=%d bytes=%" PRId64 ": %g, not less than %g",
                          nbc_coll_name(alg->coll), alg->name, P, bytes, r.time, bounds_most(&b));
        }
}

/* Eight ranks with g < o: news reaches 1, 2, 4, 7, … as in Karp's picture: worked out by hand for
 * T = 11, o = 2: at 11, 13, 15, 17, 19, 21, 22. */
UNIT(spreading)
{
    struct network net = quiet();
    const double last[] = {0, 0, 11e-6, 13e-6, 15e-6, 17e-6, 19e-6, 21e-6, 22e-6, 23e-6};
    for (int P = 2; P <= 9; P++) {
        struct call call = {.coll = NBC_BCAST, .size = P, .bytes = 1, .ppn = 1};
        same(call_bounds(&call, &net).latency, last[P], "news");
    }
}

/* --- GOAL, read back -------------------------------------------------------------------------- */

struct message {
    int from, to, tag, sends, recvs;
    int64_t bytes;
};

struct reader {
    struct message *list;
    int n;
    int rank, labels;
    int64_t edges;
};

static void note(struct reader *r, int from, int to, int tag, int64_t bytes, bool send)
{
    int i = 0;
    while (i < r->n && (r->list[i].from != from || r->list[i].to != to || r->list[i].tag != tag))
        i++;
    if (i == r->n)
        r->list[r->n++] = (struct message){from, to, tag, 0, 0, bytes};
    ck_assert_int_eq(r->list[i].bytes, bytes);
    r->list[i].sends += send;
    r->list[i].recvs += !send;
}

/* One line; false: not understood. */
static bool read_line(struct reader *r, const char *line)
{
    int label, peer, tag, other;
    int64_t n;
    if (sscanf(line, "rank %d {", &peer) == 1) {
        r->labels = 0;
        return peer == ++r->rank;
    }
    if (sscanf(line, "l%d: send %" SCNd64 "b to %d tag %d", &label, &n, &peer, &tag) == 4) {
        note(r, r->rank, peer, tag, n, true);
        return label == ++r->labels && peer != r->rank;
    }
    if (sscanf(line, "l%d: recv %" SCNd64 "b from %d tag %d", &label, &n, &peer, &tag) == 4) {
        note(r, peer, r->rank, tag, n, false);
        return label == ++r->labels && peer != r->rank;
    }
    if (sscanf(line, "l%d: calc %" SCNd64, &label, &n) == 2)
        return label == ++r->labels && n >= 0;
    if (sscanf(line, "l%d requires l%d", &label, &other) == 2 ||
        sscanf(line, "l%d irequires l%d", &label, &other) == 2) {
        r->edges++;
        return other >= 1 && other < label && label <= r->labels; /* forward, so without cycles */
    }
    return strcmp(line, "}\n") == 0 || strcmp(line, "\n") == 0;
}

static void check_goal(const struct nbc_alg *alg, int size, int64_t bytes)
{
    struct call call = {.coll = alg->coll, .size = size, .bytes = bytes, .ppn = 1};
    struct network net = quiet();
    const struct limits limits = {.no_symmetry = true};
    struct arguments a;
    struct result result;
    const char *wrong;
    int nranks;
    need(arguments_make(&a, &call));
    struct program *p = call_program(&a, alg, &limits, &wrong);
    ck_assert_msg(p && !program_run(p, &net, false, &result), "%s", wrong);
    FILE *file = tmpfile();
    need(file);
    goal_write(p, &net, file);
    rewind(file);
    struct reader r = {.rank = -1};
    r.list = calloc((size_t)result.messages + 1, sizeof *r.list);
    char line[200];
    need(fscanf(file, "num_ranks %d", &nranks) == 1 && nranks == size);
    while (fgets(line, sizeof line, file))
        ck_assert_msg(read_line(&r, line), "rank %d: %s", r.rank, line);
    ck_assert_int_eq(r.rank, size - 1);
    ck_assert_int_eq(r.n, result.messages);
    for (int i = 0; i < r.n; i++)
        ck_assert_msg(r.list[i].sends == 1 && r.list[i].recvs == 1, "%d sends, %d receives",
                      r.list[i].sends, r.list[i].recvs);
    fclose(file);
    free(r.list);
    program_free(p);
    arguments_free(&a);
}

UNIT(goal, .times = nbc_nalgs)
{
    const struct nbc_alg *alg = &nbc_algs[_i];
    if (alg->needs & (NBC_INTER | NBC_NODES | NBC_BY_MPI))
        return;
    for (int P = 1; P <= 9; P++) {
        if ((alg->needs & NBC_POW2 && P & (P - 1)) || (alg->needs & NBC_EVEN && P % 2))
            continue;
        check_goal(alg, P, alg->coll == NBC_BARRIER ? 0 : 24);
        if (P == 4)
            check_goal(alg, P, alg->coll == NBC_BARRIER ? 0 : 200000);
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

UNIT(networks)
{
    struct network net, again;
    need(network_read(&net, "infiniband"));
    char name[] = "/tmp/nbc-XXXXXX";
    int fd = mkstemp(name);
    need(fd >= 0);
    FILE *file = fdopen(fd, "w");
    net.ppn = 5;
    network_write(&net, file);
    fclose(file);
    need(network_read(&again, name));
    remove(name);
    same(again.between.L, net.between.L, "L");
    same(again.within.G, net.within.G, "G");
    ck_assert(again.eager == net.eager && again.ppn == 5 && !again.own_ports);
    ck_assert(!network_set(&net, "L=-1") && !network_set(&net, "M=1") && !network_set(&net, "L=x"));
    ck_assert(!network_set(&net, "ppn=0") && !network_set(&net, "L 5") && network_set(&net, "L=0"));
}

UNIT(lists)
{
    struct list list = {0};
    ck_assert(list_read(&list, "3,1K,2..9,8..8M:1024"));
    list_sort(&list);
    const int64_t wanted[] = {2, 3, 4, 8, 1024, 8192, 8388608};
    ck_assert_int_eq(list.n, 7);
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(list.at[i], wanted[i]);
    const char *bad[] = {"", "x", "1,", "1..", "0..4", "1..4:1", "-1", "5T"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!list_read(&(struct list){0}, bad[i]), "%s", bad[i]);
}
