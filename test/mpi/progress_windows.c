/* SPDX-License-Identifier: MIT */
/* Progress of collectives while rank 0 is blocked in a call on windows: common/blocked.h. */
#include "blocked.h"
#include "config.h"

#include <string.h>

/* MPICH 4.0.2 over UCX 1.13 takes the beginning of a window for a multiple of 16, without nbcshim
 * too. */
#define WINDOW_MEMORY static _Alignas(16) int

WINDOW_MEMORY memory[8];
static MPI_Win win; /* of `memory` */

/* --- collective calls ------------------------------------------------------------------------- */

/* Makes a window and frees it. */
#define CREATES(name, call)             \
    BLOCKED(name, .in = "Win_" #name)   \
    {                                   \
        MPI_Win made;                   \
        int value = -1, *base = &value; \
        OK(call);                       \
        (void)base;                     \
        OK(MPI_Win_free(&made));        \
    }
#define SIZE sizeof(int), sizeof(int), MPI_INFO_NULL, blocked_comm

CREATES(create, MPI_Win_create(base, SIZE, &made))
#ifdef HAVE_MPI_WIN_ALLOCATE
CREATES(allocate, MPI_Win_allocate(SIZE, &base, &made))
#endif
#ifdef HAVE_MPI_WIN_ALLOCATE_SHARED
CREATES(allocate_shared, MPI_Win_allocate_shared(SIZE, &base, &made))
#endif
#ifdef HAVE_MPI_WIN_CREATE_DYNAMIC
CREATES(create_dynamic, MPI_Win_create_dynamic(MPI_INFO_NULL, blocked_comm, &made))
#endif
/* The displacement unit is an MPI_Aint in these. */
#ifdef HAVE_MPI_WIN_CREATE_C
CREATES(create_c, MPI_Win_create_c(base, SIZE, &made))
#endif
#ifdef HAVE_MPI_WIN_ALLOCATE_C
CREATES(allocate_c, MPI_Win_allocate_c(SIZE, &base, &made))
#endif
#ifdef HAVE_MPI_WIN_ALLOCATE_SHARED_C
CREATES(allocate_shared_c, MPI_Win_allocate_shared_c(SIZE, &base, &made))
#endif

BLOCKED(fence, .in = "Win_fence")
{
    int value = 10 + test_rank;
    memory[test_rank] = value;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, right(), test_rank, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    int last = left();
    EXPECT_INT(memory[last], 10 + last);
}

#ifdef HAVE_MPI_WIN_SET_INFO
BLOCKED(set_info)
{
    MPI_Info info = test_info("no_locks", "false");
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
}
#endif

static MPI_Win to_free;

static void make_it(void)
{
    static int other;
    MPI_Win_create(&other, sizeof other, sizeof other, MPI_INFO_NULL, blocked_comm, &to_free);
}

BLOCKED(free_it, .prepare = make_it, .in = "Win_free")
{
    OK(MPI_Win_free(&to_free));
}

#ifndef OPEN_MPI /* which frees it */
/* In an epoch a window cannot be freed, and stays what it is. */
static void free_in_vain(void)
{
    make_it();
    OK(MPI_Win_set_errhandler(to_free, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, test_rank, 0, to_free));
    EXPECT(MPI_Win_free(&to_free) != MPI_SUCCESS && to_free != MPI_WIN_NULL, "it was freed");
    OK(MPI_Win_unlock(test_rank, to_free));
}

BLOCKED(free_after_it_failed, .prepare = free_in_vain)
{
    OK(MPI_Win_free(&to_free));
}
#endif

/* A fence and a collective may come in either order, since they are calls on different objects. */
BLOCKED(fence_first)
{
    MPI_Request request;
    if (test_rank % 2)
        OK(MPI_Win_fence(0, win));
    OK(MPI_Ibarrier(blocked_comm, &request));
    if (test_rank % 2 == 0)
        OK(MPI_Win_fence(0, win));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* --- post, start, complete, wait -------------------------------------------------------------- */

/* A group of one rank, or of all but rank 0. */
static MPI_Group group_of(int rank)
{
    MPI_Group all, group;
    int zero = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    if (rank >= 0)
        MPI_Group_incl(all, 1, &rank, &group);
    else
        MPI_Group_excl(all, 1, &zero, &group);
    MPI_Group_free(&all);
    return group;
}

/* An error, and nothing to wait for: no post comes for it. */
static void second_start(MPI_Group group)
{
#ifndef MPICH2_NUMVERSION /* 1.4.1p1 reports none */
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    EXPECT(MPI_Win_start(group, 0, win) != MPI_SUCCESS, "a second MPI_Win_start succeeds");
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL));
#else
    (void)group;
#endif
}

static void post_late(void)
{
    MPI_Group group = group_of(0);
    memory[0] = 0;
    OK(MPI_Win_post(group, 0, win));
    OK(MPI_Win_wait(win));
    EXPECT_INT(memory[0], 77);
    MPI_Group_free(&group);
}

/* Rank 0 puts to all others, which post late. */
BLOCKED(start, .release = post_late)
{
    MPI_Group group = group_of(-1);
    int value = 77;
    OK(MPI_Win_start(group, 0, win));
    second_start(group);
    for (int to = 1; to < test_size; to++)
        OK(MPI_Put(&value, 1, MPI_INT, to, 0, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    MPI_Group_free(&group);
}

static void start_late(void)
{
    MPI_Group group = group_of(0);
    int value = 88 + test_rank;
    OK(MPI_Win_start(group, 0, win));
    OK(MPI_Put(&value, 1, MPI_INT, 0, test_rank, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    MPI_Group_free(&group);
}

/* Rank 0 is the target, and waits for all others. */
BLOCKED(wait, .release = start_late, .in = "Win_wait")
{
    MPI_Group group = group_of(-1);
    OK(MPI_Win_post(group, 0, win));
    OK(MPI_Win_wait(win));
    for (int from = 1; from < test_size; from++)
        EXPECT_INT(memory[from], 88 + from);
    MPI_Group_free(&group);
}

/* Rank 0 starts on the second of two windows first; the others post in the other order, and late.
 */
static MPI_Win win_first, win_second;
WINDOW_MEMORY of_first;
WINDOW_MEMORY of_second;

static void make_two(void)
{
    of_first = of_second = 0;
    MPI_Win_create(&of_first, sizeof(int), sizeof(int), MPI_INFO_NULL, blocked_comm, &win_first);
    MPI_Win_create(&of_second, sizeof(int), sizeof(int), MPI_INFO_NULL, blocked_comm, &win_second);
    if (test_rank > 0) {
        MPI_Group group = group_of(0);
        OK(MPI_Win_post(group, 0, win_first));
        MPI_Group_free(&group);
    }
}

static void put_on(MPI_Win on, MPI_Group group, int value)
{
    OK(MPI_Win_start(group, 0, on));
    for (int to = 1; to < test_size; to++)
        OK(MPI_Put(&value, 1, MPI_INT, to, 0, 1, MPI_INT, on));
    OK(MPI_Win_complete(on));
}

static void post_second(void)
{
    MPI_Group group = group_of(0);
    OK(MPI_Win_post(group, 0, win_second));
    OK(MPI_Win_wait(win_second));
    OK(MPI_Win_wait(win_first));
    EXPECT_INT(of_first, 1);
    EXPECT_INT(of_second, 2);
    MPI_Group_free(&group);
    OK(MPI_Win_free(&win_first));
    OK(MPI_Win_free(&win_second));
}

BLOCKED(start_second_first, .release = post_second, .prepare = make_two)
{
    MPI_Group group = group_of(-1);
    put_on(win_second, group, 2);
    put_on(win_first, group, 1);
    MPI_Group_free(&group);
    OK(MPI_Win_free(&win_first));
    OK(MPI_Win_free(&win_second));
}

BLOCKED(test, .release = start_late)
{
    MPI_Group group = group_of(-1);
    int flag = 0;
    OK(MPI_Win_post(group, 0, win));
    while (!flag)
        OK(MPI_Win_test(win, &flag));
    MPI_Group_free(&group);
}

/* --- loops over one-sided calls --------------------------------------------------------------- */

#ifdef HAVE_MPI_FETCH_AND_OP
typedef int on_window(MPI_Win window);

#define ON_OWN(name, call)                \
    static int name##_own(MPI_Win window) \
    {                                     \
        return call;                      \
    }
ON_OWN(lock, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window))
ON_OWN(unlock, MPI_Win_unlock(0, window))
ON_OWN(flush, MPI_Win_flush(0, window))
ON_OWN(flush_local, MPI_Win_flush_local(0, window))

static int lock_every(MPI_Win window)
{
    return MPI_Win_lock_all(0, window);
}

static void clear_it(void)
{
    memory[7] = 0;
}

static void write_it(void)
{
    int value = 99, before;
    if (test_rank != 1)
        return;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Fetch_and_op(&value, &before, MPI_INT, 0, 7, MPI_REPLACE, win));
    OK(MPI_Win_unlock(0, win));
}

/* Rank 0 looks at its own memory until another rank has written there: after each look it flushes,
 * or, for NULL, unlocks and locks. */
static void look(on_window *open, on_window *flush, on_window *close)
{
    int seen = 0, none = 0;
    OK(open(win));
    while (seen != 99) {
        OK(MPI_Fetch_and_op(&none, &seen, MPI_INT, 0, 7, MPI_NO_OP, win));
        OK((flush ? flush : close)(win));
        if (!flush)
            OK(open(win));
    }
    OK(close(win));
}

#define LOOKS(name, ...)                                    \
    BLOCKED(name, .release = write_it, .prepare = clear_it) \
    {                                                       \
        look(__VA_ARGS__);                                  \
    }
LOOKS(flush, lock_own, flush_own, unlock_own)
LOOKS(flush_local, lock_own, flush_local_own, unlock_own)
LOOKS(relock, lock_own, NULL, unlock_own)
LOOKS(flush_all, lock_every, MPI_Win_flush_all, MPI_Win_unlock_all)
LOOKS(flush_local_all, lock_every, MPI_Win_flush_local_all, MPI_Win_unlock_all)
LOOKS(relock_all, lock_every, NULL, MPI_Win_unlock_all)
#endif

#if defined HAVE_MPI_WIN_SYNC && defined HAVE_MPI_WIN_ALLOCATE_SHARED
/* The same with memory that the others write to as to their own. */
static MPI_Win shared;
static volatile int *seen; /* rank 0's */

static void share(void)
{
    MPI_Aint bytes;
    int unit;
    void *own, *first;
    OK(MPI_Win_allocate_shared(test_rank == 0 ? sizeof *seen : 0, sizeof *seen, MPI_INFO_NULL,
                               blocked_comm, &own, &shared));
    OK(MPI_Win_shared_query(shared, 0, &bytes, &unit, &first));
    OK(MPI_Win_lock_all(0, shared));
    seen = first;
    if (test_rank == 0)
        *seen = 0;
    MPI_Barrier(blocked_comm);
}

static void write_shared(void)
{
    if (test_rank == 1)
        *seen = 99;
    OK(MPI_Win_sync(shared));
    OK(MPI_Win_unlock_all(shared));
    OK(MPI_Win_free(&shared));
}

BLOCKED(sync_until_written, .release = write_shared, .prepare = share)
{
    while (*seen != 99)
        OK(MPI_Win_sync(shared));
    OK(MPI_Win_unlock_all(shared));
    OK(MPI_Win_free(&shared));
}

#endif

/* --- a contended lock: only the progress thread helps (doc/progress.md) ----------------------- */

#ifdef HAVE_MPI_WIN_FLUSH
/* Rank 1 has the last rank's memory when rank 0 asks for it: not before a flush is that sure. */
static void hold_lock(void)
{
    int value = 5;
    if (test_rank == 1) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, test_size - 1, 0, win));
        OK(MPI_Put(&value, 1, MPI_INT, test_size - 1, 6, 1, MPI_INT, win));
        OK(MPI_Win_flush(test_size - 1, win));
    }
    MPI_Barrier(blocked_comm);
}

static void unlock(void)
{
    if (test_rank == 1)
        OK(MPI_Win_unlock(test_size - 1, win));
}

BLOCKED(lock, .release = unlock, .prepare = hold_lock, .test.if_named = true, .in = "Win_lock")
{
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, test_size - 1, 0, win));
    OK(MPI_Win_unlock(test_size - 1, win));
}

#else
TEST(lock, .if_named = true)
{
    /* this MPI has no flush */
}
#endif

/* Windows outlive their communicators. */
static void begin(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, comm, &win);
    MPI_Comm_free(&comm);
    blocked_begin();
}

static void end(void)
{
    blocked_end();
    MPI_Win_free(&win);
}

AROUND_TESTS(begin, end)
