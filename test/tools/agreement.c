/* SPDX-License-Identifier: MIT */
/* Collectives right after MPI_Init; then no message may be there that the program has not sent.
 * With SILENT=sleep or SILENT=send in the environment, which is set on a rank without nbcshim: the
 * rank sleeps, or sends a message to each rank and sleeps. -DPLAIN: no nonblocking collective.
 * -DSESSION: a session makes a communicator first; with an argument, MPI_Init follows. -DSPAWN:
 * with an argument, the program starts that as a second job and calls a collective with it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void be_silent(const char *how)
{
    int size;
    MPI_Request request;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int rank = 0; rank < size && strcmp(how, "send") == 0; rank++)
        MPI_Isend(&size, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
    sleep(60);
}

static int sum_of_ranks(MPI_Comm comm)
{
    int rank, sum = -1;
    MPI_Comm_rank(comm, &rank);
#ifdef PLAIN
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
#else
    MPI_Request request;
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    return sum;
}

static int check_sum(MPI_Comm comm)
{
    int rank, size, sum = sum_of_ranks(comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (sum == size * (size - 1) / 2)
        return 0;
    printf("rank %d: the sum is %d\n", rank, sum);
    return 1;
}

static int check_strays(void)
{
    int is_there = 0;
    for (int i = 0; i < 1000 && !is_there; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    if (is_there)
        printf("a message is there\n");
    return is_there;
}

static int run_world(void)
{
    int failures;
    MPI_Init(NULL, NULL);
    if (getenv("SILENT"))
        be_silent(getenv("SILENT"));
    failures = check_sum(MPI_COMM_WORLD) + check_strays();
    MPI_Finalize();
    return failures;
}

#ifdef SESSION
int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Group world;
    MPI_Comm comm;
    int failures;
    (void)argv;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Comm_create_from_group(world, "agreement", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&world);
    failures = check_sum(comm);
    if (argc > 1)
        failures += run_world();
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return failures != 0;
}
#elif defined SPAWN
/* Each side gets the sum of the other's numbers: 1 from the parents, 10 from the child. */
static int check_other_job(MPI_Comm other, int mine, int expected)
{
    int sum = -1;
    MPI_Request request;
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&other);
    return sum != expected;
}

int main(int argc, char **argv)
{
    MPI_Comm other;
    int failures;
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&other);
    if (argc > 1) {
        MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                       MPI_ERRCODES_IGNORE);
        failures = check_other_job(other, 1, 10);
    } else {
        failures = check_other_job(other, 10, 1);
    }
    MPI_Finalize();
    return failures;
}
#else
int main(void)
{
    return run_world() != 0;
}
#endif
