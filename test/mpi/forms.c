/* SPDX-License-Identifier: MIT */
/* The ranks call a collective by either of its bindings, with int or with MPI_Count: these are one
 * procedure (MPI-4.1 section 2.6.4), so that they match, also where the MPI has the first alone.
 * What only one of them can say matches too: a count or displacement above INT_MAX on some ranks,
 * and a large datatype on the others. (A message of 2 GiB takes seconds: large.c has one.) */
#define _GNU_SOURCE
#include "cases.h"

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ROUNDS = 6, MOST = 50 };

/* As in collectives.c: what the MPI itself carries out gets plain arguments, since it has faults.
 */
static void make_plain(struct spec *s)
{
    s->in_place = false;
    s->style.plain = true;
    if (s->style.kind->piece[1].length > 0 && !s->op)
        s->style.kind = &kinds[KIND_INT];
}

static void mix_forms(const struct group *g, enum mode mode, int from, int to)
{
    for (int coll = from; coll < to; coll++) {
        if (g->remote && (coll == SCAN || coll == EXSCAN))
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t seed = mix_in(mix_in(test_seed, coll), round * 3 + (int)mode);
            struct spec s = spec_random((enum coll)coll, g, seed, MOST);
            if (mode == BLOCKING)
                make_plain(&s);
            /* In the first two rounds rank 0 alone differs from the others. */
            s.large =
                round < 2 ? (test_rank == 0) == (round == 0) : mix_in(seed, test_rank) >> 7 & 1;
            s.large = s.large && coll != BARRIER;
            test_place("%s, round %d", coll_name((enum coll)coll), round);
            case_run(&s, mode);
        }
    }
}

static void on_world(enum mode mode)
{
    struct group *world = group_new(MPI_COMM_WORLD);
    mix_forms(world, mode, 0, NINTRA);
    group_delete(world);
}

/* Between two groups of about the same size. */
static void between(enum mode mode)
{
    int low = test_size / 2, upper = test_rank >= low;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, upper, test_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : low, 7, &inter);
    MPI_Comm_free(&half);
    struct group *g = group_new(inter);
    mix_forms(g, mode, 0, NINTRA);
    group_delete(g);
}

static void on_ring(enum mode mode)
{
    int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &periodic, 0, &ring);
    struct group *g = group_new(ring);
    mix_forms(g, mode, NINTRA, NCOLLS);
    group_delete(g);
}

TEST(blocking)
{
    on_world(BLOCKING);
}

TEST(nonblocking)
{
    on_world(NONBLOCKING);
}

TEST(persistent, .wanted = test_has_persistent)
{
    on_world(PERSISTENT);
}

TEST(neighborhoods)
{
    on_ring(BLOCKING);
    on_ring(NONBLOCKING);
}

TEST(persistent_neighborhoods, .wanted = test_has_persistent)
{
    on_ring(PERSISTENT);
}

TEST(intercommunicators)
{
    between(BLOCKING);
    between(NONBLOCKING);
    if (test_has_persistent())
        between(PERSISTENT);
}

/* --- what one of the bindings alone can say ----------------------------------------------------
 * Some ranks say it by a count or a displacement above INT_MAX, the others by a datatype. */

#define CALL(suffix, Name, name, ...)                                   \
    (mode == BLOCKING      ? MPI_##Name##suffix(__VA_ARGS__)            \
     : mode == NONBLOCKING ? MPI_I##name##suffix(__VA_ARGS__, &request) \
                           : MPI_##Name##_init##suffix(__VA_ARGS__, MPI_INFO_NULL, &request))
#define EITHER(Name, name, large_args, args)                                                      \
    complete(large ? CALL_WITH(_c, Name, name, large_args) : CALL_WITH(, Name, name, args), mode, \
             &request)
#define CALL_WITH(suffix, Name, name, args) CALL(suffix, Name, name, ARGS args)
#define ARGS(...) __VA_ARGS__

/* A persistent one is started twice. */
static void complete(int error, enum mode mode, MPI_Request *request)
{
    EXPECT_INT(error, MPI_SUCCESS);
    for (int i = 0; i < (mode == PERSISTENT ? 2 : 1); i++) {
        if (mode == PERSISTENT)
            MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    if (mode == PERSISTENT)
        MPI_Request_free(request);
}

/* Many elements of no bytes, or one. */
static void large_counts(enum mode mode, bool large)
{
    const MPI_Count many = ((MPI_Count)1 << 31) + 9;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype none;
    char a = 'a', b = 'b';
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_commit(&none);
    test_place("large counts: bcast");
    EITHER(Bcast, bcast, (&a, many, none, 0, world), (&a, 1, none, 0, world));
    test_place("large counts: gather");
    EITHER(Gather, gather, (&a, many, none, &b, many, none, 0, world),
           (&a, 1, none, &b, 1, none, 0, world));
    test_place("large counts: allgather");
    EITHER(Allgather, allgather, (&a, many, none, &b, many, none, world),
           (&a, 1, none, &b, 1, none, world));
    test_place("large counts: alltoall");
    EITHER(Alltoall, alltoall, (&a, many, none, &b, many, none, world),
           (&a, 1, none, &b, 1, none, world));
    EXPECT(a == 'a' && b == 'b', "elements without data were written");
    MPI_Type_free(&none);
}

/* The blocks are this far apart, in ints; of the memory between there is nothing. */
static const MPI_Aint FAR = ((MPI_Aint)1 << 31) + 77;

struct far {
    int *base;
    size_t size;
    MPI_Datatype type; /* an int, and the extent of the distance */
    MPI_Count ones[MOST];
    MPI_Aint ints[MOST];           /* displacements in ints */
    int one[MOST], elements[MOST]; /* in elements of the type */
};

static struct far *far_new(void)
{
    struct far *f = test_alloc(sizeof *f);
    f->size = (size_t)(FAR * test_size + 1) * sizeof(int);
    f->base = mmap(NULL, f->size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->base == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Type_create_resized(MPI_INT, 0, FAR * (MPI_Aint)sizeof(int), &f->type);
    MPI_Type_commit(&f->type);
    for (int i = 0; i < test_size; i++) {
        f->one[i] = 1;
        f->ones[i] = 1;
        f->elements[i] = i;
        f->ints[i] = i * FAR;
    }
    return f;
}

static void far_free(struct far *f)
{
    MPI_Type_free(&f->type);
    munmap(f->base, f->size);
    free(f);
}

static void far_check(struct far *f, int to, const char *what)
{
    for (int i = 0; i < test_size; i++) {
        EXPECT_INT(f->base[i * FAR], 100 * i + to, "%s: from rank %d", what, i);
        f->base[i * FAR] = -1;
    }
}

static void large_displacements(enum mode mode, bool large)
{
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    struct far *in = far_new(), *out = far_new();
    int mine = 100 * test_rank;
    test_place("large displacements: allgatherv");
    EITHER(Allgatherv, allgatherv,
           (&mine, 1, MPI_INT, in->base, in->ones, in->ints, MPI_INT, world),
           (&mine, 1, MPI_INT, in->base, in->one, in->elements, in->type, world));
    far_check(in, 0, "allgatherv");
    for (int i = 0; i < test_size; i++)
        out->base[i * FAR] = mine + i;
    test_place("large displacements: alltoallv");
    EITHER(Alltoallv, alltoallv,
           (out->base, out->ones, out->ints, MPI_INT, in->base, in->ones, in->ints, MPI_INT, world),
           (out->base, out->one, out->elements, out->type, in->base, in->one, in->elements,
            in->type, world));
    far_check(in, test_rank, "alltoallv");
    far_free(in);
    far_free(out);
}

/* Blocking ones only if nbcshim carries them out, as it does if the MPI lacks the forms with
 * MPI_Count: for faults of the MPIs see type_of_size_zero and extent_above_2gib of test/cures. */
TEST(large_beside_int)
{
#ifdef HAVE_MPI_BCAST_C
    bool blocking = !test_blocking_is_native();
#else
    bool blocking = true;
#endif
    for (int parity = 0; parity < 2; parity++)
        for (enum mode mode = blocking ? BLOCKING : NONBLOCKING;
             mode <= (test_has_persistent() ? PERSISTENT : NONBLOCKING); mode++) {
            large_counts(mode, test_rank % 2 == parity);
            large_displacements(mode, test_rank % 2 == parity);
        }
}

AROUND_TESTS(kinds_init, kinds_finish)
