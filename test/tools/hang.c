/* SPDX-License-Identifier: MIT */
/* The last of four ranks comes three seconds late to an MPI_Iallreduce. Meanwhile rank 0 waits for
 * it, rank 1 computes without calling MPI, and rank 2 is blocked in a barrier of the MPI's own
 * (NBCSHIM_BLOCKING=native). "signal": each rank gets a SIGUSR1 after a second;
 * "test": so it does, and rank 0 waits by MPI_Test. "long": the vector is long. "first": all ranks
 * but the first come late.
 * "kinds": the call of rank 0 is nonblocking and that of the others blocking, so none completes
 * until each makes the other call as well; "signal kinds": with a SIGUSR1.
 * "fails": instead of all that, the last rank comes late to an MPI_Igather to rank 0, whose own
 * block does not fit. "operator": rank 0 gets a SIGUSR1 in its reduction operator, which nbcshim
 * calls while it changes its state. "signal rare": the others have operations of many kinds pending
 * when they get the signal. -DSESSION: without MPI_Init, on a communicator of a session. */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The MPI may lack it. */
int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
#pragma weak MPI_Barrier_init

enum { LATE = 3, LONG = 65536 };

static int ones[LONG], sums[LONG];

static int started[2]; /* a pipe */

/* A second after signal_starts, however long MPI_Init takes. */
static void signal_soon(void)
{
    char byte;
    pid_t parent = getpid();
    if (pipe(started) || fork() != 0)
        return;
    close(started[1]);
    if (read(started[0], &byte, 1) == 1) {
        sleep(1);
        kill(parent, SIGUSR1);
    }
    _exit(0);
}

static void signal_starts(void)
{
    if (write(started[1], "", 1) != 1)
        fprintf(stderr, "no signal\n");
}

static void compute_until(double end)
{
    while (MPI_Wtime() < end)
        usleep(1000);
}

#ifdef SESSION
static MPI_Session session;

static MPI_Comm begin(void)
{
    MPI_Group world;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Comm_create_from_group(world, "hang", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&world);
    return comm;
}

static void end(MPI_Comm comm)
{
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}
#else
static MPI_Comm begin(void)
{
    MPI_Init(NULL, NULL);
    return MPI_COMM_WORLD;
}

static void end(MPI_Comm comm)
{
    (void)comm;
    MPI_Finalize();
}
#endif

/* The ranks that compute or are blocked report the call for which they wait. */
static void call_both_kinds(MPI_Comm comm, int rank)
{
    int one = 1, sum;
    MPI_Request request;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm); /* the next has a plan */
    if (rank > 0)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    if (rank == 0) {
        compute_until(MPI_Wtime() + LATE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void call_that_fails(MPI_Comm comm, int rank, int size)
{
    int block[2] = {0}, class = MPI_SUCCESS;
    MPI_Request request;
    if (rank == size - 1)
        compute_until(MPI_Wtime() + LATE / 2.0);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Igather(block, rank ? 1 : 2, MPI_INT, sums, 1, MPI_INT, 0, comm, &request);
    MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
    if (class != (rank ? MPI_SUCCESS : MPI_ERR_TRUNCATE))
        fprintf(stderr, "rank %d: class %d\n", rank, class);
}

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(1);
}

static bool raises;

static void add_and_raise(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    if (raises) {
        say("the operator begins\n");
        raise(SIGUSR1);
        say("the operator ends\n");
    }
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((const int *)in)[i];
}

static void call_operator(MPI_Comm comm, int rank, int size)
{
    int one = 1, sum = 0;
    MPI_Op op;
    MPI_Request request;
    raises = rank == 0;
    MPI_Op_create(add_and_raise, 1, &op);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Op_free(&op);
    if (sum != size)
        fprintf(stderr, "the sum is %d\n", sum);
}

/* More barriers on one communicator than it has tags; a barrier on one that is freed, one between
 * two groups, a persistent one; a duplicate, which needs an MPI-3; a message that is not received.
 */
static void call_rare(MPI_Comm comm, int rank, int size)
{
    enum { MANY = 60, FREED = MANY, BETWEEN, PERSISTENT, MADE, LONG_ONE, ALL };
    static MPI_Request request[ALL];
    MPI_Comm many, freed, half, between;
    MPI_Comm_dup(comm, &many);
    MPI_Comm_dup(comm, &freed);
    MPI_Comm_split(comm, rank < size / 2, 0, &half);
    MPI_Intercomm_create(half, 0, comm, rank < size / 2 ? size / 2 : 0, 1, &between);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request[PERSISTENT]);
    MPI_Barrier(comm);
    signal_starts();
    if (rank == size - 1)
        compute_until(MPI_Wtime() + LATE);
    for (int i = 0; i < MANY; i++)
        MPI_Ibarrier(many, &request[i]);
    MPI_Ibarrier(freed, &request[FREED]);
    MPI_Comm_free(&freed);
    MPI_Ibarrier(between, &request[BETWEEN]);
    MPI_Start(&request[PERSISTENT]);
#if MPI_VERSION >= 3
    MPI_Comm made;
    MPI_Comm_idup(comm, &made, &request[MADE]);
#else
    request[MADE] = MPI_REQUEST_NULL;
#endif
    MPI_Ibcast(ones, LONG, MPI_INT, 0, comm, &request[LONG_ONE]);
    MPI_Waitall(ALL, request, MPI_STATUSES_IGNORE);
    MPI_Request_free(&request[PERSISTENT]);
#if MPI_VERSION >= 3
    MPI_Comm_free(&made);
#endif
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    MPI_Comm_free(&many);
}

int main(int argc, char **argv)
{
    int rank, size, done = 0;
    MPI_Request request;
    bool tests = argc > 1 && strcmp(argv[1], "test") == 0;
    int count = argc > 1 && strcmp(argv[1], "long") == 0 ? LONG : 1;
    bool first = argc > 1 && strcmp(argv[1], "first") == 0;
    bool signals = tests || (argc > 1 && strcmp(argv[1], "signal") == 0);
    if (signals)
        signal_soon();
    MPI_Comm comm = begin();
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (argc > 1 && strcmp(argv[argc - 1], "rare") == 0) {
        call_rare(comm, rank, size);
        end(comm);
        return 0;
    }
    if (signals)
        signal_starts();
    if (argc > 1 && strcmp(argv[argc - 1], "kinds") == 0)
        call_both_kinds(comm, rank);
    if (argc > 1 && strcmp(argv[1], "fails") == 0) {
        call_that_fails(comm, rank, size);
        end(comm);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "operator") == 0) {
        call_operator(comm, rank, size);
        end(comm);
        return 0;
    }
    double late = MPI_Wtime() + (first ? LATE / 2.0 : LATE);
    if (first ? rank > 0 : rank == size - 1)
        compute_until(late);
    for (int i = 0; i < count; i++)
        ones[i] = 1;
    MPI_Iallreduce(ones, sums, count, MPI_INT, MPI_SUM, comm, &request);
    if (rank == 1)
        compute_until(late);
    if (rank == 2)
        MPI_Barrier(comm);
    while (tests && rank == 0 && !done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank != 2)
        MPI_Barrier(comm);
    if (sums[count - 1] != size)
        fprintf(stderr, "rank %d: the sum is %d\n", rank, sums[count - 1]);
    end(comm);
    return sums[count - 1] != size;
}
