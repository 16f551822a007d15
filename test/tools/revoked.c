/* Collectives of nbcshim on communicators that are revoked, before the call or while operations are
 * pending: all end with MPI_ERR_REVOKED. 2 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef OPEN_MPI
enum { REVOKED = 77 }; /* of Open MPI 5 */
#else
enum { REVOKED = MPIX_ERR_REVOKED };
#endif

extern int MPIX_Comm_revoke(MPI_Comm comm);

enum { MANY = 200, LONG = 1 << 20 };

static int failures, rank;
static char data[LONG], other[LONG];

static void is_revoked(const char *what, int error)
{
    if (error == REVOKED)
        return;
    failures++;
    printf("rank %d: %s: error %d\n", rank, what, error);
}

static MPI_Comm comm_new(const char *name)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, name);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

/* The MPI may tell the other ranks later. */
static void revoke_comm(MPI_Comm comm)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPIX_Comm_revoke(comm);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* At the call, or later. */
static int ended(int error, MPI_Request *request)
{
    return error ? error : MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void before_the_call(void)
{
    MPI_Request request = MPI_REQUEST_NULL, barrier;
    MPI_Comm comm = comm_new("before"), more;
    MPI_Barrier_init(comm, MPI_INFO_NULL, &barrier);
    MPI_Start(&barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    revoke_comm(comm);
    is_revoked("MPI_Barrier", MPI_Barrier(comm));
    is_revoked("MPI_Bcast", MPI_Bcast(data, LONG, MPI_CHAR, 0, comm));
    is_revoked("MPI_Ibarrier", ended(MPI_Ibarrier(comm, &request), &request));
    is_revoked("MPI_Start", ended(MPI_Start(&barrier), &barrier));
    is_revoked("MPI_Comm_dup", MPI_Comm_dup(comm, &more));
    MPI_Request_free(&barrier);
    MPI_Comm_free(&comm);
}

/* Rank 1 never joins, and revokes. Rank 0 does not call MPIX_Comm_revoke. */
static void while_pending(void)
{
    static MPI_Request many[MANY];
    int errors[MANY];
    static const char *const names[] = {"wait", "all", "test", "block", "freed"};
    MPI_Comm comms[5];
    MPI_Request request;
    int flag = 0, error;
    for (int i = 0; i < 5; i++)
        comms[i] = comm_new(names[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        usleep(20000);
        for (int i = 0; i < 5; i++) {
            MPIX_Comm_revoke(comms[i]);
            usleep(5000);
        }
    } else {
        for (int i = 0; i < MANY; i++) /* on a slow machine rank 1 revokes meanwhile */
            errors[i] = MPI_Iallreduce(data, other, 8, MPI_CHAR, MPI_MAX, comms[1], &many[i]);
        error =
            MPI_Iallgather(data, LONG / 2, MPI_CHAR, other, LONG / 2, MPI_CHAR, comms[2], &request);
        is_revoked("MPI_Barrier, pending", MPI_Barrier(comms[3]));
        while (!flag && !error)
            error = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        is_revoked("MPI_Test", error);
        for (int i = 0; i < MANY; i++)
            is_revoked("one of many", ended(errors[i], &many[i]));
        is_revoked("MPI_Wait",
                   ended(MPI_Ibcast(data, LONG, MPI_CHAR, 1, comms[0], &request), &request));
        /* Revoked before it is freed, with a pending operation. */
        error = MPI_Ibarrier(comms[4], &request);
        MPIX_Comm_revoke(comms[4]);
        MPI_Comm_free(&comms[4]);
        is_revoked("of a freed communicator", ended(error, &request));
    }
    for (int i = 0; i < 5; i++)
        if (rank == 1 || i < 4)
            MPI_Comm_free(&comms[i]);
}

/* What is not revoked works, and no message of a revoked one is taken for another. */
static void others_work(void)
{
    for (int i = 0; i < 100; i++) {
        MPI_Request request;
        MPI_Comm comm = comm_new("");
        int mine = rank + i, sum = 0;
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        if (MPI_Wait(&request, MPI_STATUS_IGNORE) || sum != 2 * i + 1)
            is_revoked("another communicator", 0);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    alarm(50);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    before_the_call();
    while_pending();
    others_work();
    MPI_Finalize();
    return failures > 0;
}
