/* SPDX-License-Identifier: MIT */
/* MPI_IN_PLACE. */
#include "cures.h"

struct vectors {
    int *counts, *displs, total;
    MPI_Datatype *types; /* each is a block in its place */
};

/* Blocks of different lengths from peer to peer, with so many elements before each. */
static struct vectors vectors_new(int (*count_of)(int peer), int gap)
{
    struct vectors v = {ints(test_size), ints(test_size), 0, NULL};
    v.types = test_scratch((size_t)test_size * sizeof *v.types);
    for (int i = 0; i < test_size; i++) {
        v.counts[i] = count_of(i);
        v.displs[i] = v.total + gap;
        v.total = v.displs[i] + v.counts[i];
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

/* Some pairs exchange nothing. */
static int sparse(int peer)
{
    return (peer + test_rank) % 3 * 1000;
}

TEST(in_place_ialltoallv_sparse)
{
    struct vectors v = vectors_new(sparse, 5);
    int *buffer = ints(v.total);
    each_of(&v, buffer, false);
    COMPLETE(MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, buffer, v.counts, v.displs,
                            MPI_INT, WORLD, &request));
    each_of(&v, buffer, true);
}

static int more_for_later_ranks(int peer)
{
    return test_rank + peer + 1;
}

/* Each block is one element of a datatype that has its place and length. */
static struct vectors places_new(int *ones, int *zeros)
{
    struct vectors v = vectors_new(more_for_later_ranks, 0);
    for (int i = 0; i < test_size; i++) {
        MPI_Aint place = v.displs[i] * (MPI_Aint)sizeof(int);
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
