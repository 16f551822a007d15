/* SPDX-License-Identifier: MIT */
/* Operators and the datatypes of reductions. */
#include "cures.h"

/* Compositions of maps x → a·x + b modulo a prime: associative, not commutative. */
enum { PRIME = 7919, N = 100 };

struct map {
    int a, b;
};

static struct map compose(struct map first, struct map second)
{
    return (struct map){first.a * second.a % PRIME, (second.a * first.b + second.b) % PRIME};
}

static struct map map_of(int rank, int i)
{
    return (struct map){2 + rank + i, 5 * rank + i + 1};
}

/* The maps of ranks 0 to last, in order. */
static struct map composed(int last, int i)
{
    struct map all = map_of(0, i);
    for (int rank = 1; rank <= last; rank++)
        all = compose(all, map_of(rank, i));
    return all;
}

static void compose_all(void *in, void *inout, int *n, MPI_Datatype *type)
{
    struct map *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *n; i++)
        right[i] = compose(left[i], right[i]);
}

static void fill(struct map *maps)
{
    for (int i = 0; i < N; i++)
        maps[i] = map_of(test_rank, i);
}

static void check(const struct map *got, int last, const char *what)
{
    for (int i = 0; i < N; i++) {
        struct map want = composed(last, i);
        EXPECT(got[i].a == want.a && got[i].b == want.b, "%s: element %d", what, i);
    }
}

TEST(operator_not_commutative)
{
    MPI_Op op;
    MPI_Datatype type;
    MPI_Request request;
    struct map mine[N], result[N];
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose_all, 0, &op));
    fill(mine);
    OK(MPI_Iallreduce(mine, result, N, type, op, WORLD, &request));
    finish(&request);
    check(result, test_size - 1, "Iallreduce");
    for (int root = 0; root < test_size; root++) {
        OK(MPI_Ireduce(mine, result, N, type, op, root, WORLD, &request));
        finish(&request);
        if (test_rank == root)
            check(result, test_size - 1, "Ireduce");
        fill(result);
        OK(MPI_Ireduce(test_rank == root ? MPI_IN_PLACE : result, result, N, type, op, root, WORLD,
                       &request));
        finish(&request);
        if (test_rank == root)
            check(result, test_size - 1, "Ireduce in place");
    }
    OK(MPI_Iscan(mine, result, N, type, op, WORLD, &request));
    finish(&request);
    check(result, test_rank, "Iscan");
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
}

/* Elements of two integers with a gap of two behind them. */
enum { STRIDE = 4 };

static void compose_strided(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *n; i++, left += STRIDE, right += STRIDE) {
        struct map both = compose((struct map){left[0], left[1]}, (struct map){right[0], right[1]});
        right[0] = both.a;
        right[1] = both.b;
    }
}

/* The same behind the addresses of the elements. */
static void compose_behind(void *in, void *inout, int *n, MPI_Datatype *type)
{
    compose_strided((int *)in + STRIDE, (int *)inout + STRIDE, n, type);
}

static MPI_Datatype strided_type(void)
{
    MPI_Datatype pair, type;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_create_resized(pair, 0, STRIDE * (MPI_Aint)sizeof(int), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&pair));
    return type;
}

static int *strided(int blocks)
{
    int *data = ints(STRIDE * blocks);
    for (int i = 0; i < blocks; i++) {
        struct map map = map_of(test_rank, i);
        memcpy(&data[STRIDE * i], (int[]){map.a, map.b, -7, -7}, STRIDE * sizeof *data);
    }
    return data;
}

static void check_strided(const int *got, int i, const char *what)
{
    struct map want = composed(test_size - 1, i);
    EXPECT_INT(got[0], want.a, "%s", what);
    EXPECT_INT(got[1], want.b, "%s", what);
    EXPECT(got[2] == -1 && got[3] == -1, "%s has written into a gap", what);
}

TEST(operator_type_with_gaps)
{
    MPI_Op op;
    MPI_Datatype type = strided_type();
    MPI_Request request;
    int *mine = strided(test_size), *result = ints(STRIDE * test_size);
    OK(MPI_Op_create(compose_strided, 0, &op));
    memset(result, -1, (size_t)(STRIDE * test_size) * sizeof *result);
    OK(MPI_Iallreduce(mine, result, test_size, type, op, WORLD, &request));
    finish(&request);
    for (int i = 0; i < test_size; i++)
        check_strided(&result[STRIDE * i], i, "Iallreduce");
    memset(result, -1, (size_t)(STRIDE * test_size) * sizeof *result);
    OK(MPI_Ireduce_scatter_block(mine, result, 1, type, op, WORLD, &request));
    finish(&request);
    check_strided(result, test_rank, "Ireduce_scatter_block");
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    free(mine);
    free(result);
}

/* The data of an element begins behind its address. */
TEST(operator_type_with_lower_bound)
{
    MPI_Op op;
    MPI_Datatype data, type;
    MPI_Request request;
    int two = 2, behind = 0, *counts = ints(test_size);
    MPI_Aint place = STRIDE * (MPI_Aint)sizeof(int);
    int *mine = strided(test_size), *result = ints(STRIDE * test_size);
    OK(MPI_Type_create_hindexed(1, &two, &place, MPI_INT, &data));
    OK(MPI_Type_create_resized(data, 0, place, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose_behind, 0, &op));
    for (int i = 0; i < test_size; i++)
        counts[i] = 1;
    memset(result, -1, (size_t)(STRIDE * test_size) * sizeof *result);
    OK(MPI_Ireduce_scatter(mine - STRIDE, result - STRIDE, counts, type, op, WORLD, &request));
    finish(&request);
    check_strided(result, test_rank, "Ireduce_scatter");
    for (int i = STRIDE; i < STRIDE * test_size; i++)
        behind += result[i] != -1;
    EXPECT_INT(behind, 0, "elements are written behind the block");
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&data));
    free(mine);
    free(result);
    free(counts);
}

/* The receive buffer of rank 0 is not significant. */
TEST(iexscan_null_on_rank_0)
{
    MPI_Request request;
    int mine = 3, sum = -1;
    OK(MPI_Iexscan(&mine, test_rank > 0 ? &sum : NULL, 1, MPI_INT, MPI_SUM, WORLD, &request));
    finish(&request);
    EXPECT_INT(sum, test_rank > 0 ? 3 * test_rank : -1);
}

static void add_backwards(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int *from = in, *to = inout;
    (void)type;
    for (int i = 0; i < *n; i++)
        to[-i] += from[-i];
}

/* The elements follow each other towards lower addresses. */
TEST(type_negative_extent)
{
    MPI_Op op;
    MPI_Datatype type;
    MPI_Request request;
    enum { COUNT = 5 };
    int mine[COUNT], result[COUNT] = {0};
    OK(MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add_backwards, 1, &op));
    for (int i = 0; i < COUNT; i++)
        mine[i] = i + test_rank;
    OK(MPI_Iallreduce(&mine[COUNT - 1], &result[COUNT - 1], COUNT, type, op, WORLD, &request));
    finish(&request);
    for (int i = 0; i < COUNT; i++)
        EXPECT_INT(result[i], test_size * i + test_size * (test_size - 1) / 2, "element %d", i);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
}

TEST(ireduce_maxloc_long_double)
{
    MPI_Request request;
    struct {
        long double value;
        int index;
    } mine = {.value = 10 - test_rank, .index = test_rank};
    OK(MPI_Ireduce(test_rank == 0 ? MPI_IN_PLACE : &mine, &mine, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC,
                   0, WORLD, &request));
    finish(&request);
    if (test_rank == 0)
        EXPECT(mine.value == 10 && mine.index == 0, "the maximum is %Lg of %d", mine.value,
               mine.index);
}

/* Operator, datatype and communicator are freed while the operation is pending. */
TEST(freed_while_pending)
{
    MPI_Op op;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request request;
    struct map mine[N], result[N];
    OK(MPI_Comm_dup(WORLD, &comm));
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose_all, 0, &op));
    fill(mine);
    OK(MPI_Iallreduce(mine, result, N, type, op, comm, &request));
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&comm));
    finish(&request);
    check(result, test_size - 1, "Iallreduce");
}

TEST(reductions_of_nothing)
{
    MPI_Request request[3];
    int *zeros = ints(test_size);
    memset(zeros, 0, (size_t)test_size * sizeof *zeros);
    OK(MPI_Ireduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, WORLD, &request[0]));
    OK(MPI_Iallreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, WORLD, &request[1]));
    OK(MPI_Ireduce_scatter(NULL, NULL, zeros, MPI_INT, MPI_SUM, WORLD, &request[2]));
    OK(MPI_Waitall(3, request, MPI_STATUSES_IGNORE));
    free(zeros);
}

/* Nothing is written behind the block. */
TEST(ireduce_scatter_block_overrun)
{
    MPI_Request request;
    int *ones = ints(test_size), *result = ints(test_size);
    for (int i = 0; i < test_size; i++)
        ones[i] = 1;
    memset(result, 0, (size_t)(test_size + 1) * sizeof *result);
    OK(MPI_Ireduce_scatter_block(ones, result, 1, MPI_INT, MPI_SUM, WORLD, &request));
    finish(&request);
    EXPECT_INT(result[0], test_size);
    for (int i = 1; i <= test_size; i++)
        EXPECT_INT(result[i], 0, "behind the block");
    free(ones);
    free(result);
}

/* The root is the last rank, and no other has a receive buffer. */
TEST(ireduce_null_beside_root)
{
    int root = test_size - 1, sum;
    for (int round = 0; round < 20; round++) {
        MPI_Request request;
        sum = -1;
        OK(MPI_Ireduce(&test_rank, test_rank == root ? &sum : NULL, 1, MPI_INT, MPI_SUM, root,
                       WORLD, &request));
        finish(&request);
        if (test_rank == root)
            EXPECT_INT(sum, test_size * (test_size - 1) / 2);
    }
}
