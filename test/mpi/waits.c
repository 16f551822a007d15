/* SPDX-License-Identifier: MIT */
/* Whoever waits long gives up the processor, in every call that waits: this program's sched_yield
 * counts who asks. Where ranks outnumber processors a loop without it takes a time slice for each
 * round of the others. Whoever starts an operation keeps it, in the MPI below too: the other ranks
 * can do nothing before all messages are posted. Whoever only sends to a root, which need not wait,
 * gives it up from time to time over MPICH. */
#include "library.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int yields, all_yields; /* of the library; of anyone: in the thread of the program */
static _Thread_local bool counts;

int sched_yield(void)
{
    yields += counts && FROM_LIBRARY;
    all_yields += counts;
    return (int)syscall(SYS_sched_yield);
}

static int one = 1, sums[2], go;
static MPI_Request r[2];

static MPI_Request start(int *sum)
{
    MPI_Request started;
    MPI_Iallreduce(&one, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &started);
    return started;
}

static void wait_one(void)
{
    r[0] = start(&sums[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

/* For a message, while an operation is pending. */
static void wait_for_message(void)
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

static void wait_all(void)
{
    start_two();
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void wait_any(void)
{
    int index;
    start_two();
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
}

static void wait_some(void)
{
    int count, indices[2];
    start_two();
    for (int left = 2; left > 0; left -= count)
        MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
}

/* A blocking call that must complete what is pending: see pmpi/api/p2p.c. */
static void receive(void)
{
    r[0] = start(&sums[0]);
    if (test_rank == 0)
        MPI_Recv(&go, 1, MPI_INT, test_size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (test_rank == test_size - 1)
        MPI_Send(&one, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

static void block(void)
{
    MPI_Allreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

#define CASE(function)             \
    {                              \
        function, #function, false \
    }
#define CASE_BELOW(function)      \
    {                             \
        function, #function, true \
    }

/* below: waits in the MPI, if that calls nbcshim in its progress loop. The MPI decides then whether
 * it gives up the processor. */
static const struct {
    void (*call)(void);
    const char *name;
    bool below;
} cases[] = {
    CASE(wait_one),  CASE_BELOW(wait_for_message), CASE(wait_all),    CASE(wait_any),
    CASE(wait_some), CASE_BELOW(receive),          CASE_BELOW(block),
};

enum { LONGEST = 1024, MOST_RANKS = 16 }; /* ints */

static void starts_keep_the_processor(void)
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

/* If all ranks are on one node with fewer processors. */
static void senders_let_the_root_receive(void)
{
#ifdef MPICH_NUMVERSION
    enum { GATHERS = 64 };
    static int from, to[MOST_RANKS];
    test_place("gathers to rank 0");
    MPI_Barrier(MPI_COMM_WORLD);
    yields = 0;
    counts = true;
    for (int i = 0; i < GATHERS; i++) {
        MPI_Igather(&from, 1, MPI_INT, to, 1, MPI_INT, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    }
    counts = false;
    if (test_rank > 0 && test_oversubscribed() && !test_native)
        EXPECT(yields > 0, "%d gathers do not give up the processor", GATHERS);
#endif
}

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the processor. Where other programs or the MPI take it from a rank, the late rank may
 * have come before this one has waited so long. */
static const double SHORT_WAIT = 5e-3;

int main(int argc, char **argv)
{
    const struct timespec late = {0, 20 * 1000 * 1000};
    int hooked = 0;
    test_init(&argc, &argv);
    if (!test_native) {
        library_find();
        nbcshim_hook(&hooked);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_place("%s", cases[i].name);
        sums[0] = -1;
        MPI_Barrier(MPI_COMM_WORLD);
        if (test_rank == test_size - 1)
            nanosleep(&late, NULL);
        yields = 0;
        counts = true;
        double used = -processor_time();
        cases[i].call();
        used += processor_time();
        counts = false;
        EXPECT(sums[0] == test_size, "%s: sum %d", cases[i].name, sums[0]);
        if (test_rank == 0 && !test_native && !(cases[i].below && hooked))
            EXPECT(yields > 0 || used < SHORT_WAIT, "%s waits %g s without giving up the processor",
                   cases[i].name, used);
    }
    starts_keep_the_processor();
    senders_let_the_root_receive();
    return test_done();
}
