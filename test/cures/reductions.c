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

static void fill(struct map *maps, int n)
{
    for (int i = 0; i < n; i++)
        maps[i] = map_of(test_rank, i);
}

/* Of the composition of ranks 0 to last: n elements from this one on. */
static void check_from(const struct map *got, int first, int n, int last, const char *what)
{
    for (int i = 0; i < n; i++) {
        struct map want = composed(last, first + i);
        EXPECT(got[i].a == want.a && got[i].b == want.b, "%s: element %d", what, first + i);
    }
}

static void check(const struct map *got, int n, int last, const char *what)
{
    check_from(got, 0, n, last, what);
}

/* The operator and vectors of a length that all ranks divide. */
struct maps {
    MPI_Op op;
    MPI_Datatype type;
    int n;
    struct map *mine, *result;
};

static void reduce_to_each(struct maps *m)
{
    for (int root = 0; root < test_size; root++) {
        bool here = test_rank == root;
        COMPLETE(MPI_Ireduce(m->mine, m->result, m->n, m->type, m->op, root, WORLD, &request));
        if (here)
            check(m->result, m->n, test_size - 1, "Ireduce");
        fill(m->result, m->n);
        COMPLETE(MPI_Ireduce(here ? MPI_IN_PLACE : m->result, m->result, m->n, m->type, m->op, root,
                             WORLD, &request));
        if (here)
            check(m->result, m->n, test_size - 1, "Ireduce in place");
    }
}

static void reduce_and_scatter(struct maps *m)
{
    int block = m->n / test_size, *counts = ints(test_size);
    for (int i = 0; i < test_size; i++)
        counts[i] = block;
    COMPLETE(MPI_Ireduce_scatter_block(m->mine, m->result, block, m->type, m->op, WORLD, &request));
    check_from(m->result, test_rank * block, block, test_size - 1, "Ireduce_scatter_block");
    COMPLETE(MPI_Ireduce_scatter(m->mine, m->result, counts, m->type, m->op, WORLD, &request));
    check_from(m->result, test_rank * block, block, test_size - 1, "Ireduce_scatter");
}

static void reduce_to_all(struct maps *m)
{
    COMPLETE(MPI_Iallreduce(m->mine, m->result, m->n, m->type, m->op, WORLD, &request));
    check(m->result, m->n, test_size - 1, "Iallreduce");
    fill(m->result, m->n);
    COMPLETE(MPI_Iallreduce(MPI_IN_PLACE, m->result, m->n, m->type, m->op, WORLD, &request));
    check(m->result, m->n, test_size - 1, "Iallreduce in place");
    COMPLETE(MPI_Iscan(m->mine, m->result, m->n, m->type, m->op, WORLD, &request));
    check(m->result, m->n, test_rank, "Iscan");
    COMPLETE(MPI_Iexscan(m->mine, m->result, m->n, m->type, m->op, WORLD, &request));
    if (test_rank > 0)
        check(m->result, m->n, test_rank - 1, "Iexscan");
}

/* The algorithms of an MPI depend on the length. */
TEST(operator_not_commutative)
{
    const int each[] = {1, 30, 9000};
    struct maps m;
    OK(MPI_Type_contiguous(2, MPI_INT, &m.type));
    OK(MPI_Type_commit(&m.type));
    OK(MPI_Op_create(compose_all, 0, &m.op));
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        m.n = each[k] * test_size;
        m.mine = test_scratch((size_t)m.n * sizeof *m.mine);
        m.result = test_scratch((size_t)m.n * sizeof *m.result);
        fill(m.mine, m.n);
        reduce_to_all(&m);
        reduce_to_each(&m);
        reduce_and_scatter(&m);
    }
    OK(MPI_Op_free(&m.op));
    OK(MPI_Type_free(&m.type));
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

TEST(ireduce_maxloc_long_double)
{
    struct {
        long double value;
        int index;
    } mine = {.value = 10 - test_rank, .index = test_rank};
    COMPLETE(MPI_Ireduce(test_rank == 0 ? MPI_IN_PLACE : &mine, &mine, 1, MPI_LONG_DOUBLE_INT,
                         MPI_MAXLOC, 0, WORLD, &request));
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
    fill(mine, N);
    OK(MPI_Iallreduce(mine, result, N, type, op, comm, &request));
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&comm));
    finish(&request);
    check(result, N, test_size - 1, "Iallreduce");
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
}

/* Nothing is written behind the block. */
TEST(ireduce_scatter_block_overrun)
{
    int *ones = ints(test_size), *result = ints(test_size);
    for (int i = 0; i < test_size; i++)
        ones[i] = 1;
    memset(result, 0, (size_t)(test_size + 1) * sizeof *result);
    COMPLETE(MPI_Ireduce_scatter_block(ones, result, 1, MPI_INT, MPI_SUM, WORLD, &request));
    EXPECT_INT(result[0], test_size);
    for (int i = 1; i <= test_size; i++)
        EXPECT_INT(result[i], 0, "behind the block");
}

/* The root is the last rank, and no other has a receive buffer. */
TEST(ireduce_null_beside_root)
{
    int root = test_size - 1, sum;
    for (int round = 0; round < 20; round++) {
        sum = -1;
        COMPLETE(MPI_Ireduce(&test_rank, test_rank == root ? &sum : NULL, 1, MPI_INT, MPI_SUM, root,
                             WORLD, &request));
        if (test_rank == root)
            EXPECT_INT(sum, test_size * (test_size - 1) / 2);
    }
}

/* A vector so long that it is passed on in segments. */
TEST(ireduce_in_place_long)
{
    enum { MANY = 60000 };
    int *vector = ints(MANY), ranks = test_size * (test_size - 1) / 2;
    for (int root = 0; root < test_size; root++) {
        bool here = test_rank == root;
        for (int i = 0; i < MANY; i++)
            vector[i] = test_rank + i;
        COMPLETE(MPI_Ireduce(here ? MPI_IN_PLACE : vector, vector, MANY, MPI_INT, MPI_SUM, root,
                             WORLD, &request));
        for (int i = 0; here && i < MANY; i++)
            EXPECT_INT(vector[i], ranks + test_size * i, "element %d, root %d", i, root);
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

/* One element of a datatype of 200 kB. Blocking too, unless it goes to the MPI under nbcshim. */
enum { WIDE = 50000 };

static void add_wide(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int *from = in, *to = inout;
    (void)type;
    for (int i = 0; i < *n * WIDE; i++)
        to[i] += from[i];
}

static void check_wide(const int *sum, const char *what)
{
    int ranks = test_size * (test_size - 1) / 2;
    for (int i = 0; test_rank == 0 && i < WIDE; i++)
        EXPECT_INT(sum[i], ranks + test_size * i, "of %s", what);
}

/* Several times: MPICH takes another algorithm after the first calls on a communicator. */
TEST(reduce_of_a_large_element)
{
    MPI_Op op;
    MPI_Datatype type;
    const char *blocking = getenv("NBCSHIM_BLOCKING");
    bool blocks = test_native || (blocking && strcmp(blocking, "own") == 0);
    int *mine = ints(WIDE), *sum = ints(WIDE);
    OK(MPI_Type_contiguous(WIDE, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add_wide, 1, &op));
    for (int i = 0; i < WIDE; i++)
        mine[i] = test_rank + i;
    for (int round = 0; round < 20; round++) {
        COMPLETE(MPI_Ireduce(mine, sum, 1, type, op, 0, WORLD, &request));
        check_wide(sum, "Ireduce");
        if (blocks)
            OK(MPI_Reduce(mine, sum, 1, type, op, 0, WORLD));
        check_wide(sum, "Reduce");
    }
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
