/* SPDX-License-Identifier: MIT */
/* Every algorithm of algs.def, over every kind of call that it applies to.
 *
 * Nothing here names an algorithm: whoever adds a row has it tested. For a row, calls of all sizes
 * from 1 to 33 ranks and a few larger ones are made up (roots, counts, in place, commutative or
 * not, layouts, graphs, node maps, intercommunicators, eager or rendezvous messages), the
 * schedules of all ranks are built and checked (sched_check), run on a simulated network
 * (sim.h), and every byte of the buffers is compared with the definition of the collective
 * (cases.h). The choice is the same in every run. NBC_SOAK=1 in the environment tries all, 0.1 a
 * tenth, of the algorithms that arguments name; without arguments it is not obeyed, since one
 * process would take hours.
 *
 * While writing an algorithm:
 *
 *   test_algs allreduce             all algorithms of a collective
 *   test_algs allreduce:ring        one algorithm
 *   test_algs allreduce:ring P=5    with one or more things fixed; for an intercommunicator P=3
 *                                   remote=2; layout=gap; op=affine; … (see case_print)
 *   test_algs all                   everything
 *   test_algs --list [allreduce]    prints the names of the algorithms
 *
 * stops at the first failure with the schedules of all ranks (smaller calls come first) and a line
 * that names the case. That line, given as arguments, runs the one case again. A group of two
 * numbers in a schedule: "4 recv temp+64 3*t2 from 1, after 0": operation 4 receives 3 elements of
 * type slot 2 from rank 1 to byte 64 of the temporary buffer when operation 0 is done. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit.h"

static const int more_sizes[] = {64, 100, 128, 255, 256, 257};
enum { SMALL_SIZES = 33, NSIZES = SMALL_SIZES + sizeof more_sizes / sizeof *more_sizes };

static int size_of(int i)
{
    return i < SMALL_SIZES ? i + 1 : more_sizes[i - SMALL_SIZES];
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Of the edges of a neighborhood, both those whose blocks share a message and others are tried. */
static int64_t a_count(enum nbc_coll coll, int i, int size)
{
    const int64_t counts[] = {1,        0,        size,
                              size - 1, size + 1, nbc_coll_is_neighborhood(coll) ? 300 : 37};
    return counts[i];
}

enum { NCOUNTS = 6, NSEGMENTS = 3, NROOTS = 8 };

static int a_root(int i, int size)
{
    const int roots[] = {0, size - 1, 1, size / 2};
    return size <= NROOTS ? i % size : roots[i % 4];
}

/* 12: less than an element may have, no multiple of any. */
static const int64_t segments[NSEGMENTS] = {0, 12, 200};

static bool scatters(enum nbc_coll coll)
{
    return coll == NBC_REDUCE_SCATTER || coll == NBC_REDUCE_SCATTER_BLOCK;
}

/* Keeps the work of one case in bounds where data grow with P², or with P³. */
static void limit(struct test_case *c)
{
    enum nbc_coll coll = c->alg->coll;
    int64_t most = 1000;
    if (scatters(coll) && c->remote) {
        if (c->size > SMALL_SIZES)
            c->remote = 1 + c->remote % 4;
        most = 4000 / ((int64_t)c->size * c->remote);
    } else if (c->size + c->remote > SMALL_SIZES && coll >= NBC_ALLGATHER) {
        most = 3;
    }
    if (c->count > most)
        c->count = most > 1 ? most : 1;
}

/* The i-th of the calls on so many ranks: digits of i for the dimensions. */
static struct test_case nth_case(const struct nbc_alg *alg, int size, uint64_t i)
{
    struct test_case c = {.alg = alg, .size = size, .runs = 1, .seed = i};
    c.root = a_root((int)(i % NROOTS), size);
    i /= NROOTS;
    c.count = a_count(alg->coll, (int)(i % NCOUNTS), size);
    i /= NCOUNTS;
    c.op = (int)(i % NOPS);
    i /= NOPS;
    c.in_place = i % 2;
    i /= 2;
    c.layout = (int)(i % NLAYOUTS);
    i /= NLAYOUTS;
    c.rendezvous = i % 2;
    i /= 2;
    c.graph = (int)(i % NGRAPHS);
    i /= NGRAPHS;
    c.segment = segments[i % NSEGMENTS];
    i /= NSEGMENTS;
    c.sockets = c.seed / 3 % 2 && !(alg->needs & NBC_INTER);
    c.nodes = alg->needs & NBC_NODES ? 2 + (int)(i % 4) : 0;
    i /= 4;
    if (alg->needs & NBC_INTER) { /* 1 × n, n × 1, uneven, even */
        const int remotes[] = {1, size, size + 3, (size + 1) / 2};
        c.remote = remotes[i % 4];
    }
    c.runs = 1 + (int)(c.seed % 5 == 0);
    limit(&c);
    case_normalize(&c);
    return c;
}

static const uint64_t ncases =
    (uint64_t)NROOTS * NCOUNTS * NOPS * 2 * NLAYOUTS * 2 * NGRAPHS * NSEGMENTS * 4 * 4;

/* Of all calls the share to try, besides the sample. */
static double soak;

/* What the command line fixes: key=value words. */
struct fixed {
    int nwords;
    char **words;
};

struct tally {
    int cases;
    char failure[1200];
};

/* Of large calls the cheap algorithms are tried, unless there is time. */
enum { MOST_MESSAGES = 20000 };

/* One case; false when it fails. */
static bool try_case(struct test_case *c, const struct fixed *fixed, struct tally *t)
{
    char name[500], text[600];
    case_parse(c, fixed->nwords, fixed->words);
    case_normalize(c);
    bool many = c->size + c->remote > 2 * SMALL_SIZES + 3 && soak == 0;
    enum outcome outcome = case_run(c, many ? MOST_MESSAGES : INT64_MAX, text, sizeof text);
    t->cases += outcome == WENT_WELL;
    if (outcome != FAILED)
        return true;
    case_print(c, name, sizeof name);
    snprintf(t->failure, sizeof t->failure, "%s\n    %s", name, text);
    return false;
}

/* How many of the calls to try on so many ranks. The time grows with their square. */
static int sample(int size)
{
    return size <= 4 ? 60 : size <= 9 ? 30 : size <= 17 ? 10 : size <= SMALL_SIZES ? 5 : 2;
}

/* Roots, counts, ops, in place, layouts and modes; what is behind them goes by the case's number.
 */
static const uint64_t period = (uint64_t)NROOTS * NCOUNTS * NOPS * 2 * NLAYOUTS * 2;

/* Whether the i-th case is what its digits say, and not the same as an earlier one: a broadcast has
 * no op, and three ranks have no eight roots. */
static bool is_new(const struct test_case *c, uint64_t i)
{
    int root = (int)(i % NROOTS), roots = c->size <= NROOTS ? c->size : 4;
    bool new = root < roots &&a_root(root, c->size) == c->root;
    i /= NROOTS;
    new = new &&a_count(c->alg->coll, (int)(i % NCOUNTS), c->size) == c->count;
    i /= NCOUNTS;
    new = new && (int)(i % NOPS) == c->op;
    i /= NOPS;
    new = new &&i % 2 == c->in_place;
    i /= 2;
    return new && (int)(i % NLAYOUTS) == c->layout;
}

static bool try_all(const struct nbc_alg *alg, int size, const struct fixed *fixed, struct tally *t)
{
    uint64_t row = (uint64_t)(alg - nbc_algs), thousandths = (uint64_t)(soak * 1000);
    for (uint64_t i = 0; i < period; i++) {
        if (hash3(i, row, (uint64_t)size) % 1000 >= thousandths)
            continue;
        struct test_case c = nth_case(alg, size, i + period * (hash3(i, 1, 2) % (ncases / period)));
        if (is_new(&c, i) && !try_case(&c, fixed, t))
            return false;
    }
    return true;
}

static bool try_some(const struct nbc_alg *alg, int size, int n, const struct fixed *fixed,
                     struct tally *t)
{
    uint64_t row = (uint64_t)(alg - nbc_algs);
    for (int i = 0; i < n; i++) {
        struct test_case c = nth_case(alg, size, hash3(row, (uint64_t)size, (uint64_t)i) % ncases);
        if (!try_case(&c, fixed, t))
            return false;
    }
    return true;
}

/* Reductions of vectors so large that temporary memory is used again (nbc_room in reduction.h), in
 * long segments and short ones. Where order matters ranks on either side of the root do different
 * things; and it takes more than 8 ranks until recursive doubling has no room left. What is in
 * place on few ranks is not on more, and the other way round. */
static bool try_large(const struct nbc_alg *alg, int size, const struct fixed *fixed,
                      struct tally *t)
{
    enum { LARGE = 16600 }; /* of 8 bytes: just above the size from which they share */
    uint64_t row = (uint64_t)(alg - nbc_algs);
    int n = 4 + (int)(soak * 20);
    if (!nbc_coll_reduces(alg->coll) || (size != 3 && size != 5 && size != 8 && size != 17))
        return true;
    for (int i = 0; i < n; i++) {
        struct test_case c =
            nth_case(alg, size, hash3(row, (uint64_t)size, 1000 + (uint64_t)i) % ncases);
        c.count = scatters(alg->coll) ? LARGE / (size + c.remote) : size > 8 ? LARGE / 4 : LARGE;
        c.segment = i & 1 ? 0 : 2000;
        c.op = i & 2 ? AFFINE : c.op == AFFINE ? SUM : c.op;
        c.root = i & 2 ? size / 2 : c.root;
        c.in_place = (size > 5) ^ ((i ^ i >> 1 ^ i >> 2) & 1);
        c.layout = c.layout == EMPTY ? PLAIN : c.layout;
        if (!try_case(&c, fixed, t))
            return false;
    }
    return true;
}

/* Whether data grow with P²: then the calls on more than 128 ranks would take half of the time. */
static bool grows(enum nbc_coll coll)
{
    return (coll >= NBC_ALLGATHER && coll <= NBC_ALLTOALLW) || scatters(coll);
}

static bool try_size(const struct nbc_alg *alg, int size, const struct fixed *fixed,
                     struct tally *t)
{
    int some = sample(size);
    if (size > 128 && grows(alg->coll) && soak == 0)
        return true;
    if (soak > 0 && size <= SMALL_SIZES)
        return try_all(alg, size, fixed, t) && try_some(alg, size, some, fixed, t);
    return try_some(alg, size, some + (int)(soak * 19 * some), fixed, t);
}

static bool try_alg(const struct nbc_alg *alg, const struct fixed *fixed, struct tally *t)
{
    for (int i = 0; i < NSIZES; i++)
        if (!try_size(alg, size_of(i), fixed, t) || !try_large(alg, size_of(i), fixed, t))
            return false;
    return true;
}

/* --- the command line ------------------------------------------------------------------------- */

static void print_schedules(struct test_case c)
{
    struct world *w = world_new(&c);
    if (world_applies(w))
        world_build(w);
    world_print(w, stdout);
    world_free(w);
}

/* A word sets the whole case when "seed" is among them: replay. */
static bool whole_case(const struct fixed *fixed)
{
    for (int i = 0; i < fixed->nwords; i++)
        if (strncmp(fixed->words[i], "seed=", 5) == 0)
            return true;
    return false;
}

static bool run_alg(const struct nbc_alg *alg, const struct fixed *fixed)
{
    struct tally t = {0};
    struct test_case c = {.alg = alg, .size = 4, .count = 1, .runs = 1};
    bool good = whole_case(fixed) ? try_case(&c, fixed, &t) : try_alg(alg, fixed, &t);
    if (good) {
        printf("ok     %s:%s, %d cases\n", nbc_coll_name(alg->coll), alg->name, t.cases);
        return t.cases > 0 || (alg->needs & NBC_NODES);
    }
    if (!whole_case(fixed)) { /* the case's own line has it all */
        char line[1200], *words[20];
        int n = 0;
        snprintf(line, sizeof line, "%s", t.failure);
        *strchr(line, '\n') = 0;
        strtok(line, " ");
        while (n < 20 && (words[n] = strtok(NULL, " ")))
            n++;
        case_parse(&c, n, words);
    }
    print_schedules(c);
    printf("FAILED %s\n", t.failure);
    return false;
}

/* Whether an algorithm is meant by "all", "allreduce", or "allreduce:ring", and has a schedule. */
static bool is_named(const struct nbc_alg *alg, const char *name)
{
    char full[80];
    if (alg->needs & NBC_BY_MPI)
        return false;
    snprintf(full, sizeof full, "%s:%s", nbc_coll_name(alg->coll), alg->name);
    return strcmp(name, "all") == 0 || strcmp(name, nbc_coll_name(alg->coll)) == 0 ||
           strcmp(name, full) == 0;
}

static int print_names(const char *name)
{
    for (const struct nbc_alg *alg = nbc_algs; alg < nbc_algs + nbc_nalgs; alg++)
        if (is_named(alg, name))
            printf("%s:%s\n", nbc_coll_name(alg->coll), alg->name);
    return 0;
}

static int run_command(int argc, char **argv)
{
    struct fixed fixed = {argc - 2, argv + 2};
    struct test_case dummy = {.alg = nbc_algs};
    const char *bad = case_parse(&dummy, fixed.nwords, fixed.words);
    bool any = false;
    const char *share = getenv("NBC_SOAK");
    soak = share ? atof(share) : 0;
    if (bad) {
        fprintf(stderr, "test_algs: what is %s?\n", bad);
        return 2;
    }
    for (int i = 0; i < nbc_nalgs; i++) {
        const struct nbc_alg *alg = &nbc_algs[i];
        if (!is_named(alg, argv[1]))
            continue;
        any = true;
        if (!run_alg(alg, &fixed))
            return 1;
    }
    if (!any)
        fprintf(stderr, "test_algs: no algorithm %s\n", argv[1]);
    return any ? 0 : 2;
}

/* --- the suite -------------------------------------------------------------------------------- */

UNIT(every_case, .each_row = true)
{
    const struct nbc_alg *alg = &nbc_algs[_i];
    struct tally t = {0};
    const struct fixed fixed = {0};
    ck_assert_msg(try_alg(alg, &fixed, &t), "%s", t.failure);
    ck_assert_msg(t.cases > 0, "%s:%s applies to no call", nbc_coll_name(alg->coll), alg->name);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "--list") == 0)
        return print_names(argc > 2 ? argv[2] : "all");
    if (argc > 1)
        return run_command(argc, argv);
    return unit_main();
}
