/* SPDX-License-Identifier: MIT */
/* Datatypes, counts, displacements, and arguments that are not significant. */
#include "cures.h"

#include <sys/mman.h>

/* Nothing is sent, and the types of nothing are MPI_DATATYPE_NULL. */
TEST(ialltoallw_null_types)
{
    int *zeros = ints(test_size);
    MPI_Datatype *types = test_scratch((size_t)test_size * sizeof *types);
    for (int i = 0; i < test_size; i++) {
        zeros[i] = 0;
        types[i] = MPI_DATATYPE_NULL;
    }
    COMPLETE(MPI_Ialltoallw(NULL, zeros, zeros, types, NULL, zeros, zeros, types, WORLD, &request));
}

/* Ranks differ in how many elements without data they pass: some pass none. */
TEST(type_of_size_zero)
{
    MPI_Datatype type;
    int n = test_rank % 2 ? 5 : 0, in = -1, out = -1;
    OK(MPI_Type_contiguous(0, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    COMPLETE(MPI_Ibcast(&out, n, type, 0, WORLD, &request));
    COMPLETE(MPI_Igather(&out, n, type, &in, 3, type, 0, WORLD, &request));
    COMPLETE(MPI_Iscatter(&out, 3, type, &in, n, type, 0, WORLD, &request));
    COMPLETE(MPI_Iallgather(&out, n, type, &in, 1, type, WORLD, &request));
    EXPECT_INT(in, -1);
    OK(MPI_Type_free(&type));
}

/* The extent of one element is more than 2 GiB. The memory between is not touched. */
TEST(extent_above_2gib)
{
    MPI_Datatype far;
    MPI_Aint extent = ((MPI_Aint)5 << 29) + 4096;
    size_t size = (size_t)extent * (size_t)test_size;
    int mine = sent(test_rank, 0);
    char *there = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (there == MAP_FAILED) {
        test_fail("no address space");
        return;
    }
    OK(MPI_Type_create_resized(MPI_INT, 0, extent, &far));
    OK(MPI_Type_commit(&far));
    COMPLETE(MPI_Iallgather(&mine, 1, MPI_INT, there, 1, far, WORLD, &request));
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(*(int *)(there + i * extent), sent(i, 0), "of rank %d", i);
    OK(MPI_Type_free(&far));
    munmap(there, size);
}
