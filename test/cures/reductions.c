/* SPDX-License-Identifier: MIT */
/* Operators and the datatypes of reductions. */
#include "cures.h"

/* Compositions of maps x → a·x + b modulo a prime: associative, not commutative. */
enum { PRIME = 7919 };

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
    int *mine = strided(test_size), *result = ints(STRIDE * test_size);
    OK(MPI_Op_create(compose_strided, 0, &op));
    memset(result, -1, (size_t)(STRIDE * test_size) * sizeof *result);
    COMPLETE(MPI_Iallreduce(mine, result, test_size, type, op, WORLD, &request));
    for (int i = 0; i < test_size; i++)
        check_strided(&result[STRIDE * i], i, "Iallreduce");
    memset(result, -1, (size_t)(STRIDE * test_size) * sizeof *result);
    COMPLETE(MPI_Ireduce_scatter_block(mine, result, 1, type, op, WORLD, &request));
    check_strided(result, test_rank, "Ireduce_scatter_block");
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
}

/* The data of an element begins behind its address. */
TEST(operator_type_with_lower_bound)
{
    MPI_Op op;
    MPI_Datatype data, type;
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
    COMPLETE(
        MPI_Ireduce_scatter(mine - STRIDE, result - STRIDE, counts, type, op, WORLD, &request));
    check_strided(result, test_rank, "Ireduce_scatter");
    for (int i = STRIDE; i < STRIDE * test_size; i++)
        behind += result[i] != -1;
    EXPECT_INT(behind, 0, "elements are written behind the block");
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&data));
}

/* The receive buffer of rank 0 is not significant. */
TEST(iexscan_null_on_rank_0)
{
    int mine = 3, sum = -1;
    COMPLETE(MPI_Iexscan(&mine, test_rank > 0 ? &sum : NULL, 1, MPI_INT, MPI_SUM, WORLD, &request));
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
    enum { COUNT = 5 };
    int mine[COUNT], result[COUNT] = {0};
    OK(MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add_backwards, 1, &op));
    for (int i = 0; i < COUNT; i++)
        mine[i] = i + test_rank;
    COMPLETE(
        MPI_Iallreduce(&mine[COUNT - 1], &result[COUNT - 1], COUNT, type, op, WORLD, &request));
    for (int i = 0; i < COUNT; i++)
        EXPECT_INT(result[i], test_size * i + test_size * (test_size - 1) / 2, "element %d", i);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
}

/* Operator, datatype and communicator are freed while the operation is pending. */
TEST(freed_while_pending)
{
    enum { N = 100 };
    MPI_Op op;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request request;
    struct map mine[N], result[N];
    OK(MPI_Comm_dup(WORLD, &comm));
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose_all, 0, &op));
    for (int i = 0; i < N; i++)
        mine[i] = map_of(test_rank, i);
    OK(MPI_Iallreduce(mine, result, N, type, op, comm, &request));
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&comm));
    finish(&request);
    for (int i = 0; i < N; i++) {
        struct map want = composed(test_size - 1, i);
        EXPECT(result[i].a == want.a && result[i].b == want.b, "element %d", i);
    }
}

static void add_nothing(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
}

/* Elements of a datatype without data. */
TEST(reductions_of_type_of_size_zero)
{
    MPI_Op op;
    MPI_Datatype type;
    MPI_Request request[4];
    int in = 1, out[4] = {-1, -1, -1, -1};
    OK(MPI_Type_contiguous(0, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add_nothing, 1, &op));
    OK(MPI_Iallreduce(&in, &out[0], 1, type, op, WORLD, &request[0]));
    OK(MPI_Ireduce(&in, &out[1], 1, type, op, 0, WORLD, &request[1]));
    OK(MPI_Iscan(&in, &out[2], 1, type, op, WORLD, &request[2]));
    OK(MPI_Ireduce_scatter_block(&in, &out[3], 1, type, op, WORLD, &request[3]));
    OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 4; i++)
        EXPECT_INT(out[i], -1, "reduction %d", i);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
}

/* The send buffer is a variable of a function that has returned, and other calls write over it: a
 * fault of the program. */
static void start_sum(double *sum, MPI_Request *request)
{
    double mine = test_rank + 1;
    OK(MPI_Iallreduce(&mine, sum, 1, MPI_DOUBLE, MPI_SUM, WORLD, request));
    mine = 1e9;
    __asm__ volatile("" : : "r"(&mine) : "memory");
}

TEST(send_buffer_of_a_function_that_has_returned)
{
    for (int round = 0; round < 200; round++) {
        MPI_Request request;
        double sum = -1;
        start_sum(&sum, &request);
        finish(&request);
        EXPECT(sum == test_size * (test_size + 1) / 2, "the sum is %g in round %d", sum, round);
    }
}
