/* SPDX-License-Identifier: MIT */
/* MPI_Comm_idup: local, completed by any completion call, mixed with other requests; the new
 * communicator serves collectives as soon as its request is complete, and has its attribute. */
#include "config.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_MPI_COMM_IDUP
static void use(MPI_Comm comm)
{
    MPI_Request request;
    int *outstanding = NULL, flag = 0, one = 1, sum = 0;
    OK(MPI_Comm_get_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, &outstanding, &flag));
    EXPECT(flag && *outstanding >= 32767, "no MPI_ICOLL_MAX_OUTSTANDING");
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, test_size);
}

/* Rank 0 returns from the call before the others make it. */
TEST(local)
{
    MPI_Comm comm;
    MPI_Request request;
    int go = 1, flag = 0;
    if (test_rank > 0)
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    for (int to = 1; test_rank == 0 && to < test_size; to++)
        OK(MPI_Send(&go, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
    while (!flag)
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    use(comm);
    OK(MPI_Comm_free(&comm));
}

/* The hints are the new communicator's, freed by the program as soon as it likes. */
TEST(hinted)
{
#ifdef HAVE_MPI_COMM_IDUP_WITH_INFO
    MPI_Comm comm;
    MPI_Request request;
    int x = 1, sum = 0;
    MPI_Info info = test_info("nbcshim_algorithm", "allreduce:ring");
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &comm, &request));
    OK(MPI_Info_free(&info));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    const char *name = test_native ? "ring" : nbcshim_algorithm(request, NULL);
    EXPECT(name && strcmp(name, "ring") == 0, "runs %s", name ? name : "nothing of ours");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use(comm);
    OK(MPI_Comm_free(&comm));
#endif
}

/* Two at once, with a collective and a message, completed together; the parent is freed meanwhile.
 */
TEST(mixed)
{
    enum { N = 5 };
    MPI_Comm parent, first, second;
    MPI_Request request[N];
    int next = right(), last = left();
    int out = test_rank, in = -1, one = 1, sum = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Irecv(&in, 1, MPI_INT, last, 2, MPI_COMM_WORLD, &request[0]));
    OK(MPI_Comm_idup(parent, &first, &request[1]));
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, parent, &request[2]));
    OK(MPI_Comm_idup(parent, &second, &request[3]));
    OK(MPI_Isend(&out, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &request[4]));
#ifndef OPEN_MPI
    OK(MPI_Comm_free(&parent));
#endif
    OK(MPI_Waitall(N, request, MPI_STATUSES_IGNORE));
    EXPECT_INT(in, last);
    EXPECT_INT(sum, test_size);
    if (parent != MPI_COMM_NULL)
        OK(MPI_Comm_free(&parent));
    use(second);
    use(first);
    OK(MPI_Comm_free(&first));
    OK(MPI_Comm_free(&second));
}

/* So many that the next communicator has another number on each rank. */
static void make_own(MPI_Comm *own, int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_dup(MPI_COMM_SELF, &own[i]));
}

static void poll_a_while(struct rng *own)
{
    int flag;
    for (int i = rng_below(own, 50); i > 0; i--)
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    if (rng_chance(own, 25))
        usleep((useconds_t)rng_below(own, 200));
}

/* Several of one parent, whose ranks are apart: Open MPI would interleave their messages. */
static void several(struct rng *own)
{
    enum { N = 4, MOST = 5 };
    MPI_Comm made[N], kept[MOST];
    MPI_Request request[N];
    int order[N], n = rng_below(own, MOST);
    make_own(kept, n);
    for (int i = 0; i < N; i++) {
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &made[i], &request[i]));
        poll_a_while(own);
        order[i] = i;
    }
    if (rng_chance(own, 50))
        OK(MPI_Wait(&request[N - 1], MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    rng_shuffle(own, order, N);
    for (int i = 0; i < N; i++)
        OK(MPI_Wait(&request[order[i]], MPI_STATUS_IGNORE));
    for (int i = 0; i < N; i++) {
        use(made[i]);
        OK(MPI_Comm_free(&made[i]));
    }
    while (n > 0)
        OK(MPI_Comm_free(&kept[--n]));
}

TEST(several_of_one_parent)
{
    struct rng own = rng_private(7);
    for (int i = 0; i < 20; i++)
        several(&own);
}

static int has(MPI_Comm comm, int key)
{
    int *value, flag = 0;
    OK(MPI_Comm_get_attr(comm, key, &value, &flag));
    return flag;
}

/* Each has the attributes that the parent had at its call, also if another one is pending then. */
TEST(attributes_of_the_call)
{
    enum { N = 3 };
    MPI_Comm parent, made[N];
    MPI_Request request[N];
    int key, value = 0;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &parent));
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_idup(parent, &made[i], &request[i]));
    OK(MPI_Comm_set_attr(parent, key, &value));
    OK(MPI_Comm_idup(parent, &made[2], &request[2]));
    OK(MPI_Comm_delete_attr(parent, key));
    OK(MPI_Waitall(N, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++) {
        EXPECT_INT(has(made[i], key), i == 2);
        OK(MPI_Comm_free(&made[i]));
    }
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free_keyval(&key));
}

static int dup_parent(MPI_Comm parent, int key, void *extra, void *value, void *copied, int *flag)
{
    static bool inside;
    (void)key, (void)extra, (void)value;
    *flag = !inside;
    if (inside)
        return MPI_SUCCESS;
    MPI_Comm *own = test_alloc(sizeof *own);
    inside = true;
    OK(MPI_Comm_dup(parent, own));
    inside = false;
    *(MPI_Comm **)copied = own;
    return MPI_SUCCESS;
}

static int free_own(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    MPI_Comm *own = value;
    use(*own);
    OK(MPI_Comm_free(own));
    free(own);
    return MPI_SUCCESS;
}

/* The attribute is a communicator of its own, which the callback makes of the parent: it does not
 * wait for the MPI_Comm_idup in which it is called. */
TEST(callback_makes_another)
{
    enum { N = 3 };
    MPI_Comm parent, made[N], *own = test_alloc(sizeof *own);
    MPI_Request request[N];
    int key;
    OK(MPI_Comm_create_keyval(dup_parent, free_own, &key, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, own));
    OK(MPI_Comm_set_attr(parent, key, own));
    for (int i = 0; i < N; i++)
        OK(MPI_Comm_idup(parent, &made[i], &request[i]));
    OK(MPI_Waitall(N, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++) {
        EXPECT(has(made[i], key), "duplicate %d has no attribute", i);
        OK(MPI_Comm_free(&made[i]));
    }
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free_keyval(&key));
}

/* The error handler too is that of the call. */
TEST(error_handler_of_the_call)
{
    MPI_Comm parent, made[2];
    MPI_Request request[2];
    MPI_Errhandler handler;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_idup(parent, &made[i], &request[i]));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_get_errhandler(made[i], &handler));
        EXPECT(handler == MPI_ERRORS_RETURN, "duplicate %d has another handler", i);
        OK(MPI_Errhandler_free(&handler));
        OK(MPI_Comm_free(&made[i]));
    }
    OK(MPI_Comm_free(&parent));
}

/* What is made from it is ours too. */
TEST(derived)
{
    MPI_Comm comm, split;
    MPI_Request request;
    int index, one = 1, sum = 0, size;
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    OK(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
    OK(MPI_Comm_split(comm, test_rank % 2, 0, &split));
    MPI_Comm_size(split, &size);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, split, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, size);
    OK(MPI_Comm_free(&split));
    OK(MPI_Comm_free(&comm));
}

/* A constructor of the parent while a duplicate of it is pending: all ranks make the calls in the
 * same order. Open MPI 4.1.4 makes no windows on one rank. */
static MPI_Comm beside(int kind, MPI_Group all)
{
    MPI_Comm made;
    MPI_Win win;
    int x = 0;
    if (kind == 0 && test_size > 1) {
        OK(MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_free(&win));
    }
    if (kind == 1)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &made));
    else if (kind == 2)
        OK(MPI_Comm_create(MPI_COMM_WORLD, all, &made));
    else
        OK(MPI_Comm_split(MPI_COMM_WORLD, 0, test_rank, &made));
    return made;
}

TEST(beside_constructors)
{
    enum { ROUNDS = 160, KINDS = 4 };
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm copy, other;
        MPI_Request request;
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request));
        other = beside(i % KINDS, all);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        use(copy);
        use(other);
        OK(MPI_Comm_free(&copy));
        OK(MPI_Comm_free(&other));
    }
    OK(MPI_Group_free(&all));
}

/* The last rank makes a communicator of its own between an MPI_Comm_idup and a constructor, in
 * which the others are already. Open MPI makes those of a process one after the other, in an order
 * that ranks may not share: it needs the exchange before each constructor (ranges.h). */
TEST(others_are_ahead)
{
    enum { POLLS = 2000 };
    MPI_Comm parent, other, own, comm, copy;
    MPI_Request request;
    int last = test_rank == test_size - 1, flag;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &own));
    for (int i = 0; i < 2; i++) { /* the second one may leave a spare range */
        OK(MPI_Comm_dup(parent, &comm));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Barrier(parent));
    if (last)
        usleep(50000);
    OK(MPI_Comm_idup(other, &copy, &request));
    for (int i = 0; i < POLLS && last; i++)
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 3, parent, &flag, MPI_STATUS_IGNORE));
    if (last) {
        OK(MPI_Comm_dup(own, &comm));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_dup(parent, &comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use(comm);
    use(copy);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&own));
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&parent));
}

enum object { WINDOW, ALLOCATED_WINDOW, OPENED_FILE, GROUP, OBJECTS };

static void make_object(enum object kind, MPI_Comm parent)
{
    MPI_Comm made;
    MPI_Group all;
    MPI_File file;
    MPI_Win win;
    int *base, x = 0;
    if (kind == WINDOW) {
        OK(MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, parent, &win));
        OK(MPI_Win_free(&win));
    } else if (kind == ALLOCATED_WINDOW) {
        OK(MPI_Win_allocate(sizeof x, 1, MPI_INFO_NULL, parent, &base, &win));
        OK(MPI_Win_free(&win));
    } else if (kind == OPENED_FILE) {
        OK(MPI_File_open(parent, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        OK(MPI_File_close(&file));
    } else {
        OK(MPI_Comm_group(parent, &all));
        OK(MPI_Comm_create_group(parent, all, 7, &made));
        use(made);
        OK(MPI_Comm_free(&made));
        OK(MPI_Group_free(&all));
    }
}

/* The last rank completes an MPI_Comm_idup before it makes a window, a file or a communicator of a
 * group, in which the others are already. */
TEST(objects_are_ahead)
{
    MPI_Comm parent, other, copy;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int kind = 0; kind < OBJECTS && test_size > 1; kind++) {
        OK(MPI_Barrier(parent));
        if (test_rank == test_size - 1)
            usleep(50000);
        OK(MPI_Comm_idup(other, &copy, &request));
        if (test_rank == test_size - 1)
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        make_object(kind, parent);
        if (test_rank != test_size - 1)
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        use(copy);
        OK(MPI_Comm_free(&copy));
    }
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&parent));
}

/* Many pending together, of communicators that overlap. */
static void idup_overlapping(void)
{
    enum { N = 12 };
    MPI_Comm half, both, parents[3], made[N];
    MPI_Request request[N];
    int part = test_rank % 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, part, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - part, 5, &both));
    parents[0] = MPI_COMM_SELF;
    parents[1] = both;
    parents[2] = half;
    for (int i = 0; i < N; i++)
        OK(MPI_Comm_idup(parents[i % 3], &made[i], &request[i]));
    OK(MPI_Waitall(N, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++) {
        int one = 1, sum = 0, size;
        OK((i % 3 == 1 ? MPI_Comm_remote_size : MPI_Comm_size)(made[i], &size));
        OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[i], &request[i]));
        OK(MPI_Wait(&request[i], MPI_STATUS_IGNORE));
        EXPECT_INT(sum, size);
        OK(MPI_Comm_free(&made[i]));
    }
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_free(&half));
}

/* Many pending together, each with a collective, tested in turns. */
static void idup_in_turns(void)
{
    enum { N = 12 };
    MPI_Comm made[N];
    MPI_Request request[2 * N];
    int one = 1, sums[N] = {0}, left = 2 * N;
    for (int i = 0; i < N; i++) {
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &made[i], &request[i]));
        OK(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[N + i]));
    }
    for (int i = 0; left > 0; i = (i + 1) % (2 * N)) {
        int flag = 0;
        if (request[i] == MPI_REQUEST_NULL)
            continue;
        OK(MPI_Test(&request[i], &flag, MPI_STATUS_IGNORE));
        left -= flag;
    }
    for (int i = 0; i < N; i++) {
        EXPECT_INT(sums[i], test_size);
        use(made[i]);
        OK(MPI_Comm_free(&made[i]));
    }
}

/* Several times: the hangs that these two look for are occasional. */
TEST(overlapping, .if_named = true)
{
    for (int i = 0; i < 3; i++)
        idup_overlapping();
}

TEST(in_turns, .if_named = true)
{
    for (int i = 0; i < 3; i++)
        idup_in_turns();
}
#endif
