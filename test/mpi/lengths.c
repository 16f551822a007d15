/* SPDX-License-Identifier: MIT */
/* Ranks disagree on the length of a collective: one of them has an element less, on one side. That
 * is an error of the ranks that notice it, and of one operation. No rank waits forever, other
 * operations have right results, and the communicator can be used. Operators of the program see no
 * data but what ranks have sent, and a bcast of another length is an error of all but the root. */
#include "cases.h"

#include <stdlib.h>
#include <time.h>

static struct group *world, *ring;
static int serial;

/* --- messages under way ---------------------------------------------------------------------- */

static bool has_three(void)
{
    return test_size > 2 && !test_native;
}

/* The first test, with requests of the MPI that nothing has used before. A rank whose operation has
 * failed uses its buffers again at once. The last rank is late, and has no part in the error: rank
 * 1 sends rank 0 more than that expects. */
TEST(reuse, .wanted = has_three)
{
    enum { MUCH = 20000, LATE = 50000000 }; /* elements, ns */
    const struct timespec late = {.tv_nsec = LATE};
    int most = test_size * MUCH, counts[2][test_size], places[test_size], wrong = 0;
    int *in = test_alloc(most * sizeof *in), *out = test_alloc(most * sizeof *out);
    MPI_Request r;
    for (int i = 0; i < test_size; i++) {
        counts[0][i] = counts[1][i] = MUCH;
        places[i] = i * MUCH;
    }
    if (test_rank == 0)
        counts[1][1] = 1;
    if (test_rank == 0) /* or rank 0 would wait for it */
        counts[1][test_size - 1] = 0;
    if (test_rank == test_size - 1)
        counts[0][0] = 0;
    for (int i = 0; i < most; i++)
        in[i] = 1 + test_rank;
    MPI_Barrier(world->comm);
    if (test_rank == test_size - 1)
        nanosleep(&late, NULL);
    MPI_Ialltoallv(in, counts[0], places, MPI_INT, out, counts[1], places, MPI_INT, world->comm,
                   &r);
    int class = class_of(MPI_Wait(&r, MPI_STATUS_IGNORE));
    EXPECT(class == MPI_ERR_TRUNCATE || (class == MPI_SUCCESS && test_rank > 0), "class %d", class);
    for (int i = 0; i < most && !class; i++)
        wrong += out[i] != 1 + i / MUCH;
    EXPECT_INT(wrong, 0, "of %d elements", most);
    for (int i = 0; i < most; i++)
        in[i] = out[i] = -1;
    MPI_Barrier(world->comm);
    wrong = 0;
    for (int i = 0; i < most; i++)
        wrong += out[i] != -1;
    EXPECT_INT(wrong, 0, "elements after the operation");
    free(in);
    free(out);
}

/* Sizes that are not near the limits of algorithms and segments, which all ranks must see alike. */
enum { SHORT = 37, LONG = 30011 };

static struct spec make_spec(enum coll coll, int count)
{
    const struct group *g = coll >= NINTRA ? ring : world;
    struct spec s = spec_random(coll, g, mix_in(test_seed, ++serial), 1);
    s.style = (struct style){.kind = &kinds[KIND_INT], .fine = true, .plain = true};
    if (coll_reduces(coll)) {
        s.op = &opdefs[serial % NOPS];
        s.style.kind = &kinds[s.op->kind];
    }
    s.root = serial % g->size;
    s.count = count;
    s.in_place = false;
    return s;
}

/* Only who has too little room, or whose own block does not fit, can notice it. */
static void check_error(const struct spec *s, int error, bool shorter, bool send)
{
    int class = class_of(error);
    bool must = shorter && !send && !coll_reduces(s->coll);
    EXPECT(class == MPI_ERR_TRUNCATE || (class == MPI_SUCCESS && !must), "%s of %d, %s: class %d",
           coll_name(s->coll), s->count,
           !shorter ? "right on this rank"
           : send   ? "sends too little"
                    : "has too little room",
           class);
}

static void run_blocking(const struct spec *s, int wrong, bool send)
{
    struct testcase *bad = case_new(s);
    case_fill(bad, 0);
    bool shorter = test_rank == wrong && case_shorten(bad, send);
    check_error(s, case_call(bad, BLOCKING, MPI_INFO_NULL, NULL), shorter, send);
    case_delete(bad);
    case_run(s, BLOCKING);
}

/* The wrong operation is pending beside a right one of the same shape. */
static void run_pending(const struct spec *s, enum mode mode, int wrong, bool send)
{
    struct testcase *bad = case_new(s), *good = case_new(s);
    MPI_Request r[2];
    MPI_Status status[2];
    bool shorter = test_rank == wrong && case_shorten(bad, send);
    for (int round = 0; round < (mode == PERSISTENT ? 3 : 1); round++) {
        case_fill(bad, round);
        case_fill(good, round);
        if (round == 0) {
            case_expect(bad, case_call(bad, mode, MPI_INFO_NULL, &r[0]), "a call that may fail");
            case_expect(good, case_call(good, mode, MPI_INFO_NULL, &r[1]), "a right call");
        }
        if (mode == PERSISTENT)
            MPI_Startall(2, r);
        status[0].MPI_ERROR = status[1].MPI_ERROR = MPI_SUCCESS;
        int error = MPI_Waitall(2, r, status);
        EXPECT(!error || class_of(error) == MPI_ERR_IN_STATUS, "MPI_Waitall: class %d",
               class_of(error));
        check_error(s, status[0].MPI_ERROR, shorter, send);
        case_expect(good, status[1].MPI_ERROR, "beside one that fails");
        case_check(good, "beside one that fails");
    }
    for (int i = 0; i < 2 && mode == PERSISTENT; i++)
        MPI_Request_free(&r[i]);
    case_delete(bad);
    case_delete(good);
}

static void run_one(enum coll coll, int count, enum mode mode, int wrong, bool send)
{
    struct spec s = make_spec(coll, count);
    test_place("%s of %d, rank %d is wrong", coll_name(coll), count, wrong);
    if (mode == BLOCKING)
        run_blocking(&s, wrong, send);
    else
        run_pending(&s, mode, wrong, send);
}

static void run(enum coll coll)
{
    for (int send = 0; send < 2; send++) {
        for (int wrong = 0; wrong < test_size; wrong++)
            for (enum mode mode = BLOCKING; mode <= PERSISTENT; mode++)
                run_one(coll, SHORT, mode, wrong, send);
        run_one(coll, LONG, NONBLOCKING, (serial + send) % test_size, send);
    }
}

#define WANTED(NAME) test_has_shim
#include "each.def"

/* --- operators, and bcast --------------------------------------------------------------------- */

/* A rank sends a bit of its own. The right call before has left the mark in whatever memory the
 * wrong one uses. */
enum { VALUES = 600, MARK = 1 << 20 };

static bool marks_allowed;
static int unsent; /* values that no rank has sent */

static void unite(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const int *a = in;
    int *b = inout, all = (1 << test_size) - 1;
    (void)type;
    for (int i = 0; i < *n; i++) {
        int seen = marks_allowed ? 0 : (a[i] | b[i]) & ~all;
        unsent += seen != 0 || a[i] == 0 || b[i] == 0;
        b[i] |= a[i];
    }
}

/* An allreduce in which one rank has some elements less. */
static void run_operator(MPI_Op op, int wrong)
{
    static int in[VALUES], out[VALUES];
    int n = test_rank == wrong ? VALUES - 7 : VALUES;
    test_place("an operator, rank %d is wrong", wrong);
    for (int round = 0; round < 2; round++) {
        MPI_Request r;
        marks_allowed = round == 0;
        for (int i = 0; i < VALUES; i++) {
            in[i] = 1 << test_rank | (round == 0 ? MARK : 0);
            out[i] = MARK;
        }
        MPI_Iallreduce(in, out, round == 0 ? VALUES : n, MPI_INT, op, world->comm, &r);
        int class = class_of(MPI_Wait(&r, MPI_STATUS_IGNORE));
        EXPECT(class == MPI_SUCCESS || (round == 1 && class == MPI_ERR_TRUNCATE), "class %d",
               class);
        for (int i = 0; i < n && !class; i++)
            EXPECT_INT(out[i], ((1 << test_size) - 1) + (round == 0 ? MARK : 0), "element %d", i);
    }
    EXPECT_INT(unsent, 0, "values that no rank has sent");
    unsent = 0;
}

/* Every rank that receives learns it, by the length or from those that forward. */
static void run_bcast(int root, int other)
{
    static int data[VALUES];
    MPI_Request r;
    test_place("a bcast from rank %d, others have %d", root, other);
    MPI_Ibcast(data, test_rank == root ? VALUES / 2 : other, MPI_INT, root, world->comm, &r);
    int class = class_of(MPI_Wait(&r, MPI_STATUS_IGNORE));
    EXPECT_INT(class, test_rank == root ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
}

TEST(operators, .wanted = test_has_shim)
{
    for (int commutes = 0; commutes < 2; commutes++) {
        MPI_Op op;
        MPI_Op_create(unite, commutes, &op);
        for (int wrong = 0; wrong < test_size; wrong++)
            run_operator(op, wrong);
        MPI_Op_free(&op);
    }
    for (int root = 0; root < test_size; root++) {
        run_bcast(root, VALUES);
        run_bcast(root, 1);
    }
}

static struct group *returning(MPI_Comm comm)
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return group_new(comm);
}

static void begin(void)
{
    MPI_Comm comm;
    int periodic = 1;
    kinds_init();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    world = returning(comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &periodic, 0, &comm);
    ring = returning(comm);
}

static void end(void)
{
    group_delete(world);
    group_delete(ring);
    kinds_finish();
}

AROUND_TESTS(begin, end)
