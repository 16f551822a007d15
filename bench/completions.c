/* SPDX-License-Identifier: MIT */
/* Completes an array of requests one after the other: broadcasts and messages by turns, at random
 * places of the array. `completions CALL ORDER NUMBER`, on 2 ranks:
 *
 *   CALL    waitany, testany, waitsome or testsome
 *   ORDER   all: all are complete before the first call
 *           one: the next one completes when the last one has been reported
 *           flow: they complete meanwhile, as fast as the other rank can
 *   NUMBER  of requests
 *
 * Rank 0 prints the microseconds per completion; callgrind counts its instructions in counted_calls
 * (see bench/completions). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 1, ASK, DONE };

static MPI_Comm comm; /* of the broadcasts */
static MPI_Request *requests;
static MPI_Status *statuses;
static int *indices, *place, *value;
static int n, left;
static double seconds;

static int compare(const char *word, const char *with)
{
    return strcmp(word, with) == 0;
}

/* Reports at least one completion, unless it tests. Returns the number. */
typedef int complete(void);

static int by_waitany(void)
{
    int index;
    MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
    return 1;
}

static int by_testany(void)
{
    int index, flag;
    MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static int by_waitsome(void)
{
    int count;
    MPI_Waitsome(n, requests, &count, indices, statuses);
    return count;
}

static int by_testsome(void)
{
    int count;
    MPI_Testsome(n, requests, &count, indices, statuses);
    return count;
}

static complete *call;

/* Completes as many requests; what callgrind counts. */
__attribute__((noinline)) void counted_calls(int number);
void counted_calls(int number)
{
    double start = MPI_Wtime();
    while (number > 0) {
        int count = call();
        number -= count;
        left -= count;
    }
    seconds += MPI_Wtime() - start;
}

/* The places of the array in random order, the same in each run. */
static void shuffle(void)
{
    unsigned random = 1;
    for (int i = 0; i < n; i++)
        place[i] = i;
    for (int i = n - 1; i > 0; i--) {
        random = random * 1103515245u + 12345;
        int j = (int)((random >> 8) % (unsigned)(i + 1)), kept = place[i];
        place[i] = place[j];
        place[j] = kept;
    }
}

static void start_receiver(void)
{
    for (int i = 0; i < n; i++) {
        MPI_Request *r = &requests[place[i]];
        if (i % 2)
            MPI_Irecv(&value[i], 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, r);
        else
            MPI_Ibcast(&value[i], 1, MPI_INT, 1, comm, r);
    }
}

static void send_one(int i)
{
    MPI_Request r;
    if (i % 2)
        MPI_Isend(&i, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, &r);
    else
        MPI_Ibcast(&i, 1, MPI_INT, 1, comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void wait_for_all(void)
{
    for (int i = 0, flag = 0; i < n; i++, flag = 0)
        while (!flag)
            MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
}

static void one_by_one(int rank)
{
    for (int i = 0; i < n; i++) {
        if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_INT, 0, ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            send_one(i);
            MPI_Send(NULL, 0, MPI_INT, 0, DONE, MPI_COMM_WORLD);
        } else {
            MPI_Send(NULL, 0, MPI_INT, 1, ASK, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_INT, 1, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            counted_calls(1);
        }
    }
}

static void all_at_once(int rank, int ready)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        for (int i = 0; i < n; i++)
            send_one(i);
    if (rank == 0 && ready)
        wait_for_all();
    while (rank == 0 && left > 0)
        counted_calls(left);
}

static int prepare(int argc, char **argv)
{
    if (argc != 4)
        return 0;
    call = compare(argv[1], "waitany")    ? by_waitany
           : compare(argv[1], "testany")  ? by_testany
           : compare(argv[1], "waitsome") ? by_waitsome
                                          : by_testsome;
    n = left = atoi(argv[3]);
    requests = calloc(n, sizeof *requests);
    statuses = calloc(n, sizeof *statuses);
    indices = calloc(n, sizeof *indices);
    place = calloc(n, sizeof *place);
    value = calloc(n, sizeof *value);
    return requests && statuses && indices && place && value;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (!prepare(argc, argv))
        return 2;
    shuffle();
    if (rank == 0)
        start_receiver();
    if (compare(argv[2], "one"))
        one_by_one(rank);
    else
        all_at_once(rank, compare(argv[2], "all"));
    for (int i = 0; i < n && rank == 0; i++)
        if (value[i] != i || requests[i] != MPI_REQUEST_NULL)
            MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0)
        printf("%s %s %d %.3f\n", argv[1], argv[2], n, seconds / n * 1e6);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
