/* SPDX-License-Identifier: MIT */
/* What callbacks and operators free while operations need it; handles and arrays that mean
 * something else at the next call; cycles of dup, collectives and free, and operations by the
 * thousand, with memory that does not grow. (That all may be freed at once after the call is for
 * common/cases.c: case_drop.) */
#include "config.h"
#include "library.h"
#include "pieces.h"
#include "util.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Pages of this process that are in memory, in KiB. */
static long resident(void)
{
    long total = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f)
        return 0;
    if (fscanf(f, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A communicator is made, used in all ways, and freed, with a request still pending. */
static void cycle(int i)
{
    MPI_Comm comm;
    MPI_Request r[3];
    int in = test_rank + i, sum = -1, sums = -1;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Iallreduce(&in, &sum, 1, MPI_INT, MPI_SUM, comm, &r[0]);
    MPI_Ibarrier(comm, &r[1]);
    r[2] = MPI_REQUEST_NULL;
    if (test_has_persistent()) {
        MPI_Allreduce_init(&in, &sums, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[2]);
        MPI_Start(&r[2]);
    }
    MPI_Comm_free(&comm);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    if (r[2] != MPI_REQUEST_NULL)
        MPI_Request_free(&r[2]);
    else
        sums = sum;
    EXPECT_INT(sum, test_size * i + sum_of_ranks());
    EXPECT_INT(sums, sum);
}

/* No vector: MPICH 4.0.2 itself loses 64 bytes with each, in every other process (as addresses are
 * drawn). */
static void operation(int i)
{
    static int values[64];
    MPI_Datatype type;
    MPI_Request r;
    int in[4] = {test_rank, i, 0, 0};

    MPI_Type_contiguous(1 + i % 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (i % 3 == 0)
        MPI_Ibcast(in, 1, type, i % test_size, MPI_COMM_WORLD, &r);
    else if (i % 3 == 1)
        MPI_Iallgather(in, 1, MPI_INT, values, 1, MPI_INT, MPI_COMM_WORLD, &r);
    else
        MPI_Iallreduce(in, values, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r);
    MPI_Type_free(&type);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* What is kept of a call for the next one like it goes, since a type goes, while operations that
 * came of it are pending. Open MPI may give the next type another handle: then what is of no use
 * stays until its place is needed, or the communicator goes, as it does before flat counts. */
enum { TOGETHER = 64 };

static void forgotten(int i)
{
    static MPI_Comm alone;
    int sums[2] = {-1, -1}, in = i + test_rank, from[4] = {0}, to[4];
    MPI_Datatype type;
    MPI_Request r[3];

    if (i % TOGETHER == 0)
        MPI_Comm_dup(MPI_COMM_SELF, &alone);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Iallreduce(&in, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]);
    MPI_Igather(from, 1, type, to, 1, type, 0, alone, &r[1]);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    MPI_Iallreduce(&in, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    EXPECT_INT(sums[0], sums[1]);
    if (i % TOGETHER == TOGETHER - 1)
        MPI_Comm_free(&alone);
}

static void keep_left(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    memcpy(inout, in, (size_t)*n * sizeof(int));
}

/* Operators that nobody used, and such that end before or behind their operation. The MPI gives
 * their handles again, for others. */
static void operators(int i)
{
    bool left = i % 2, used = i % 3, early = i % 5 % 2;
    int in = 100 + test_rank + i, out = -1;
    int sum = test_size * (100 + i) + sum_of_ranks();
    MPI_Op op;
    MPI_Request r = MPI_REQUEST_NULL;

    MPI_Op_create(left ? keep_left : add_ints, !left, &op);
    if (used)
        MPI_Iallreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD, &r);
    if (early && !test_native)
        MPI_Op_free(&op);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (op != MPI_OP_NULL)
        MPI_Op_free(&op);
    EXPECT(op == MPI_OP_NULL, "%d: the handle is not null", i);
    EXPECT(!used || out == (left ? 100 + i : sum), "%d: reduced to %d", i, out);
}

/* A datatype and an operator that the attribute of a communicator and of its duplicates share. The
 * last of these frees them: that of a file, in MPI_File_close. Their handles are taken again. */
static struct {
    MPI_Datatype type;
    MPI_Op op;
    int users;
} shared;

static int share(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)keyval, (void)extra;
    shared.users++;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop_shared(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    if (--shared.users > 0)
        return MPI_SUCCESS;
    MPI_Type_free(&shared.type);
    MPI_Op_free(&shared.op);
    return MPI_SUCCESS;
}

/* Each rank gathers one element of a datatype of n ints from each rank. */
static void gather_elements(MPI_Datatype type, int n)
{
    int *in = test_alloc((size_t)n * sizeof *in), wrong = 0;
    int *out = test_alloc((size_t)(n * test_size) * sizeof *out);
    MPI_Request r;

    for (int i = 0; i < n; i++)
        in[i] = 1000 * test_rank + i;
    MPI_Iallgather(in, 1, type, out, 1, type, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < n * test_size; i++)
        wrong += out[i] != i / n * 1000 + i % n;
    EXPECT_INT(wrong, 0, "elements of %d ints", n);
    free(in);
    free(out);
}

static void reduce_ranks(MPI_Op op, int expected)
{
    int out = -1;
    MPI_Request r;
    MPI_Iallreduce(&test_rank, &out, 1, MPI_INT, op, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_INT(out, expected);
}

/* The attribute goes with the file's communicator; without files, with the program's. */
static void free_behind_file(MPI_Comm *comm)
{
#ifdef HAVE_MPI_FILE_OPEN
    MPI_File file;
    char name[64];
    snprintf(name, sizeof name, "lifetimes.%d", (int)getpid());
    int error =
        MPI_File_open(*comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &file);
    MPI_Comm_free(comm);
    OK(error);
    if (error == MPI_SUCCESS)
        MPI_File_close(&file);
#else
    MPI_Comm_free(comm);
#endif
}

TEST(freed_by_file)
{
    enum { OTHERS = 4 };
    MPI_Datatype types[OTHERS];
    MPI_Op op;
    MPI_Comm comm;
    int keyval, sum = sum_of_ranks();

    shared.users = 1;
    MPI_Type_contiguous(2, MPI_INT, &shared.type);
    MPI_Type_commit(&shared.type);
    MPI_Op_create(add_ints, 1, &shared.op);
    gather_elements(shared.type, 2);
    reduce_ranks(shared.op, sum);
    MPI_Comm_create_keyval(share, drop_shared, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_attr(comm, keyval, NULL);
    free_behind_file(&comm);
    EXPECT_INT(shared.users, 0, "users");
    for (int i = 0; i < OTHERS; i++) {
        MPI_Type_contiguous(50 + i, MPI_INT, &types[i]);
        MPI_Type_commit(&types[i]);
        gather_elements(types[i], 50 + i);
    }
    MPI_Op_create(keep_left, 0, &op);
    reduce_ranks(op, 0);
    MPI_Op_free(&op);
    for (int i = 0; i < OTHERS; i++)
        MPI_Type_free(&types[i]);
    MPI_Comm_free_keyval(&keyval);
}

/* What an operator frees: a type that was used before, or its own, or itself. */
static struct {
    MPI_Datatype used, own;
    MPI_Op op;
    int turn;
} freed;

static void add_and_free(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int twice = 2 * *n;

    if (freed.turn == 0 && freed.used != MPI_DATATYPE_NULL)
        MPI_Type_free(&freed.used);
    if (freed.turn == 1 && freed.own != MPI_DATATYPE_NULL)
        MPI_Type_free(&freed.own);
    if (freed.turn == 2 && freed.op != MPI_OP_NULL)
        MPI_Op_free(&freed.op);
    add_ints(in, inout, &twice, type);
}

/* The MPI gives the handle of a freed type again, for another. A blocking call is made twice: the
 * second time it is a call that is known. Open MPI 4.1.4 itself uses a type that its operator has
 * freed, also after it is freed. */
static void free_by_operator(int i)
{
    enum { N = 3000, NEVER = -1 };
    const int turn = i % 3;
    const bool blocking = i / 3 % 2 && !test_blocking_is_native();
    static int in[2 * N], out[2 * N];
    int sparse[6] = {0}, wrong = 0;
    MPI_Datatype other;
    MPI_Request r;

    freed.turn = blocking ? NEVER : turn;
    MPI_Type_contiguous(5, MPI_INT, &freed.used);
    MPI_Type_contiguous(2, MPI_INT, &freed.own);
    MPI_Type_commit(&freed.used);
    MPI_Type_commit(&freed.own);
    MPI_Op_create(add_and_free, 1, &freed.op);
    for (int k = 0; k < 2 * N; k++)
        in[k] = k + test_rank;
    MPI_Ibcast(out, 1, freed.used, 0, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (blocking) {
        MPI_Allreduce(in, out, N, freed.own, freed.op, MPI_COMM_WORLD);
        memset(out, 0, sizeof out);
        freed.turn = turn;
        MPI_Allreduce(in, out, N, freed.own, freed.op, MPI_COMM_WORLD);
    } else {
        MPI_Iallreduce(in, out, N, freed.own, freed.op, MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    for (int k = 0; k < 2 * N; k++)
        wrong += out[k] != test_size * k + sum_of_ranks();
    MPI_Type_vector(2, 1, 3, MPI_INT, &other);
    MPI_Type_commit(&other);
    for (int k = 0; k < 6 && test_rank == 0; k++)
        sparse[k] = 10 + k;
    MPI_Ibcast(sparse, 1, other, 0, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(wrong == 0 && sparse[0] == 10 && sparse[3] == 13, "%d: %d wrong, then %d %d", i, wrong,
           sparse[0], sparse[3]);
    EXPECT(test_rank == 0 || sparse[1] + sparse[2] + sparse[4] + sparse[5] == 0, "gaps written");
    MPI_Type_free(&other);
    if (freed.used != MPI_DATATYPE_NULL)
        MPI_Type_free(&freed.used);
    if (freed.own != MPI_DATATYPE_NULL)
        MPI_Type_free(&freed.own);
    if (freed.op != MPI_OP_NULL)
        MPI_Op_free(&freed.op);
}

TEST(freed_by_operator)
{
    for (int i = 0; i < 12; i++)
        free_by_operator(i);
}

/* Arrays too long for the stack, completed in all ways. */
static void long_array(int i)
{
    enum { LONG = 200 };
    MPI_Request r[LONG];
    int index, flag = 0, n, indices[LONG];

    for (int k = 0; k < LONG; k++)
        MPI_Ibarrier(MPI_COMM_WORLD, &r[k]);
    MPI_Testany(LONG, r, &index, &flag, MPI_STATUS_IGNORE);
    MPI_Testsome(LONG, r, &n, indices, MPI_STATUSES_IGNORE);
    MPI_Testall(LONG, r, &flag, MPI_STATUSES_IGNORE);
    if (i % 3 == 0)
        MPI_Waitany(LONG, r, &index, MPI_STATUS_IGNORE);
    if (i % 3 == 1)
        MPI_Waitsome(LONG, r, &n, indices, MPI_STATUSES_IGNORE);
    MPI_Waitall(LONG, r, MPI_STATUSES_IGNORE);
    for (int k = 0; k < LONG && test_has_persistent(); k++)
        MPI_Barrier_init(MPI_COMM_SELF, MPI_INFO_NULL, &r[k]);
    if (!test_has_persistent())
        return;
    MPI_Startall(LONG, r);
    MPI_Waitall(LONG, r, MPI_STATUSES_IGNORE);
    for (int k = 0; k < LONG; k++)
        MPI_Request_free(&r[k]);
}

/* Calls that are refused; on a communicator that returns errors. */
static MPI_Comm returning;

static void refused(int i)
{
    enum { LONG = 40 };
    MPI_Request r[LONG];
    MPI_Datatype none = MPI_DATATYPE_NULL;
    int one = 1, zero = 0, done;

    (void)i;
    done = MPI_Ialltoallw(NULL, &one, &zero, &none, NULL, &one, &zero, &none, returning, &r[0]);
    EXPECT(done != MPI_SUCCESS, "a null datatype was taken");
    if (!test_has_persistent())
        return;
    for (int k = 0; k < LONG; k++)
        MPI_Barrier_init(returning, MPI_INFO_NULL, &r[k]);
    MPI_Request last = r[LONG - 1];
    r[LONG - 1] = r[0];
    EXPECT(MPI_Startall(LONG, r) != MPI_SUCCESS, "the same request was started twice");
    r[LONG - 1] = last;
    for (int k = 0; k < LONG; k++)
        MPI_Request_free(&r[k]);
}

/* More calls that differ than nbcshim keeps plans, all pending at once: it drops plans in use. */
static void differing(int i)
{
    enum { CALLS = 100 };
    static int in[CALLS], out[CALLS][CALLS];
    MPI_Request r[CALLS];

    (void)i;
    for (int k = 0; k < CALLS; k++)
        MPI_Iallreduce(in, out[k], k + 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[k]);
    MPI_Waitall(CALLS, r, MPI_STATUSES_IGNORE);
}

/* After a first part that fills every pool, the rest must not need more. The pieces that nbcshim
 * holds are counted, so 64 rounds show a piece that every eighth round leaves behind. In a
 * soak, and where nothing counts, memory as a whole is looked at as well, over `many` rounds. */
static void flat(void (*step)(int), int many, const char *what)
{
    enum { FEW = TOGETHER, SLACK = 8 };
    const bool counts = OWN_MALLOC && !test_native, soaks = test_scale(1, 2) > 1;
    int n = counts && !soaks ? 4 * FEW : many, pieces = 0;
    long before = 0, after;
    long long bytes = 0;

    for (int i = 0; i < n; i++) {
        if (i == n / 4)
            before = resident();
        if (i == n - FEW) {
            pieces = pieces_live;
            bytes = pieces_in_live;
        }
        if (i % 64 == 0)
            test_place("%s %d", what, i);
        step(i);
    }
    after = resident();
    if (test_rank == 0)
        printf("%d x %s: %ld KiB, then %ld KiB; pieces %d, then %d\n", n, what, before, after,
               pieces, pieces_live);
    EXPECT(after - before < 1024 + before / 50, "%d x %s: memory has grown from %ld to %ld KiB", n,
           what, before, after);
    EXPECT(pieces_live < pieces + SLACK, "%d x %s: %d pieces have become %d", FEW, what, pieces,
           pieces_live);
    EXPECT(pieces_in_live < bytes + 16 * FEW, "%d x %s: %lld bytes have become %lld", FEW, what,
           bytes, pieces_in_live);
}

static int rounds(int few, int many, int soak)
{
    return test_scale(test_oversubscribed() ? few : many, soak);
}

/* Operations on long data, no two alike: what is kept for equal calls is bounded, and what is
 * pending needs no less than before. */
TEST(long_data_is_not_kept)
{
    enum { COUNT = 1 << 20, STEP = 1000, CALLS = 24, MOST = 72 << 20 };
    int *in = test_scratch(COUNT * sizeof *in), *out = test_scratch(COUNT * sizeof *out);
    long long before = pieces_in_live;
    MPI_Request r[2];

    for (int i = 0; i < CALLS; i++) {
        int n = COUNT - i * STEP;
        for (int k = 0; k < n; k++) {
            in[k] = test_rank + i + k;
            out[k] = -1;
        }
        MPI_Iexscan(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]);
        MPI_Ibarrier(MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (int k = 0; k < n && test_rank > 0; k += 97)
            EXPECT_INT(out[k], test_rank * (i + k) + test_rank * (test_rank - 1) / 2, "exscan %d",
                       i);
    }
    if (OWN_MALLOC && !test_native)
        EXPECT(pieces_in_live - before < MOST, "%lld bytes are kept after %d calls",
               pieces_in_live - before, CALLS);
}

TEST(memory_is_flat)
{
    flat(cycle, rounds(300, 3000, 50000), "dup, collectives, free");
    flat(operation, rounds(2000, 30000, 1000000), "collective");
    flat(long_array, rounds(300, 3000, 30000), "200 at once");
    flat(forgotten, TOGETHER * rounds(24, 240, 480), "collective and freed type");
    flat(differing, rounds(64, 240, 2400), "100 that differ");
    flat(operators, rounds(1500, 15000, 30000), "operator");
    MPI_Comm_dup(MPI_COMM_SELF, &returning);
    MPI_Comm_set_errhandler(returning, MPI_ERRORS_RETURN);
    flat(refused, rounds(500, 5000, 30000), "refused calls");
    MPI_Comm_free(&returning);
}

/* The same arguments again and again, but for what is in the arrays: right after the call, and from
 * call to call. Rank r sends to rank p as many numbers as the round, r and p say, all of them 1000
 * r + p, where the round's displacements say. */
TEST(arrays_change)
{
    enum { MOST = 4, ROUNDS = 60 };
    int n = test_size, *send = test_scratch(2 * MOST * n * sizeof *send);
    int *recv = test_scratch(2 * MOST * n * sizeof *recv),
        *counts = test_scratch(4 * n * sizeof *counts);
    int *sdispls = counts + n, *rcounts = counts + 2 * n, *rdispls = counts + 3 * n;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        int wrong = 0, gap = round / 3 % 2, step = MOST + gap;
        for (int i = 0; i < 2 * MOST * n; i++)
            recv[i] = -1;
        for (int p = 0; p < n; p++) {
            counts[p] = (round / 2 + test_rank + 2 * p) % MOST;
            rcounts[p] = (round / 2 + p + 2 * test_rank) % MOST;
            sdispls[p] = (n - 1 - p) * MOST;
            rdispls[p] = p * step;
            for (int i = 0; i < counts[p]; i++)
                send[sdispls[p] + i] = 1000 * test_rank + p;
        }
        MPI_Ialltoallv(send, counts, sdispls, MPI_INT, recv, rcounts, rdispls, MPI_INT,
                       MPI_COMM_WORLD, &request);
        for (int i = 0; i < 4 * n; i++)
            counts[i] = -1;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int p = 0; p < n; p++)
            for (int i = 0; i < step; i++) {
                bool there = i < (round / 2 + p + 2 * test_rank) % MOST;
                wrong += recv[p * step + i] != (there ? 1000 * p + test_rank : -1);
            }
        EXPECT_INT(wrong, 0, "round %d", round);
    }
}

/* Two numbers, side by side or with one between; `swapped` makes the two in the other order, so
 * that each may get the handle that the other had. */
static void make_pairs(MPI_Datatype pair[3], bool swapped)
{
    pair[0] = MPI_2INT;
    for (int i = 0; i < 2; i++) {
        int gapped = swapped != (i == 1);
        if (gapped)
            MPI_Type_vector(2, 1, 2, MPI_INT, &pair[2]);
        else
            MPI_Type_contiguous(2, MPI_INT, &pair[1]);
        MPI_Type_commit(&pair[gapped ? 2 : 1]);
    }
}

/* The same for arrays of types: their entries change, and so does what the handles mean. */
TEST(types_change)
{
    enum { ROOM = 3, ROUNDS = 64 };
    int n = test_size, *send = test_scratch(ROOM * n * sizeof *send);
    int *recv = test_scratch(ROOM * n * sizeof *recv), *ones = test_scratch(2 * n * sizeof *ones);
    int *displs = ones + n;
    MPI_Datatype *types = test_scratch(2 * n * sizeof *types), pair[3];

    for (int p = 0; p < n; p++) {
        ones[p] = 1;
        displs[p] = (int)sizeof(int) * ROOM * p;
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        int wrong = 0;
        if (round % 4 == 0)
            make_pairs(pair, round / 4 % 2);
        for (int p = 0; p < n; p++) {
            types[p] = pair[(round / 2 + p) % 3];
            types[n + p] = pair[(round / 2 + p + test_rank) % 3];
            for (int i = 0; i < ROOM; i++) {
                bool second = i == (types[p] == pair[2] ? 2 : 1);
                send[ROOM * p + i] = i == 0 || second ? 1000 * test_rank + 2 * p + second : -2;
                recv[ROOM * p + i] = -1;
            }
        }
        MPI_Ialltoallw(send, ones, displs, types, recv, ones, displs, types + n, MPI_COMM_WORLD,
                       &request);
        if (round % 4 == 3)
            for (int i = 1; i < 3; i++)
                MPI_Type_free(&pair[i]);
        for (int p = 0; p < 2 * n; p++)
            types[p] = MPI_DATATYPE_NULL;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int p = 0; p < n; p++) {
            int second = (round / 2 + p + test_rank) % 3 == 2 ? 2 : 1;
            for (int i = 0; i < ROOM; i++) {
                int value = 1000 * p + 2 * test_rank + (i == second);
                wrong += recv[ROOM * p + i] != (i == 0 || i == second ? value : -1);
            }
        }
        EXPECT_INT(wrong, 0, "round %d", round);
    }
}

/* --- what is left in the MPI -------------------------------------------------------------------*/

/* Numbers of objects made now, added up: they are given out again, or others instead of those that
 * were left behind. */
enum { NUMBERS = 64 };

static long long type_numbers(void)
{
    MPI_Datatype type[NUMBERS];
    long long sum = 0;
    for (int i = 0; i < NUMBERS; i++) {
        MPI_Type_contiguous(3, MPI_INT, &type[i]);
        sum += MPI_Type_c2f(type[i]);
    }
    for (int i = 0; i < NUMBERS; i++)
        MPI_Type_free(&type[i]);
    return sum;
}

static int ndeleted;

static int on_delete(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    ndeleted++;
    return MPI_SUCCESS;
}

/* The program may get a handle again from the MPI, and frees it as often, while an operation needs
 * the type. */
TEST(freed_twice)
{
    int key, count, data[8] = {0};
    MPI_Aint address;
    MPI_Datatype type, outer, again;
    MPI_Request r;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_delete, &key, NULL);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, key, NULL);
    MPI_Type_contiguous(3, type, &outer);
    MPI_Type_get_contents(outer, 1, 0, 1, &count, &address, &again);
    MPI_Type_free(&outer);
    MPI_Ibcast(data, 1, type, 0, MPI_COMM_WORLD, &r);
    MPI_Type_free(&again);
    MPI_Type_free(&type);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) { /* until no plan has the type any more */
        MPI_Ibarrier(MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    EXPECT_INT(ndeleted, 1);
    MPI_Type_free_keyval(&key);
}

static void never_called(MPI_Comm *on, int *code, ...)
{
    (void)on, (void)code;
    test_fail("an error handler was called");
}

static long long handler_numbers(void)
{
    MPI_Errhandler handler[NUMBERS];
    long long sum = 0;
    for (int i = 0; i < NUMBERS; i++) {
        MPI_Comm_create_errhandler(never_called, &handler[i]);
        sum += MPI_Errhandler_c2f(handler[i]);
    }
    for (int i = 0; i < NUMBERS; i++)
        MPI_Errhandler_free(&handler[i]);
    return sum;
}

static long long operator_numbers(void)
{
    MPI_Op op[NUMBERS];
    long long sum = 0;
    for (int i = 0; i < NUMBERS; i++) {
        MPI_Op_create(add_ints, 1, &op[i]);
        sum += MPI_Op_c2f(op[i]);
    }
    for (int i = 0; i < NUMBERS; i++)
        MPI_Op_free(&op[i]);
    return sum;
}

static void wait_for(MPI_Request request)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* From addresses and to them, as types made of types, by an operator on other types than before,
 * and by one that is freed at once: nbcshim makes objects for each, or frees what is freed. */
static void make_objects(void)
{
    const int ones[] = {1, 1};
    int in[] = {1, -1, 2}, out[] = {-1, -1, -1}, packed[2];
    MPI_Aint from[2], to[2];
    MPI_Datatype source, target, pair, pairs;
    MPI_Comm alone; /* nothing has been worked out for it yet */
    MPI_Request r;
    MPI_Op op;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    for (int i = 0; i < 2; i++) {
        MPI_Get_address(&in[2 * i], &from[i]);
        MPI_Get_address(&out[2 * i], &to[i]);
    }
    MPI_Type_create_hindexed(2, (int *)ones, from, MPI_INT, &source);
    MPI_Type_create_hindexed(2, (int *)ones, to, MPI_INT, &target);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_contiguous(1, pair, &pairs);
    MPI_Type_commit(&source);
    MPI_Type_commit(&target);
    MPI_Type_commit(&pairs);
    MPI_Type_free(&pair);
    MPI_Iallgather(MPI_BOTTOM, 1, source, packed, 2, MPI_INT, alone, &r);
    wait_for(r);
    MPI_Iallgather(packed, 1, pairs, MPI_BOTTOM, 1, target, alone, &r);
    wait_for(r);
    EXPECT(out[0] == 1 && out[1] == -1 && out[2] == 2, "%d, %d, %d", out[0], out[1], out[2]);
    MPI_Type_free(&source);
    MPI_Type_free(&target);
    MPI_Type_free(&pairs);
    MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, alone, &r);
    wait_for(r);
    MPI_Iallreduce(in, out, 1, MPI_FLOAT, MPI_SUM, alone, &r);
    wait_for(r);
    MPI_Op_create(add_ints, 1, &op);
    MPI_Iallreduce(in, out, 1, MPI_INT, op, alone, &r);
    MPI_Op_free(&op);
    wait_for(r);
    MPI_Comm_free(&alone);
}

TEST(objects_are_left_behind)
{
    MPI_Errhandler before, handler;
    long long types[2], handlers[2], ops[2];
    for (int i = 0; i < 2; i++) { /* the first time some are made for good */
        MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
        MPI_Comm_create_errhandler(never_called, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Errhandler_free(&handler);
        make_objects();
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
        MPI_Errhandler_free(&before);
        types[i] = type_numbers();
        handlers[i] = handler_numbers();
        ops[i] = operator_numbers();
    }
    EXPECT_INT(types[1], types[0], "types are left behind");
    EXPECT_INT(handlers[1], handlers[0], "error handlers are left behind");
    EXPECT_INT(ops[1], ops[0], "operators are left behind");
}

AROUND_TESTS(library_find, NULL)
