/* SPDX-License-Identifier: MIT */
/* Datatypes, counts, displacements, and arguments that are not significant. */
#include "cures.h"

#include <sys/mman.h>

/* Absolute addresses in the datatypes of each peer. */
TEST(ialltoallw_bottom)
{
    int *out = ints(test_size), *in = ints(test_size), *ones = ints(test_size),
        *zeros = ints(test_size);
    MPI_Datatype *from = test_scratch((size_t)test_size * sizeof *from);
    MPI_Datatype *to = test_scratch((size_t)test_size * sizeof *to);
    for (int i = 0; i < test_size; i++) {
        MPI_Aint address;
        out[i] = sent(test_rank, i);
        in[i] = -1;
        ones[i] = 1;
        zeros[i] = 0;
        OK(MPI_Get_address(&out[i], &address));
        OK(MPI_Type_create_hindexed(1, &ones[i], &address, MPI_INT, &from[i]));
        OK(MPI_Get_address(&in[i], &address));
        OK(MPI_Type_create_hindexed(1, &ones[i], &address, MPI_INT, &to[i]));
        OK(MPI_Type_commit(&from[i]));
        OK(MPI_Type_commit(&to[i]));
    }
    COMPLETE(MPI_Ialltoallw(MPI_BOTTOM, ones, zeros, from, MPI_BOTTOM, ones, zeros, to, WORLD,
                            &request));
    for (int i = 0; i < test_size; i++) {
        EXPECT_INT(in[i], sent(i, test_rank), "from rank %d", i);
        OK(MPI_Type_free(&from[i]));
        OK(MPI_Type_free(&to[i]));
    }
}

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

/* Half of the ranks describe the same data by another datatype and count. */
static MPI_Datatype block_type(int *count)
{
    MPI_Datatype type;
    bool pieces = test_rank % 2 == 0;
    *count = pieces ? 6000 : 1000;
    if (pieces)
        OK(MPI_Type_dup(MPI_INT, &type));
    else
        OK(MPI_Type_contiguous(6, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

TEST(other_type_on_each_rank)
{
    enum { MANY = 6000 };
    int count, *one = ints(MANY), *all = ints(MANY * test_size);
    MPI_Datatype type = block_type(&count);
    for (int i = 0; i < MANY; i++)
        one[i] = sent(test_rank, i);
    COMPLETE(MPI_Iallgather(one, count, type, all, count, type, WORLD, &request));
    for (int i = 0; i < MANY * test_size; i++)
        EXPECT_INT(all[i], sent(i / MANY, i % MANY), "of Iallgather");
    COMPLETE(MPI_Ibcast(one, count, type, test_size - 1, WORLD, &request));
    for (int i = 0; i < MANY; i++)
        EXPECT_INT(one[i], sent(test_size - 1, i), "of Ibcast");
    OK(MPI_Type_free(&type));
}

/* Rank r receives from all at displacements whose offsets in bytes are more than 2 GiB. The memory
 * between is not touched. */
TEST(displacement_above_2gib)
{
    enum { FAR = 700 * 1024 * 1024 };
    size_t size = (size_t)FAR * sizeof(int) + 65536;
    int *there = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int *counts = ints(test_size), *displs = ints(test_size), mine = sent(test_rank, 0);
    if (there == MAP_FAILED) {
        test_fail("no address space");
        return;
    }
    for (int i = 0; i < test_size; i++) {
        counts[i] = 1;
        displs[i] = FAR + i;
    }
    COMPLETE(MPI_Iallgatherv(&mine, 1, MPI_INT, there, counts, displs, MPI_INT, WORLD, &request));
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(there[FAR + i], sent(i, 0), "of Iallgatherv");
    there[FAR + test_size] = 0;
    COMPLETE(MPI_Igatherv(&mine, 1, MPI_INT, there, counts, displs, MPI_INT, 0, WORLD, &request));
    munmap(there, size);
}

/* Blocks of a datatype without data; some ranks send none of it, some several. */
TEST(igatherv_type_of_size_zero)
{
    MPI_Datatype type;
    int *counts = ints(test_size), *displs = ints(test_size), nothing = 0;
    OK(MPI_Type_contiguous(0, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < test_size; i++) {
        counts[i] = i % 3;
        displs[i] = i;
    }
    COMPLETE(MPI_Igatherv(&nothing, counts[test_rank], type, displs, counts, displs, type, 0, WORLD,
                          &request));
    COMPLETE(MPI_Iscatterv(displs, counts, displs, type, &nothing, counts[test_rank], type, 0,
                           WORLD, &request));
    OK(MPI_Type_free(&type));
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

/* A null datatype for the buffer that only the root has. */
TEST(igather_null_type_beside_root)
{
    bool root = test_rank == 0;
    int mine = sent(test_rank, 0), *all = ints(test_size);
    COMPLETE(MPI_Igather(&mine, 1, MPI_INT, root ? all : NULL, root ? 1 : 0,
                         root ? MPI_INT : MPI_DATATYPE_NULL, 0, WORLD, &request));
    for (int i = 0; root && i < test_size; i++)
        EXPECT_INT(all[i], sent(i, 0), "of Igather");
    COMPLETE(MPI_Iscatter(root ? all : NULL, root ? 1 : 0, root ? MPI_INT : MPI_DATATYPE_NULL,
                          &mine, 1, MPI_INT, 0, WORLD, &request));
    EXPECT_INT(mine, sent(test_rank, 0));
}

/* Numbers below zero and pointers to nowhere where the standard says that they are not
 * significant. */
TEST(garbage_beside_root)
{
    bool root = test_rank == 0;
    int mine = sent(test_rank, 0), *all = ints(test_size), *nowhere = (int *)8;
    COMPLETE(MPI_Igather(&mine, 1, MPI_INT, root ? all : nowhere, root ? 1 : -5, MPI_INT, 0, WORLD,
                         &request));
    for (int round = 0; round < 20; round++) {
        mine = -1;
        COMPLETE(MPI_Iscatter(root ? all : nowhere, root ? 1 : -5, MPI_INT, &mine, 1, MPI_INT, 0,
                              WORLD, &request));
        EXPECT_INT(mine, sent(test_rank, 0));
    }
}

/* With MPI_IN_PLACE the arguments of the send buffer are not significant. */
TEST(garbage_in_place)
{
    int *all = ints(test_size);
    all[test_rank] = sent(test_rank, 0);
    COMPLETE(MPI_Iallgather(MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, all, 1, MPI_INT, WORLD, &request));
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(all[i], sent(i, 0), "of Iallgather");
    for (int i = 0; i < test_size; i++)
        all[i] = sent(test_rank, i);
    COMPLETE(MPI_Ialltoall(MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, all, 1, MPI_INT, WORLD, &request));
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(all[i], sent(i, test_rank), "of Ialltoall");
}

/* Lengths around those at which a broadcast of MPICH changes its algorithm. */
TEST(ibcast_lengths)
{
    const int lengths[] = {1, 12287, 12288, 32000, 32001, 524287, 524289};
    char *data = test_scratch(524289);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        int n = lengths[k], root = (int)k % test_size;
        memset(data, test_rank == root ? 'x' : 0, (size_t)n);
        COMPLETE(MPI_Ibcast(data, n, MPI_BYTE, root, WORLD, &request));
        EXPECT(data[0] == 'x' && memcmp(data, data + 1, (size_t)n - 1) == 0, "%d bytes", n);
    }
}

/* The large-count forms. */
TEST(large_count_alltoallv)
{
    MPI_Count counts[64], byte = 1;
    MPI_Aint displs[64], far = (MPI_Aint)3 << 30;
    char *in, out[64];
    NEEDS(MPI_Ialltoallv_c);
    if (test_size > 64)
        return;
    in = mmap(NULL, (size_t)far + 65536, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (in == MAP_FAILED) {
        test_fail("no address space");
        return;
    }
    MPI_Aint here[64];
    for (int i = 0; i < test_size; i++) {
        counts[i] = byte;
        here[i] = i;
        displs[i] = far + i;
        out[i] = (char)(test_rank * 8 + i + 1);
    }
    COMPLETE(MPI_Ialltoallv_c(out, counts, here, MPI_CHAR, in, counts, displs, MPI_CHAR, WORLD,
                              &request));
    for (int i = 0; i < test_size; i++)
        EXPECT_INT(in[far + i], (char)(i * 8 + test_rank + 1), "from rank %d", i);
    munmap(in, (size_t)far + 65536);
}

/* Another of this many elements each time, without a pause. */
TEST(iallgather_many_times)
{
    enum { ROUNDS = 1000, MOST = 700 };
    int *mine = ints(MOST), *all = ints(MOST * test_size);
    for (int round = 0; round < ROUNDS; round++) {
        int n = 1 + round * 37 % MOST;
        for (int i = 0; i < n; i++)
            mine[i] = sent(test_rank, round + i);
        COMPLETE(MPI_Iallgather(mine, n, MPI_INT, all, n, MPI_INT, WORLD, &request));
        for (int i = 0; i < n * test_size; i++)
            EXPECT_INT(all[i], sent(i / n, round + i % n), "round %d", round);
    }
}

/* Writes over arrays of arguments. */
static void spoil(int *counts, int *displs)
{
    for (int i = 0; i < test_size; i++) {
        counts[i] = -5;
        displs[i] = 1 << 28;
    }
}

/* The arrays of counts and displacements are variables of a function that returns before the
 * operation is complete: a fault of the program. */
TEST(arrays_changed_before_completion)
{
    enum { MANY = 3000 };
    MPI_Request request;
    int *counts = ints(test_size), *displs = ints(test_size);
    int *out = ints(MANY * test_size), *in = ints(MANY * test_size);
    for (int v = 0; v < 2; v++) {
        for (int i = 0; i < test_size; i++) {
            counts[i] = MANY;
            displs[i] = i * MANY;
        }
        for (int i = 0; i < MANY * test_size; i++) {
            out[i] = sent(test_rank, v ? i % MANY : i);
            in[i] = -1;
        }
        if (v)
            OK(MPI_Iallgatherv(out, MANY, MPI_INT, in, counts, displs, MPI_INT, WORLD, &request));
        else
            OK(MPI_Ialltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, WORLD,
                              &request));
        spoil(counts, displs);
        finish(&request);
        for (int i = 0; i < MANY * test_size; i++)
            EXPECT_INT(in[i], sent(i / MANY, (v ? 0 : test_rank * MANY) + i % MANY), "%s %d",
                       v ? "Iallgatherv" : "Ialltoallv", i);
    }
}
