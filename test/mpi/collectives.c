/* SPDX-License-Identifier: MIT */
/* Every collective in every form, one after the other: all roots, sizes from nothing to large, in
 * place, all operators, predefined and derived types, on the world and on parts of it. Each is a
 * test, so that each algorithm can be forced through all of it. NBC_FEW=1: with one size alone, for
 * what does not look at the sizes. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

static const int sizes[] = {0, 1, 7, 60, 1000};
enum { NSIZES = sizeof sizes / sizeof *sizes, LARGE = 70000, FEW = 2 };
static bool few;

/* The blocking collective gives the same: the definition by which all are checked is the MPI's too.
 * Only with plain arguments, because the MPIs' own have bugs: MPICH 4.0.2 ignores the displacement
 * in MPI_Allgatherv on one rank, crashes in MPI_Reduce in place with pair types, and truncates
 * these in MPI_Gather. On few processors not for each case, since each is a wait. */
static void run_blocking(struct spec spec, int *counter)
{
    spec.in_place = false;
    spec.style.plain = true;
    if (spec.style.kind->piece[1].length > 0 && !spec.op)
        spec.style.kind = &kinds[KIND_INT];
    if (*counter % (test_oversubscribed() ? 8 : 1) == 0)
        case_run(&spec, BLOCKING);
    ++*counter;
}

static struct spec make_spec(enum coll coll, const struct group *g, int serial, int root, int count)
{
    struct spec s = spec_random(coll, g, mix_in(test_seed, serial), 1);

    s.root = root;
    if (coll_reduces(coll)) {
        s.op = &opdefs[serial % NOPS];
        s.style.kind = &kinds[s.op->kind];
    }
    s.style.fine = serial % 2 == 0;
    s.count = s.style.fine ? count : (count + SEXTET - 1) / SEXTET;
    s.style.plain = serial % 5 == 0;
    return s;
}

/* Elements of a large block: of all blocks together where there is one per rank. */
static int large(enum coll coll, int size)
{
    bool one = coll == BCAST || coll == REDUCE || coll == ALLREDUCE || coll >= SCAN;

    return one ? LARGE : test_scale(LARGE / size, LARGE);
}

static void sweep(enum coll coll, const struct group *g, enum mode mode)
{
    struct batch batch = {.mode = mode};
    bool in_place = coll != BARRIER && coll != BCAST && coll < NINTRA;
    int repeat = coll_rooted(coll) ? 1 : 3, serial = g->size * 1000, blocking = 0;

    for (int root = 0; root < (coll_rooted(coll) ? g->size : repeat); root++)
        for (int i = few ? FEW : 0; i < (few ? FEW + 1 : NSIZES); i++)
            for (int k = 0; k < 1 + in_place; k++) {
                struct spec s =
                    make_spec(coll, g, serial++, coll_rooted(coll) ? root : 0, sizes[i]);
                s.in_place = k > 0;
                batch_add(&batch, &s);
                if (mode == NONBLOCKING)
                    run_blocking(s, &blocking);
            }
    batch_run(&batch);
    for (int k = 0; k < test_scale(2, 4) && coll != BARRIER && !few; k++) {
        struct spec s = make_spec(coll, g, serial++, (k * 7) % g->size, large(coll, g->size));
        s.in_place = in_place && k % 2 == 1;
        batch_add(&batch, &s);
    }
    batch_run(&batch);
}

/* Sums of numbers that do not add up exactly: all ranks have the same bits. */
static void have_same_bits(const struct group *g)
{
    enum { N = 3000 };
    static double in[N], out[N], first[N];
    struct rng rng = rng_private(7);

    for (int n = 1; n <= N; n *= 5) {
        MPI_Request r;
        for (int i = 0; i < n; i++)
            in[i] = 1.0 / (1 + rng_below(&rng, 1000000));
        MPI_Iallreduce(in, out, n, MPI_DOUBLE, MPI_SUM, g->comm, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        memcpy(first, out, sizeof out);
        MPI_Bcast(first, n, MPI_DOUBLE, 0, g->comm);
        EXPECT(memcmp(first, out, (size_t)n * sizeof *out) == 0,
               "allreduce of %d doubles: another result than on rank 0", n);
    }
}

/* The world, and its two parts, with ranks in reverse order. */
static struct group *groups[2];
static int ngroups = 1;

static void run(enum coll coll)
{
    for (int i = 0; i < ngroups; i++) {
        test_place("nonblocking %s on %d ranks", coll_name(coll), groups[i]->size);
        sweep(coll, groups[i], NONBLOCKING);
        test_place("persistent %s on %d ranks", coll_name(coll), groups[i]->size);
        if (test_has_persistent())
            sweep(coll, groups[i], PERSISTENT);
    }
}

/* Neighborhoods are tested by neighbors.c. */
static bool never(void)
{
    return false;
}

#define WANTED(NAME) NAME < NINTRA ? NULL : never
#include "each.def"

TEST(same_bits)
{
    for (int i = 0; i < ngroups; i++)
        have_same_bits(groups[i]);
}

static void begin(void)
{
    MPI_Comm part;
    kinds_init();
    few = getenv("NBC_FEW") != NULL;
    groups[0] = group_new(MPI_COMM_WORLD);
    if (test_size > 2) {
        MPI_Comm_split(MPI_COMM_WORLD, test_rank < test_size / 2 + 1, test_size - test_rank, &part);
        groups[ngroups++] = group_new(part);
    }
    for (int i = 0; i < ngroups; i++)
        MPI_Comm_set_errhandler(groups[i]->comm, MPI_ERRORS_RETURN);
}

static void end(void)
{
    while (ngroups > 0)
        group_delete(groups[--ngroups]);
    kinds_finish();
}

AROUND_TESTS(begin, end)
