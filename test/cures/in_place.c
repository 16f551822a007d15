/* SPDX-License-Identifier: MIT */
/* MPI_IN_PLACE. */
#include "cures.h"

/* A rank exchanges blocks of many elements with each other. */
enum { BLOCK = 2000 };

static void fill(int *buffer)
{
    for (int i = 0; i < BLOCK * test_size; i++)
        buffer[i] = sent(test_rank, i / BLOCK) + 100000 * (i % BLOCK);
}

static void check(const int *buffer)
{
    for (int i = 0; i < BLOCK * test_size; i++)
        EXPECT_INT(buffer[i], sent(i / BLOCK, test_rank) + 100000 * (i % BLOCK), "element %d", i);
}

struct vectors {
    int *counts, *displs, *byte_displs, total;
    MPI_Datatype *types;
};

/* Blocks of one element, or of different ones from peer to peer. */
static struct vectors vectors_new(bool vary)
{
    struct vectors v = {ints(test_size), ints(test_size), ints(test_size), 0, NULL};
    v.types = test_scratch((size_t)test_size * sizeof *v.types);
    for (int i = 0; i < test_size; i++) {
        v.counts[i] = vary ? test_rank + i + 1 : 1;
        v.displs[i] = v.total;
        v.byte_displs[i] = v.total * (int)sizeof(int);
        v.types[i] = MPI_INT;
        v.total += v.counts[i];
    }
    return v;
}

/* Fills the blocks with what this rank sends, or checks what it has received. */
static void each_of(const struct vectors *v, int *buffer, bool received)
{
    for (int i = 0; i < test_size; i++)
        for (int k = 0; k < v->counts[i]; k++) {
            int *element = &buffer[v->displs[i] + k];
            int here = (received ? sent(i, test_rank) : sent(test_rank, i)) + 100000 * k;
            if (received)
                EXPECT_INT(*element, here, "element %d from rank %d", k, i);
            else
                *element = here;
        }
}

TEST(in_place_ialltoall)
{
    int *buffer = ints(BLOCK * test_size);
    fill(buffer);
    COMPLETE(
        MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, BLOCK, MPI_INT, WORLD, &request));
    check(buffer);
}

static void ialltoallv(struct vectors *v)
{
    int *buffer = ints(v->total);
    each_of(v, buffer, false);
    COMPLETE(MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, buffer, v->counts,
                            v->displs, MPI_INT, WORLD, &request));
    each_of(v, buffer, true);
}

TEST(in_place_ialltoallv)
{
    struct vectors v = vectors_new(true);
    ialltoallv(&v);
}

/* Some pairs exchange nothing, and there are elements between the blocks. */
TEST(in_place_ialltoallv_sparse)
{
    struct vectors v = vectors_new(false);
    v.total = 0;
    for (int i = 0; i < test_size; i++) {
        v.counts[i] = (i + test_rank) % 3 * 1000;
        v.displs[i] = v.total + 5;
        v.total += v.counts[i] + 5;
    }
    ialltoallv(&v);
}

/* Each block is one element of a datatype that has its place and length. */
static struct vectors places_new(int *ones, int *zeros)
{
    struct vectors v = vectors_new(true);
    for (int i = 0; i < test_size; i++) {
        MPI_Aint place = v.byte_displs[i];
        OK(MPI_Type_create_hindexed(1, &v.counts[i], &place, MPI_INT, &v.types[i]));
        OK(MPI_Type_commit(&v.types[i]));
        ones[i] = 1;
        zeros[i] = 0;
    }
    return v;
}

static void places_free(struct vectors *v)
{
    for (int i = 0; i < test_size; i++)
        OK(MPI_Type_free(&v->types[i]));
}

TEST(in_place_ialltoallw)
{
    int *ones = ints(test_size), *zeros = ints(test_size);
    struct vectors v = places_new(ones, zeros);
    int *buffer = ints(v.total);
    each_of(&v, buffer, false);
    COMPLETE(MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, buffer, ones, zeros, v.types, WORLD,
                            &request));
    each_of(&v, buffer, true);
    places_free(&v);
}

TEST(in_place_alltoallw_init)
{
    MPI_Request request;
    NEEDS(MPI_Alltoallw_init);
    int *ones = ints(test_size), *zeros = ints(test_size);
    struct vectors v = places_new(ones, zeros);
    int *buffer = ints(v.total);
    OK(MPI_Alltoallw_init(MPI_IN_PLACE, NULL, NULL, NULL, buffer, ones, zeros, v.types, WORLD,
                          MPI_INFO_NULL, &request));
    for (int round = 0; round < 2; round++) {
        each_of(&v, buffer, false);
        run_again(&request);
        each_of(&v, buffer, true);
    }
    OK(MPI_Request_free(&request));
    places_free(&v);
}

TEST(in_place_alltoall_init)
{
    MPI_Request request;
    int *buffer;
    NEEDS(MPI_Alltoall_init);
    buffer = ints(BLOCK * test_size);
    OK(MPI_Alltoall_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, BLOCK, MPI_INT, WORLD,
                         MPI_INFO_NULL, &request));
    for (int round = 0; round < 2; round++) {
        fill(buffer);
        run_again(&request);
        check(buffer);
    }
    OK(MPI_Request_free(&request));
}

/* On one rank too. */
TEST(in_place_ireduce_scatter)
{
    struct vectors v = vectors_new(false);
    int *buffer = ints(test_size);
    for (int i = 0; i < test_size; i++)
        buffer[i] = i + 1;
    COMPLETE(
        MPI_Ireduce_scatter(MPI_IN_PLACE, buffer, v.counts, MPI_INT, MPI_SUM, WORLD, &request));
    EXPECT_INT(buffer[0], test_size * (test_rank + 1));
}
