/* SPDX-License-Identifier: MIT */
/* More communicators than the MPI has: MPICH has some 2000. Where it has none left for the hidden
 * one, the program's is the MPI's own; and what fails must leave nothing behind, neither what it
 * made nor what is under way. On an MPI that does not come to its end soon only that many are made.
 */
#include "blocked.h"
#include "config.h"

enum { MOST = 2500, LEFT = 7 };

#ifdef HAVE_MPI_IALLREDUCE
static const bool has_own = true; /* nonblocking collectives */
#else
static const bool has_own = false;
#endif

static MPI_Comm alone[MOST]; /* of this rank alone: they take what all ranks have */
static int nalone;

/* Whoever's its collectives are. */
static void use(MPI_Comm comm)
{
    MPI_Request request;
    int one = 1, sum = 0, size;
    MPI_Comm_size(comm, &size);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Barrier(comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT(sum == size, "sum %d", sum);
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

/* Makes communicators until there is an error, at most MOST. Returns how many. */
static int fill(MPI_Comm comm, bool nonblocking, MPI_Comm made[])
{
    for (int n = 0; n < MOST; n++) {
        if (duplicate(comm, nonblocking, &made[n]))
            return n;
        use(made[n]);
    }
    return MOST;
}

static void drop(MPI_Comm made[], int n)
{
    for (int i = 0; i < n; i++)
        OK(MPI_Comm_free(&made[i]));
}

/* Leaves room for `left` communicators, each with its hidden one. False: the MPI has not come to
 * its end. */
static bool leave(int left)
{
    nalone = fill(MPI_COMM_SELF, false, alone);
    if (nalone == MOST)
        return false;
    nalone -= left;
    drop(&alone[nalone], left);
    return true;
}

static void give_back(void)
{
    drop(alone, nalone);
}

/* A window takes half of the room of one: then the last is the MPI's own, if the hidden one does
 * not come before it. */
static void fill_rest(bool nonblocking, bool half)
{
    static MPI_Comm made[MOST];
    MPI_Win window;
    if (half)
        OK(MPI_Win_create(MPI_BOTTOM, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
    int n = fill(MPI_COMM_WORLD, nonblocking, made);
    EXPECT(n == LEFT || (half && (nonblocking || !has_own) && n == LEFT - 1), "%d in place of %d",
           n, LEFT);
    drop(made, n);
    if (half)
        OK(MPI_Win_free(&window));
}

static void too_many(void)
{
    for (int i = 0; i < 12 && leave(LEFT); i++) {
        fill_rest(i & 1, i & 2);
        give_back();
    }
}

/* --- progress in collectives that are the MPI's own ------------------------------------------- */

static MPI_Comm refused = MPI_COMM_NULL;
static MPI_Win window;

static bool is_ours(MPI_Comm comm)
{
    int *outstanding, flag = 0;
    OK(MPI_Comm_get_attr(comm, MPI_ICOLL_MAX_OUTSTANDING, &outstanding, &flag));
    return flag;
}

static void take_last(void)
{
    if (!has_own || !leave(1))
        return;
    OK(MPI_Win_create(MPI_BOTTOM, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
    OK(MPI_Comm_dup(blocked_comm, &refused));
    EXPECT(!is_ours(refused), "ours");
}

static void give_last(void)
{
    if (refused != MPI_COMM_NULL) {
        OK(MPI_Comm_free(&refused));
        OK(MPI_Win_free(&window));
    }
    give_back();
}

static void barrier(void)
{
    OK(MPI_Barrier(refused != MPI_COMM_NULL ? refused : blocked_comm));
    give_last();
}

static void allreduce(void)
{
    int mine = test_rank, sum = -1;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM,
                     refused != MPI_COMM_NULL ? refused : blocked_comm));
    EXPECT(sum == test_size * (test_size - 1) / 2, "sum %d", sum);
    give_last();
}

/* What is made of it when there is room again has a hidden one, as its attribute tells. */
static void derived(void)
{
    MPI_Comm parent = refused != MPI_COMM_NULL ? refused : blocked_comm, child;
    give_back();
    nalone = 0;
    OK(MPI_Comm_split(parent, 0, test_rank, &child));
    EXPECT(is_ours(child), "the MPI's own");
    use(child);
    OK(MPI_Comm_free(&child));
    give_last();
}

static const struct blocked cases[] = {
    {"barrier", barrier, NULL, take_last, false},
    {"allreduce", allreduce, NULL, take_last, false},
};

int main(int argc, char **argv)
{
    test_init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    too_many();
    blocked_run(cases, sizeof cases / sizeof *cases, argv + 1);
    blocked_comm = MPI_COMM_WORLD;
    take_last();
    derived();
    return test_done();
}
