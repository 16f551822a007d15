/* SPDX-License-Identifier: MIT */
/* Results of nbcinfo --selftest: the cases of the test programs, test/mpi/common. */
#include "selftest.h"

#include "common/batch.h"

#include <pthread.h>
#include <stdlib.h>

#include "meter.h"

const char *const right_kinds[KINDS_OF_CALL] = {"nonblocking", "persistent", "between groups"};

enum { NKINDS_OF_MODE = 2, NSIZES = 3, ROUNDS_OF_SIZES = 3, INTER = 2 };

/* Elements of a vector or of a block, by round. */
static const int sizes[ROUNDS_OF_SIZES][NSIZES] = {{0, 1, 60}, {7, 300, 1000}, {2, 3000, 20000}};

/* What a thread works on. */
struct course {
    MPI_Comm comm; /* its own, of all ranks */
    int thread, serial;
    double seconds, at_most;
    struct right right;
};

/* Bounds buffers, and the work of a rank that combines the contributions of all. */
static int bounded(int count, int ranks)
{
    enum { MOST = 200000 };
    int most = MOST / ranks;
    return count <= most ? count : most > 0 ? most : 1;
}

static bool has_blocks(enum coll coll)
{
    return coll != BCAST && coll != REDUCE && coll != ALLREDUCE && coll != SCAN && coll != EXSCAN;
}

static struct spec draw(struct course *c, enum coll coll, const struct group *g, int count)
{
    struct spec s = spec_random(coll, g, mix_in(test_seed, c->serial), 1);
    int ranks = group_total(g);
    s.count = has_blocks(coll) || ranks > 64 ? bounded(count, ranks) : count;
    if (!s.style.fine)
        s.count = (s.count + SEXTET - 1) / SEXTET;
    s.root = c->serial % ranks;
    s.large = c->serial % 2 == 1;
    s.open = true;
    c->serial++;
    return s;
}

/* Some of one collective, pending together; persistent ones are started three times. */
static void call_some(struct course *c, const struct group *g, enum coll coll, enum mode mode)
{
    static const char *const names[] = {[NONBLOCKING] = "nonblocking", [PERSISTENT] = "persistent"};
    struct batch batch = {.mode = mode};
    int before = test_failures(), round = c->right.rounds;
    test_place("%s %s%s, round %d", names[mode], coll_name(coll),
               g->remote ? " between two groups" : "", round + 1);
    if (test_rank == 0 && c->thread == 0)
        meter_step("results: round %d, %s", round + 1, coll_name(coll));
    for (int i = 0; i < NSIZES; i++) {
        struct spec s = draw(c, coll, g, sizes[round % ROUNDS_OF_SIZES][i]);
        c->right.large += s.large && coll != BARRIER;
        batch_add(&batch, &s);
    }
    batch_run(&batch);
    c->right.calls[g->remote ? INTER : mode == PERSISTENT] +=
        mode == PERSISTENT ? 3 * NSIZES : NSIZES;
    c->right.failures[coll] += test_failures() - before;
}

/* Collectives from `first` up to `last`. Returns false if time ran out. */
static bool call_all(struct course *c, const struct group *g, enum coll first, enum coll last)
{
    if (g)
        MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
    for (enum coll coll = first; coll < last; coll++) {
        if (!selftest_has_time(c->comm, c->right.rounds ? c->seconds : c->at_most))
            return false;
        if (g) {
            call_some(c, g, coll, NONBLOCKING);
            call_some(c, g, coll, PERSISTENT);
        } else {
            c->serial += NKINDS_OF_MODE * NSIZES; /* all ranks draw the same cases afterwards */
        }
    }
    return true;
}

static bool on_world(struct course *c)
{
    MPI_Comm comm;
    MPI_Comm_dup(c->comm, &comm);
    struct group *g = group_new(comm);
    bool done = call_all(c, g, BARRIER, NINTRA);
    group_delete(g);
    return done;
}

/* Ranks may be outside of a grid. */
static bool on_topology(struct course *c)
{
    struct rng shared = {mix_in(test_seed, c->right.rounds)};
    enum topology_kind kind = (enum topology_kind)(c->right.rounds % NTOPOLOGIES);
    MPI_Comm comm = topology_make(c->comm, kind, &shared);
    struct group *g = comm == MPI_COMM_NULL ? NULL : group_new(comm);
    bool done = call_all(c, g, NINTRA, NCOLLS);
    if (g)
        group_delete(g);
    return done;
}

static bool between_groups(struct course *c)
{
    if (test_size < 2)
        return true;
    int upper = test_rank >= test_size / 2;
    MPI_Comm local, comm;
    MPI_Comm_split(c->comm, upper, test_rank, &local);
    MPI_Intercomm_create(local, 0, c->comm, upper ? 0 : test_size / 2, 1, &comm);
    MPI_Comm_free(&local);
    struct group *g = group_new(comm);
    bool done = call_all(c, g, BARRIER, SCAN);
    group_delete(g);
    return done;
}

static void *run_course(void *data)
{
    struct course *c = data;
    c->serial = 1 + 7 * c->thread;
    while (on_world(c) && on_topology(c) && between_groups(c))
        c->right.rounds++;
    return NULL;
}

static void add(struct right *sum, const struct right *r)
{
    for (int i = 0; i < KINDS_OF_CALL; i++)
        sum->calls[i] += r->calls[i];
    sum->large += r->large;
    sum->rounds = sum->rounds < r->rounds ? sum->rounds : r->rounds;
    for (int i = 0; i < NCOLLS; i++)
        sum->failures[i] += r->failures[i];
}

bool right_init(int *argc, char ***argv, bool threads)
{
    if (!threads) {
        test_init(argc, argv);
        return true;
    }
    return test_init_thread(argc, argv, MPI_THREAD_MULTIPLE) == MPI_THREAD_MULTIPLE;
}

struct right right_run(bool threads, double seconds, double at_most)
{
    struct course courses[2] = {{.thread = 0, .seconds = seconds, .at_most = at_most},
                                {.thread = 1, .seconds = seconds, .at_most = at_most}};
    pthread_t second;
    kinds_init();
    for (int i = 0; i <= threads; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &courses[i].comm);
    bool started = threads && pthread_create(&second, NULL, run_course, &courses[1]) == 0;
    if (threads && !started) {
        test_fail("cannot start a thread");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    run_course(&courses[0]);
    struct right sum = courses[0].right;
    if (started) {
        pthread_join(second, NULL);
        add(&sum, &courses[1].right);
    }
    for (int i = 0; i <= threads; i++)
        MPI_Comm_free(&courses[i].comm);
    PMPI_Allreduce(MPI_IN_PLACE, sum.failures, NCOLLS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    kinds_finish();
    return sum;
}
