/* SPDX-License-Identifier: MIT */
/* More communicators than the MPI has: MPICH has some 2000. What fails must leave nothing behind,
 * neither what it made nor what is under way. On an MPI that does not come to its end soon only
 * that many are made. */
#include "config.h"
#include "util.h"

enum { MOST = 2500, LEFT = 7, TRIES = 50 };

static void use(MPI_Comm comm)
{
    MPI_Request request;
    int one = 1, sum = 0, size;
    MPI_Comm_size(comm, &size);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Barrier(comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_INT(sum, size);
}

static int duplicate(MPI_Comm comm, bool nonblocking, MPI_Comm *made)
{
#ifdef HAVE_MPI_COMM_IDUP
    MPI_Request request;
    if (nonblocking) {
        OK(MPI_Comm_idup(comm, made, &request));
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
#endif
    (void)nonblocking;
    return MPI_Comm_dup(comm, made);
}

/* What fails fails again, as long as nothing is freed. */
static void fail_again(MPI_Comm comm, bool nonblocking)
{
    MPI_Comm made;
    for (int i = 1; i < TRIES; i++)
        EXPECT(duplicate(comm, nonblocking, &made) != MPI_SUCCESS, "call %d succeeds", i + 1);
}

/* Makes communicators until there is an error, at most MOST. Returns how many. */
static int fill(MPI_Comm comm, bool nonblocking, MPI_Comm made[])
{
    for (int n = 0; n < MOST; n++) {
        if (duplicate(comm, nonblocking, &made[n])) {
            fail_again(comm, nonblocking);
            return n;
        }
        use(made[n]);
    }
    return MOST;
}

static void drop(MPI_Comm made[], int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_free(&made[i]));
}

/* A window takes the room of a communicator. */
static void fill_rest(bool nonblocking, bool beside)
{
    static MPI_Comm made[MOST];
    MPI_Win window;
    int most = beside ? LEFT - 1 : LEFT;
    if (beside)
        OK(MPI_Win_create(MPI_BOTTOM, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
    int n = fill(MPI_COMM_WORLD, nonblocking, made);
    EXPECT_INT(n, most);
    drop(made, n);
    if (beside)
        OK(MPI_Win_free(&window));
}

/* Communicators of this rank alone take all that there are but for LEFT. False: the MPI has not
 * come to its end. */
static bool exhaust(bool nonblocking, bool beside)
{
    static MPI_Comm alone[MOST];
    int n = fill(MPI_COMM_SELF, false, alone);
    bool ended = n < MOST;
    if (ended) {
        n -= LEFT;
        drop(&alone[n], LEFT);
        fill_rest(nonblocking, beside);
    }
    drop(alone, n);
    return ended;
}

/* Once a duplicate of MPI_COMM_WORLD has found no room, MPICH2 1.4.1p1 waits forever for room for a
 * duplicate of MPI_COMM_SELF. */
#ifdef MPICH2_NUMVERSION
enum { ROUNDS = 1 };
#else
enum { ROUNDS = 12 };
#endif

TEST(exhausted)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < ROUNDS && exhaust(i & 1, i & 2); i++)
        ;
    use(MPI_COMM_WORLD);
}
