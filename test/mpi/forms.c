/* SPDX-License-Identifier: MIT */
/* The ranks call a collective by either of its bindings, with int or with MPI_Count: these are one
 * procedure (MPI-4.1 section 2.6.4), so that they match, also where the MPI has the first alone. */
#include "cases.h"

#include <stdio.h>

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
    for (int coll = from; coll < to; coll++)
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t seed = mix_in(mix_in(test_seed, coll), round * 3 + (int)mode);
            struct spec s = spec_random((enum coll)coll, g, seed, MOST);
            if (mode == BLOCKING)
                make_plain(&s);
            /* In the first two rounds rank 0 alone differs from the others. */
            s.large = round < 2 ? (g->rank == 0) == (round == 0) : mix_in(seed, g->rank) >> 7 & 1;
            s.large = s.large && coll != BARRIER;
            test_place("%s, round %d", coll_name((enum coll)coll), round);
            case_run(&s, mode);
        }
}

static void on_world(enum mode mode)
{
    struct group *world = group_new(MPI_COMM_WORLD);
    mix_forms(world, mode, 0, NINTRA);
    group_delete(world);
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

int main(int argc, char **argv)
{
    return test_main(argc, argv, kinds_init, kinds_finish);
}
