/* SPDX-License-Identifier: MIT */
/* Jobs of four ranks that hang; each rank gets a SIGUSR1, and the job ends after some seconds.
 * "bcast": rank 3 calls MPI_Ibcast, of which it is the root, where the others call MPI_Iallreduce,
 * and then MPI_Finalize. "init": rank 3 does not come to MPI_Init. "calls": rank 0 waits in
 * MPI_Recv, rank 1 computes, rank 2 waits in MPI_Probe, rank 3 in MPI_Wait for a message.
 * "blocking": the same after blocking collectives. "threads": all wait in MPI_Recv, rank 0 with
 * MPI_THREAD_SERIALIZED, rank 1 beside a thread that gets the signal. "halves": ranks 0 and 1 wait,
 * each in another operation on another communicator, which has a name, for ranks 2 and 3; rank 2
 * has called one before. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BEFORE = 6 }; /* collectives that match */

static void end(int number)
{
    (void)number;
    _exit(0);
}

/* The signal comes in so many seconds; two later the job ends. */
static void signal_in(int seconds)
{
    pid_t parent = getpid();
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds + 2);
    if (fork() != 0)
        return;
    sleep(seconds);
    kill(parent, SIGUSR1);
    _exit(0);
}

static void call_the_wrong_one(int rank)
{
    int one = 1, sum;
    MPI_Request request;
    for (int i = 0; i < BEFORE; i++) {
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 3)
        MPI_Ibcast(&one, 1, MPI_INT, 3, MPI_COMM_WORLD, &request);
    else
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void wait_in_calls(int rank, int before)
{
    int number;
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < before; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &status);
    while (rank == 1)
        usleep(1000);
    if (rank == 2)
        MPI_Probe(1, 5, MPI_COMM_WORLD, &status);
    MPI_Irecv(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
}

static void *idle(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

static void wait_beside_thread(int rank)
{
    int number;
    pthread_t thread;
    sigset_t it;
    sigemptyset(&it);
    sigaddset(&it, SIGUSR1);
    if (rank == 1) {
        pthread_create(&thread, NULL, idle, NULL);
        pthread_sigmask(SIG_BLOCK, &it, NULL);
    }
    MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wait_in_halves(int rank)
{
    int one = 1;
    MPI_Comm half;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Comm_set_name(half, "replaced");
    MPI_Comm_set_name(half, rank % 2 ? "odd: \"1\"" : "even");
    if (rank % 2 == 0) {
        MPI_Ibarrier(half, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    while (rank > 1)
        usleep(1000);
    if (rank == 0)
        MPI_Ibarrier(half, &request);
    else
        MPI_Ibcast(&one, 1, MPI_INT, 1, half, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK"}, *mine = "";
    int rank, level, init = strcmp(argv[1], "init") == 0;
    for (int i = 0; i < 2; i++)
        mine = getenv(names[i]) ? getenv(names[i]) : mine;
    if (init && atoi(mine) == 3) {
        sleep(4);
        return 0;
    }
    if (init)
        signal_in(1);
    if (strcmp(argv[1], "threads") == 0)
        MPI_Init_thread(&argc, &argv, atoi(mine) == 0 ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE,
                        &level);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!init)
        signal_in(strcmp(argv[1], "bcast") == 0 ? 3 : 1);
    if (strcmp(argv[1], "calls") == 0 || strcmp(argv[1], "blocking") == 0)
        wait_in_calls(rank, strcmp(argv[1], "blocking") == 0 ? BEFORE : 0);
    else if (strcmp(argv[1], "threads") == 0)
        wait_beside_thread(rank);
    else if (strcmp(argv[1], "halves") == 0)
        wait_in_halves(rank);
    else
        call_the_wrong_one(rank);
    MPI_Finalize();
    return 0;
}
