/* SPDX-License-Identifier: MIT */
/* Whoever waits long gives up the processor, in every call that waits: this program's sched_yield
 * counts who asks. Where ranks outnumber processors a loop without it takes a time slice for each
 * round of the others. Whoever starts an operation keeps it, in the MPI below too: the other ranks
 * can do nothing before all messages are posted. Whoever only sends to a root, which need not wait,
 * gives it up from time to time over MPICH. */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int yields, all_yields; /* of the library; of anyone: in the thread of the program */
static _Thread_local bool counts;

/* Shared by the ranks of the node: whether rank 0 has given up the processor in its wait. */
static volatile int *given_up;

int sched_yield(void)
{
    bool library = counts && FROM_LIBRARY;
    yields += library;
    all_yields += counts;
    if (library && test_rank == 0 && given_up)
        *given_up = 1;
    return (int)syscall(SYS_sched_yield);
}

static void spend(long nanoseconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double end = (double)t.tv_sec + 1e-9 * ((double)t.tv_nsec + (double)nanoseconds);
    do
        clock_gettime(CLOCK_MONOTONIC, &t);
    while ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec < end);
}

/* If lock_is_slow, the library's lock takes a wait this long, as if another thread had it. */
enum { SLOW_LOCK = 50000 }; /* ns */
static bool lock_is_slow;
static int locks; /* before the first yield */

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*lock)(pthread_mutex_t *);
    if (!lock) {
        void *address = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        memcpy(&lock, &address, sizeof lock);
    }
    if (lock_is_slow && counts && yields == 0 && FROM_LIBRARY) {
        locks++;
        spend(SLOW_LOCK);
    }
    return lock(mutex);
}

/* Sets given_up. */
static void share(void)
{
    char name[64];
    int pid = (int)getpid();
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "/dev/shm/nbcshim-waits-%d", pid);
    int file = open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *given_up)) {
        perror(name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    given_up = mmap(NULL, sizeof *given_up, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(name);
}

static int one = 1, sums[2], go;
static MPI_Request r[2];

static MPI_Request start(int *sum)
{
    MPI_Request started;
    MPI_Iallreduce(&one, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &started);
    return started;
}

/* For the last rank: sleeps for a while, or until the wait of rank 0 gives up the processor,
 * however long that takes here. A wait that never does is not kept waiting for ever. */
static void come_late(bool rank_0_yields)
{
    enum { LONGEST_WAIT = 5 * 50 };
    const struct timespec late = {0, 20 * 1000 * 1000};
    nanosleep(&late, NULL);
    for (int i = 1; i < LONGEST_WAIT && rank_0_yields && !*given_up; i++)
        nanosleep(&late, NULL);
}

static bool hooked; /* the MPI calls nbcshim in its progress loop */

static void run_wait(const struct test *test, bool must_yield)
{
    sums[0] = -1;
    *given_up = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == test_size - 1)
        come_late(must_yield);
    yields = 0;
    counts = true;
    test->run();
    counts = false;
    EXPECT_INT(sums[0], test_size);
    if (test_rank == 0 && must_yield)
        EXPECT(yields > 0, "the wait does not give up the processor");
}

static void in_shim(const struct test *test)
{
    run_wait(test, !test_native);
}

/* Waits in the MPI, if that is hooked. It decides then whether it gives up the processor. */
static void below(const struct test *test)
{
    run_wait(test, !test_native && !hooked);
}

TEST(wait_one, .runner = in_shim)
{
    r[0] = start(&sums[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

/* For a message, while an operation is pending. */
TEST(wait_for_message, .runner = below)
{
    r[0] = start(&sums[0]);
    if (test_rank == 0) {
        MPI_Irecv(&go, 1, MPI_INT, test_size - 1, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    } else if (test_rank == test_size - 1) {
        MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

static void start_two(void)
{
    for (int i = 0; i < 2; i++)
        r[i] = start(&sums[i]);
}

TEST(wait_all, .runner = in_shim)
{
    start_two();
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

TEST(wait_any, .runner = in_shim)
{
    int index;
    start_two();
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
}

TEST(wait_some, .runner = in_shim)
{
    int count, indices[2];
    start_two();
    for (int left = 2; left > 0; left -= count)
        MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
}

/* A blocking call that must complete what is pending: see pmpi/hookless/p2p.c. */
TEST(receive, .runner = below)
{
    r[0] = start(&sums[0]);
    if (test_rank == 0)
        MPI_Recv(&go, 1, MPI_INT, test_size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (test_rank == test_size - 1)
        MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

TEST(block, .runner = below)
{
    MPI_Allreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

enum { LONGEST = 1024, MOST_RANKS = 16 }; /* ints */

TEST(starts_keep_the_processor)
{
    static int from[LONGEST * MOST_RANKS], to[LONGEST * MOST_RANKS];
    for (int n = 1; n <= LONGEST; n *= 4) {
        test_place("start of %d ints", n);
        MPI_Barrier(MPI_COMM_WORLD);
        all_yields = 0;
        counts = true;
        MPI_Ialltoall(from, n, MPI_INT, to, n, MPI_INT, MPI_COMM_WORLD, &r[0]);
        counts = false;
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        EXPECT(all_yields == 0 || test_native,
               "the start of an alltoall of %d ints gives it up %d times", n, all_yields);
    }
}

/* Where ranks do not share processors, a wait has patience for more polls, but for no more time. */
TEST(slow_polls_are_few)
{
    enum { FAST_POLLS = 512 };
    *given_up = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == test_size - 1)
        come_late(!test_native);
    yields = locks = 0;
    counts = lock_is_slow = true;
    wait_one();
    counts = lock_is_slow = false;
    if (test_rank == 0 && !test_native)
        EXPECT(locks < FAST_POLLS / 2, "a wait gives up the processor after %d slow polls", locks);
}

static void begin(void)
{
    int found = 0;
    share();
    if (test_native)
        return;
    library_find();
    nbcshim_hook(&found);
    hooked = found;
}

AROUND_TESTS(begin, NULL)
