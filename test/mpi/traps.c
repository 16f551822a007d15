/* SPDX-License-Identifier: MIT */
/* What other implementations have fallen into, and no other test here holds: each case is named
 * after what it breaks. doc/testing.md has the whole list. */
#include "cases.h"
#include "config.h"
#include "predefined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma weak MPI_Allreduce_init
#pragma weak MPI_Barrier_init
#pragma weak MPI_Bcast_init

static MPI_Request sum_start(MPI_Comm comm, const int *in, int *out)
{
    MPI_Request r;
    MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, comm, &r);
    return r;
}

static MPI_Request sum_init(MPI_Comm comm, const int *in, int *out)
{
    MPI_Request r;
    MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r);
    return r;
}

static void wait(MPI_Request *r)
{
    OK(MPI_Wait(r, MPI_STATUS_IGNORE));
}

/* --- persistence ------------------------------------------------------------------------------ */

/* Copies or reductions of the local part at init: MPICH 4.0.2, Open MPI of old. What init reads is
 * rubbish, and what it writes would show. */
TEST(data_moves_at_init, .wanted = test_has_persistent)
{
    struct group *world = group_new(MPI_COMM_WORLD);
    for (int i = 0; i < NINTRA && test_has_persistent(); i++)
        for (int k = 0; k < 8; k++) {
            struct spec s = spec_random((enum coll)i, world, mix_in(test_seed, 8 * i + k), 50);
            struct testcase *c = case_new(&s);
            MPI_Request r;
            case_fill(c, 0);
            case_expect(c, case_call(c, PERSISTENT, MPI_INFO_NULL, &r), "init");
            MPI_Barrier(MPI_COMM_WORLD);
            case_untouched(c, "after init");
            case_fill(c, 1);
            MPI_Start(&r);
            wait(&r);
            case_check(c, "started after another content");
            MPI_Request_free(&r);
            case_delete(c);
        }
    group_delete(world);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Handles that are no handles of the MPI do not come back from Fortran's numbers. */
TEST(handle_is_lost_in_conversion, .wanted = test_has_persistent)
{
    int x = test_rank, sum = -1;
    MPI_Request r = sum_start(MPI_COMM_WORLD, &x, &sum),
                again = MPI_Request_f2c(MPI_Request_c2f(r));
    CHECK(again == r);
    wait(&again);
    CHECK(sum == sum_of_ranks() && again == MPI_REQUEST_NULL);

    MPI_Request persistent = sum_init(MPI_COMM_WORLD, &x, &sum);
    MPI_Fint number = MPI_Request_c2f(persistent);
    for (int i = 0; i < 3; i++) {
        sum = -1;
        again = MPI_Request_f2c(number);
        CHECK(again == persistent);
        MPI_Start(&again);
        wait(&again);
        EXPECT_INT(sum, sum_of_ranks());
    }
    MPI_Request_free(&again);
}

/* The program's own requests look like those that stand for operations: persistent, with nobody. */
TEST(requests_are_taken_for_ours)
{
    enum { N = 40 };
    MPI_Request theirs[N], r;
    int x = test_rank, sum;
    for (int i = 0; i < N; i++) {
        r = sum_start(MPI_COMM_WORLD, &x, &sum);
        MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &theirs[i]);
        CHECK(r != theirs[i]);
        MPI_Start(&theirs[i]);
        wait(&r); /* its handle goes back to the pool */
        EXPECT_INT(sum, sum_of_ranks());
        MPI_Request before = theirs[i];
        wait(&theirs[i]);
        CHECK(theirs[i] == before);
        if (i % 3 == 0) {
            MPI_Request_free(&theirs[i]);
            MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &theirs[i]);
        }
    }
    for (int i = 0; i < N; i++)
        MPI_Request_free(&theirs[i]);
}

/* Arrays of nothing, most by null pointers (Open MPI's MPI_Startall takes none), while something is
 * pending and while nothing is. */
TEST(empty_arrays_are_read)
{
    int x = test_rank, sum, flag, index, count;
    for (int i = 0; i < 2; i++) {
        MPI_Request r = i ? sum_start(MPI_COMM_WORLD, &x, &sum) : MPI_REQUEST_NULL;
        OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
        CHECK(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && flag);
        OK(MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE));
        EXPECT_INT(index, MPI_UNDEFINED);
        index = 0;
        OK(MPI_Testany(0, NULL, &index, &flag, MPI_STATUS_IGNORE));
        CHECK(flag && index == MPI_UNDEFINED);
        OK(MPI_Waitsome(0, NULL, &count, NULL, MPI_STATUSES_IGNORE));
        EXPECT_INT(count, MPI_UNDEFINED);
        count = 0;
        OK(MPI_Testsome(0, NULL, &count, NULL, MPI_STATUSES_IGNORE));
        EXPECT_INT(count, MPI_UNDEFINED);
        OK(MPI_Startall(0, &r));
        wait(&r);
    }
}

static MPI_Request other;
static int handled;

static void finish_other(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    MPI_Comm copy;
    handled++;
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_free(&copy);
}

/* An error handler may use MPI: a lock that is held around it hangs, a list that is being walked
 * breaks. */
TEST(error_handler_uses_mpi)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Request r = MPI_REQUEST_NULL;
    int x = test_rank, sum = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(finish_other, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    handled = 0;
    for (int i = 0; i < 3; i++) {
        sum = -1;
        other = sum_start(comm, &x, &sum);
        if (i == 0)
            MPI_Ibcast(&x, -1, MPI_INT, 0, comm, &r);
        else if (i == 1)
            MPI_Cancel(&other);
        else {
            MPI_Request again = other;
            MPI_Start(&again);
        }
        CHECK(handled == i + 1 && other == MPI_REQUEST_NULL && sum == sum_of_ranks());
    }
    MPI_Comm_free(&comm);
}

/* --- communicators ---------------------------------------------------------------------------- */

static int copied, deleted;

static int on_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

/* A hidden duplicate made by MPI_Comm_dup has the program's attributes copied, and deleted, once
 * more. */
TEST(attributes_are_copied_twice)
{
    MPI_Comm first, comm;
    MPI_Request r;
    int key, x = test_rank, sum, *value, flag;
    copied = deleted = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_create_keyval(on_copy, on_delete, &key, NULL);
    MPI_Comm_set_attr(first, key, &key);
    MPI_Comm_dup(first, &comm);
    CHECK(copied == 1 && deleted == 0);
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(flag && value == &key);
    r = sum_start(comm, &x, &sum);
    MPI_Comm_free(&comm);
    wait(&r);
    EXPECT_INT(sum, sum_of_ranks());
    MPI_Comm_split(first, 0, 0, &comm);
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(copied == 1 && !flag);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&first);
    MPI_Comm_free_keyval(&key);
    CHECK(copied == 1 && deleted == 2);
}

/* Each two neighbors of a ring have a communicator; each rank starts on its two in another order.
 * MPI-4.1, section 6.12: nonblocking collectives resolve what would deadlock with blocking ones. */
TEST(overlapping_communicators_deadlock)
{
    MPI_Comm to_left = MPI_COMM_NULL, to_right = MPI_COMM_NULL;
    MPI_Request r[2];
    int one = 1, sums[2] = {-1, -1};
    if (test_size < 3)
        return;
    for (int i = 0; i < test_size; i++) {
        bool is_left = test_rank == i, is_right = test_rank == (i + 1) % test_size;
        MPI_Comm pair;
        MPI_Comm_split(MPI_COMM_WORLD, is_left || is_right ? 0 : MPI_UNDEFINED, 0, &pair);
        if (is_left)
            to_right = pair;
        if (is_right)
            to_left = pair;
    }
    for (int i = 0; i < 20; i++) {
        r[0] = sum_start(i % 2 ? to_left : to_right, &one, &sums[0]);
        r[1] = sum_start(i % 2 ? to_right : to_left, &one, &sums[1]);
        wait(&r[i / 2 % 2]);
        wait(&r[1 - i / 2 % 2]);
        CHECK(sums[0] == 2 && sums[1] == 2);
    }
    MPI_Comm_free(&to_left);
    MPI_Comm_free(&to_right);
}

/* MPI_Comm_disconnect waits for what is pending; the request lives on. */
TEST(disconnect_drops_what_is_pending)
{
    enum { BIG = 100000 };
    int *data = test_scratch(BIG * sizeof *data), x = test_rank, sum = -1, wrong = 0;
    MPI_Comm comm;
    MPI_Request r[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < BIG; i++)
        data[i] = test_rank == 0 ? i : -1;
    MPI_Ibcast(data, BIG, MPI_INT, 0, comm, &r[0]);
    r[1] = sum_start(comm, &x, &sum);
    CHECK(MPI_Comm_disconnect(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    for (int i = 0; i < BIG; i++)
        wrong += data[i] != i;
    CHECK(sum == sum_of_ranks() && wrong == 0);
}

/* All ranks are rid of the communicator at the same time, whatever requests they still hold. */
TEST(disconnect_waits_for_a_held_request)
{
    MPI_Comm comm;
    MPI_Request r;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Ibarrier(comm, &r);
    if (test_rank > 0)
        wait(&r);
    OK(MPI_Comm_disconnect(&comm));
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0)
        wait(&r);
}

/* The last rank is late; the request is inactive. */
TEST(disconnected_request_starts)
{
    MPI_Comm comm;
    MPI_Request r;
    if (!test_has_persistent())
        return;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (test_rank == test_size - 1)
        usleep(20000);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &r);
    CHECK(MPI_Comm_disconnect(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    MPI_Start(&r);
    EXPECT_INT(class_of(MPI_Wait(&r, MPI_STATUS_IGNORE)), MPI_ERR_COMM);
    MPI_Request_free(&r);
}

/* A window is another object than the communicator that it was made from, which is disconnected as
 * any other. (Open MPI 4.1.4 makes none for one rank.) */
TEST(window_is_disconnected)
{
    enum { BIG = 100000 };
    int memory, wrong = 0, *data;
    MPI_Comm comm;
    MPI_Win window;
    MPI_Request r;
    if (test_size == 1)
        return;
    data = test_scratch(BIG * sizeof *data);
    for (int i = 0; i < BIG; i++)
        data[i] = test_rank == 0 ? i : -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, comm, &window);
    MPI_Ibcast(data, BIG, MPI_INT, 0, comm, &r);
    OK(MPI_Comm_disconnect(&comm));
    for (int i = 0; i < BIG; i++)
        wrong += data[i] != i;
    EXPECT_INT(wrong, 0);
    wait(&r);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Win_free(&window));
}

/* --- data ------------------------------------------------------------------------------------- */

/* A barrier that some rank has not entered is complete nowhere. */
static void barrier_between(bool persistent)
{
    int flag;
    for (int late = 0; late < test_size && test_size > 1; late++) {
        MPI_Request r = MPI_REQUEST_NULL;
        if (persistent)
            MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        for (int i = 0; test_rank == late && i < test_size; i++)
            if (i != late)
                MPI_Recv(NULL, 0, MPI_INT, i, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (persistent)
            MPI_Start(&r);
        else
            MPI_Ibarrier(MPI_COMM_WORLD, &r);
        for (int i = 0; test_rank != late && i < 50; i++) {
            MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag);
        }
        if (test_rank != late)
            MPI_Send(NULL, 0, MPI_INT, late, 3, MPI_COMM_WORLD);
        wait(&r);
        if (persistent)
            MPI_Request_free(&r);
    }
}

TEST(barrier_completes_early)
{
    barrier_between(false);
}

TEST(persistent_barrier_completes_early, .wanted = test_has_persistent)
{
    barrier_between(true);
}

/* Nothing is described as no elements on one side and as elements of no size on the other; counts
 * and types of the two sides differ all the same. */
TEST(nothing_differs_by_side)
{
    MPI_Datatype empty;
    MPI_Request r[4];
    bool odd = test_rank % 2;
    int in[2] = {7, 8}, out[2] = {1, 2};
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Ibcast(odd ? in : NULL, odd ? 5 : 0, odd ? empty : MPI_INT, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Igather(odd ? in : NULL, odd ? 3 : 0, odd ? empty : MPI_DOUBLE, out, 9, empty, 0,
                MPI_COMM_WORLD, &r[1]);
    MPI_Iallgather(in, odd ? 0 : 4, odd ? MPI_INT : empty, out, odd ? 6 : 0, odd ? empty : MPI_INT,
                   MPI_COMM_WORLD, &r[2]);
    MPI_Ialltoall(in, odd ? 2 : 0, odd ? empty : MPI_BYTE, out, odd ? 0 : 3, odd ? MPI_INT : empty,
                  MPI_COMM_WORLD, &r[3]);
    OK(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
    CHECK(in[0] == 7 && in[1] == 8 && out[0] == 1 && out[1] == 2);
    MPI_Type_free(&empty);
}

/* Kernels of our own, and what there is none for: each operator on each type that it is defined
 * for, against MPI_Reduce_local in the order of ranks. */
TEST(operator_is_wrong_on_a_type)
{
    enum { N = 19 };
    for (int o = 0; o < npredefined_ops; o++)
        for (int t = 0; t < npredefined_types; t++) {
            const struct predefined_op *op = &predefined_ops[o];
            const struct predefined_type *type = &predefined_types[t];
            char left[N * PREDEFINED_SIZE], right[N * PREDEFINED_SIZE], out[N * PREDEFINED_SIZE];
            MPI_Request r;
            if (!(op->on & type->class))
                continue;
            test_place("%s on %s", op->name, type->name);
            predefined_fill(type, left, N, 0);
            for (int rank = 1; rank < test_size; rank++) {
                predefined_fill(type, right, N, rank);
                MPI_Reduce_local(left, right, N, type->handle, op->handle);
                memcpy(left, right, sizeof left);
            }
            predefined_fill(type, right, N, test_rank);
            MPI_Iallreduce(right, out, N, type->handle, op->handle, MPI_COMM_WORLD, &r);
            wait(&r);
            EXPECT(predefined_same(type, left, out, N), "%s on %s", op->name, type->name);
        }
}

/* --- the end ---------------------------------------------------------------------------------- */

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF while all of MPI still works. */
static int use_mpi_at_the_end(MPI_Comm comm, int key, void *value, void *extra)
{
    int x = test_rank, sum = -1, finalized = 1;
    MPI_Request r;
    MPI_Comm copy;
    (void)comm, (void)key, (void)value, (void)extra;
    MPI_Finalized(&finalized);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    r = sum_start(copy, &x, &sum);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    if (finalized || sum != sum_of_ranks()) {
        fprintf(stderr, "traps: rank %d: no collective from a callback in MPI_Finalize\n",
                test_rank);
        abort();
    }
    return MPI_SUCCESS;
}

/* Some MPIs also delete those of MPI_COMM_WORLD, later. A program may free a request there. */
static int free_at_the_end(MPI_Comm comm, int key, void *request, void *extra)
{
    MPI_Request next;
    (void)key, (void)extra;
    MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &next);
    if (next == *(MPI_Request *)request) {
        fprintf(stderr, "traps: rank %d: MPI_Finalize freed a request too early\n", test_rank);
        abort();
    }
    MPI_Request_free(&next);
    return MPI_Request_free(request);
}

/* And what the program has never freed does no harm. */
static void leave_things_behind(void)
{
    static int x, sum;
    static MPI_Request r, freed;
    MPI_Comm comm;
    int key;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (test_has_persistent()) {
        r = sum_init(comm, &x, &sum);
        freed = sum_init(comm, &x, &sum);
        MPI_Start(&r);
        wait(&r);
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_at_the_end, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_WORLD, key, &freed);
        MPI_Comm_free_keyval(&key);
    }
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use_mpi_at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

static MPI_Datatype helper;
static int ndeleted;

static int end_helper(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type, (void)keyval, (void)value, (void)extra;
    ndeleted++;
    return MPI_Type_free(&helper);
}

/* A type that is freed while in use ends later, with callbacks that may call MPI: what they free
 * must be forgotten, since its handle comes again for another type. */
TEST(callback_of_a_freed_type_uses_mpi)
{
    enum { MANY = 16, N = 3 };
    int keyval, in[2 * N], out[N * MANY];
    MPI_Datatype pairs, made[MANY];
    MPI_Request r;

    memset(in, 0, sizeof in);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, end_helper, &keyval, NULL);
    MPI_Type_create_resized(MPI_INT, 0, sizeof(int), &helper);
    MPI_Type_commit(&helper);
    MPI_Ibcast(in, 1, helper, 0, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Type_set_attr(pairs, keyval, NULL);
    MPI_Ibcast(in, 1, pairs, 0, MPI_COMM_WORLD, &r);
    MPI_Type_free(&pairs);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_INT(ndeleted, 1);
    for (int k = 0; k < MANY; k++) {
        MPI_Type_vector(N, 1, 2, MPI_INT, &made[k]);
        MPI_Type_commit(&made[k]);
        for (int i = 0; i < 2 * N; i++)
            in[i] = 100 * test_rank + i;
        memset(out, 0xff, sizeof out);
        MPI_Iallgather(in, 1, made[k], out, N, MPI_INT, MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int i = 0; i < N * test_size; i++)
            EXPECT_INT(out[i], 100 * (i / N) + 2 * (i % N), "type %d, element %d", k, i);
    }
    for (int k = 0; k < MANY; k++)
        MPI_Type_free(&made[k]);
    MPI_Type_free_keyval(&keyval);
}

static int count_deleted(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type, (void)keyval, (void)value, (void)extra;
    ndeleted++;
    return MPI_SUCCESS;
}

/* The last use of a freed type may be that of a persistent request. */
TEST(type_outlives_its_request)
{
    int keyval, x = 0;
    MPI_Datatype type;
    MPI_Request r;

    if (!test_has_persistent())
        return;
    ndeleted = 0;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_deleted, &keyval, NULL);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, keyval, NULL);
    MPI_Bcast_init(&x, 1, type, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Type_free(&type);
    MPI_Request_free(&r);
    EXPECT_INT(ndeleted, 1);
    MPI_Type_free_keyval(&keyval);
}

/* The largest of 1 and all bits set is 1 of signed numbers, and the smallest of unsigned ones. */
TEST(signs_are_mixed_up)
{
    const struct {
        MPI_Datatype type;
        bool is_signed;
        size_t size;
    } numbers[] = {
        {MPI_SIGNED_CHAR, true, sizeof(char)},
        {MPI_SHORT, true, sizeof(short)},
        {MPI_INT, true, sizeof(int)},
        {MPI_LONG, true, sizeof(long)},
        {MPI_LONG_LONG, true, sizeof(long long)},
        {MPI_UNSIGNED_CHAR, false, sizeof(char)},
        {MPI_UNSIGNED_SHORT, false, sizeof(short)},
        {MPI_UNSIGNED, false, sizeof(int)},
        {MPI_UNSIGNED_LONG, false, sizeof(long)},
        {MPI_UNSIGNED_LONG_LONG, false, sizeof(long long)},
        {MPI_AINT, true, sizeof(MPI_Aint)},
        {MPI_OFFSET, true, sizeof(MPI_Offset)},
    };
    for (size_t i = 0; test_size > 1 && i < sizeof numbers / sizeof *numbers; i++)
        for (int largest = 0; largest < 2; largest++) {
            unsigned char one[8] = {1}, ones[8], out[8];
            MPI_Request r;
            memset(ones, 0xff, sizeof ones);
            MPI_Iallreduce(test_rank ? ones : one, out, 1, numbers[i].type,
                           largest ? MPI_MAX : MPI_MIN, MPI_COMM_WORLD, &r);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
            const unsigned char *wanted = numbers[i].is_signed == largest ? one : ones;
            EXPECT(memcmp(out, wanted, numbers[i].size) == 0, "type %zu, %s", i,
                   largest ? "MPI_MAX" : "MPI_MIN");
        }
}

static void put(unsigned char *at, int size, uint32_t value)
{
    uint8_t byte = (uint8_t)value;
    uint16_t half = (uint16_t)value;
    memcpy(at, size == 1 ? (void *)&byte : size == 2 ? (void *)&half : &value, (size_t)size);
}

/* The sum of integers wraps. Some MPIs' sums of short ones end at the largest one, in long vectors.
 */
TEST(sums_saturate)
{
    enum { BYTES = 128 };
    const MPI_Datatype types[] = {
        MPI_CHAR,           MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_SHORT,
        MPI_UNSIGNED_SHORT, MPI_INT,         MPI_UNSIGNED,
#ifdef MPI_INTEGER1
        MPI_INTEGER1,
#endif
#ifdef MPI_INTEGER2
        MPI_INTEGER2,
#endif
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        unsigned char in[BYTES], out[BYTES], wanted[BYTES];
        int size;
        MPI_Request r;
        if (types[i] == MPI_DATATYPE_NULL)
            continue; /* no Fortran */
        MPI_Type_size(types[i], &size);
        for (int k = 0; k < BYTES; k += size) {
            uint32_t number = UINT32_C(1) << (8 * size - 1) | 1;
            put(in + k, size, number);
            put(wanted + k, size, number * (uint32_t)test_size);
        }
        MPI_Iallreduce(in, out, BYTES / size, types[i], MPI_SUM, MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        EXPECT(memcmp(out, wanted, BYTES) == 0, "type %zu", i);
    }
}

/* What is reduced as a Fortran type is reduced as the C type of its kind and size: to the last bit,
 * so that neither is taken for another. Halves and negative numbers tell integers from reals. */
TEST(kinds_are_mixed_up)
{
    enum { N = 1001 };
    const struct {
        MPI_Datatype fortran, c;
        bool is_real;
        size_t size;
    } types[] = {
        {MPI_INTEGER, MPI_INT, false, sizeof(int)},
        {MPI_REAL, MPI_FLOAT, true, sizeof(float)},
        {MPI_DOUBLE_PRECISION, MPI_DOUBLE, true, sizeof(double)},
#ifdef MPI_INTEGER8
        {MPI_INTEGER8, MPI_LONG_LONG, false, sizeof(long long)},
#endif
#ifdef MPI_REAL8
        {MPI_REAL8, MPI_DOUBLE, true, sizeof(double)},
#endif
    };
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    static double in[N], out[2][N];
    for (size_t i = 0; i < 4 * sizeof types / sizeof *types; i++) {
        const MPI_Op op = ops[i % 4];
        int size = 0;
        MPI_Request r[2];
        if (types[i / 4].fortran != MPI_DATATYPE_NULL)
            MPI_Type_size(types[i / 4].fortran, &size);
        if ((size_t)size != types[i / 4].size)
            continue; /* another size, or no Fortran */
        for (int k = 0; k < N; k++) {
            double value = (k % 7 - 3) * (test_rank + 1.5);
            if (!types[i / 4].is_real && size == 4)
                ((int *)in)[k] = (int)value;
            else if (!types[i / 4].is_real)
                ((long long *)in)[k] = (long long)value * (op == MPI_PROD ? 1 : 5000000000);
            else if (size == 4)
                ((float *)in)[k] = (float)value;
            else
                in[k] = value;
        }
        MPI_Iallreduce(in, out[0], N, types[i / 4].fortran, op, MPI_COMM_WORLD, &r[0]);
        MPI_Iallreduce(in, out[1], N, types[i / 4].c, op, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        EXPECT(memcmp(out[0], out[1], N * (size_t)size) == 0, "type %zu, operator %zu", i / 4,
               i % 4);
    }
}

/* Rows of two of a type, from each rank. */
static void gather_rows(MPI_Datatype row, MPI_Datatype member)
{
    float in[2] = {(float)test_rank, 0.5f}, *out = test_scratch((size_t)test_size * sizeof in);
    MPI_Request r;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL); /* errors inside, too */
    MPI_Type_commit(&row);
    MPI_Iallgather(in, 1, row, out, 2, member, MPI_COMM_WORLD, &r);
    wait(&r);
    for (int i = 0; i < test_size; i++)
        CHECK(out[2 * i] == (float)i && out[2 * i + 1] == 0.5f);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_free(&row);
}

/* MPI_Type_get_envelope refuses them. */
TEST(large_types_are_looked_into)
{
#ifdef HAVE_MPI_TYPE_GET_ENVELOPE_C
    MPI_Datatype large, copy, pair;
    MPI_Type_contiguous_c(2, MPI_FLOAT, &large);
    MPI_Type_dup(large, &copy);
    MPI_Type_contiguous(1, large, &pair);
    gather_rows(large, MPI_FLOAT);
    gather_rows(copy, MPI_FLOAT);
    gather_rows(pair, MPI_FLOAT);
#endif
}

/* MPI-4.1 19.1.5: types for Fortran's kinds are predefined, though they have no names. */
TEST(types_without_names_are_freed)
{
#ifdef HAVE_MPI_TYPE_CREATE_F90_REAL /* not in MPICH 3.2 without Fortran */
    MPI_Datatype real, copy, pair;
    MPI_Type_create_f90_real(6, 30, &real);
    if (real == MPI_DATATYPE_NULL)
        return; /* an MPICH without Fortran */
    for (int k = 0; k < 3; k++) {
        MPI_Type_contiguous(2, real, &pair);
        gather_rows(pair, real);
        MPI_Type_dup(real, &copy);
        MPI_Type_contiguous(2, copy, &pair);
        MPI_Type_free(&copy);
        gather_rows(pair, real);
    }
#endif
}

/* A program that uses its small send buffer for something else before a reduction is complete, as
 * DOLFINx does. Wrong, but it works over both MPIs. */
TEST(small_input_changes_early)
{
    enum { MOST = 128 };
    long in[MOST], out[MOST], below = (long)test_rank * (test_rank + 1) / 2;
    long all = (long)test_size * (test_size + 1) / 2;
    if (test_native)
        return;
    for (int n = 1; n <= MOST; n += MOST - 1)
        for (int kind = 0; kind < 5; kind++) {
            const long expected[] = {all, all, all, below + test_rank + 1, below};
            int each = kind == 2 ? n / test_size : n;
            MPI_Request r;
            for (int i = 0; i < MOST; i++)
                in[i] = test_rank + 1;
            if (kind == 0)
                MPI_Iallreduce(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
            else if (kind == 1)
                MPI_Ireduce(in, out, n, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD, &r);
            else if (kind == 2)
                MPI_Ireduce_scatter_block(in, out, each, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
            else if (kind == 3)
                MPI_Iscan(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
            else
                MPI_Iexscan(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &r);
            memset(in, 0x55, sizeof in);
            wait(&r);
            bool none = test_rank ? kind == 1 : kind == 4;
            for (int i = 0; i < each && !none; i++)
                EXPECT_INT(out[i], expected[kind], "kind %d, %d longs", kind, n);
        }
}

/* MPI-4.1 11.4.1, not MPI-3.1: MVAPICH2 2.3 ends the program. Open MPI 4.1.4 refuses it. */
static void error_class_comes_before_init(void)
{
#if defined(MPICH_NUMVERSION) && MPI_VERSION >= 4
    int class = -1;
    OK(MPI_Error_class(MPI_ERR_TRUNCATE, &class));
    EXPECT_INT(class, MPI_ERR_TRUNCATE);
#endif
}

static void before(void)
{
    kinds_init();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static void after(void)
{
    leave_things_behind();
    kinds_finish();
}

AROUND_TESTS(before, after)

int main(int argc, char **argv)
{
    error_class_comes_before_init();
    return test_main(argc, argv);
}
