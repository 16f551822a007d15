/* Completion of a collective and of a message that comes later, in arrays of every length that have
 * inactive requests too, on an MPI that may report those to MPI_PROC_NULL as complete in each call
 * (null.c). 2 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONGEST = 70, INACTIVE = 2, SEVEN = 7, TAG = 5 };

static int failures;

static void check(int ok, const char *what, int n)
{
    if (ok)
        return;
    failures++;
    printf("%s, %d requests\n", what, n);
}

/* The peer sends when this rank is in the call. */
static void send_late(int sum)
{
    int seven = SEVEN, one = 1;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    usleep(20000);
    MPI_Send(&seven, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
}

/* Sets all to MPI_REQUEST_NULL but the first `inactive` and the last two entries. */
static void make(int n, int inactive, MPI_Request *requests, int *sum, int *message)
{
    static int one = 1;
    *sum = 0;
    *message = -1;
    for (int i = 0; i < n; i++)
        requests[i] = MPI_REQUEST_NULL;
    if (inactive > 0)
        MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    if (inactive > 1)
        MPI_Send_init(NULL, 0, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Iallreduce(&one, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[n - 2]);
    MPI_Irecv(message, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[n - 1]);
}

static void end(const char *what, int n, int inactive, MPI_Request *requests, int sum, int message)
{
    check(sum == 2 && message == SEVEN, what, n);
    check(requests[n - 1] == MPI_REQUEST_NULL && requests[n - 2] == MPI_REQUEST_NULL,
          "an active request is left", n);
    for (int i = 0; i < inactive; i++) {
        check(requests[i] != MPI_REQUEST_NULL, "an inactive request is gone", n);
        MPI_Request_free(&requests[i]);
    }
}

/* Reported requests that are inactive count for nothing. */
static int count_active(int n, int inactive, int count, const int *indices)
{
    int active = 0;
    for (int i = 0; count != MPI_UNDEFINED && i < count; i++) {
        check(indices[i] >= 0 && indices[i] < n, "an index that is none", n);
        active += indices[i] >= inactive;
    }
    return active;
}

static void with_waitall(int n, int inactive, MPI_Request *requests)
{
    static MPI_Status statuses[LONGEST];
    int sum, message;
    make(n, inactive, requests, &sum, &message);
    MPI_Waitall(n, requests, n % 2 ? MPI_STATUSES_IGNORE : statuses);
    if (n % 2 == 0)
        check(statuses[n - 1].MPI_SOURCE == 1 && statuses[n - 1].MPI_TAG == TAG, "a status", n);
    end("MPI_Waitall", n, inactive, requests, sum, message);
}

static void with_testall(int n, int inactive, MPI_Request *requests)
{
    int sum, message, flag = 0;
    make(n, inactive, requests, &sum, &message);
    while (!flag)
        MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
    end("MPI_Testall", n, inactive, requests, sum, message);
}

static void with_some(int n, int inactive, MPI_Request *requests)
{
    int sum, message, count, active = 0, indices[LONGEST];
    make(n, inactive, requests, &sum, &message);
    while (active < 2) {
        (n % 2 ? MPI_Waitsome : MPI_Testsome)(n, requests, &count, indices, MPI_STATUSES_IGNORE);
        check(count != MPI_UNDEFINED, "nothing is active for MPI_Waitsome", n);
        active += count_active(n, inactive, count, indices);
    }
    end("MPI_Waitsome", n, inactive, requests, sum, message);
}

static void with_any(int n, int inactive, MPI_Request *requests)
{
    int sum, message, index, active = 0;
    make(n, inactive, requests, &sum, &message);
    while (active < 2) {
        MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
        check(index != MPI_UNDEFINED, "nothing is active for MPI_Waitany", n);
        active += count_active(n, inactive, 1, &index);
    }
    end("MPI_Waitany", n, inactive, requests, sum, message);
}

/* What the standard says of arrays without an active request, with one persistent request of
 * nbcshim that is inactive: the MPI is asked, and must not take the handle of nbcshim for a
 * complete one. */
static void without_active(void)
{
    int one = 1, sum, index = 0, count = 0, flag = 0, indices[1];
    MPI_Status status;
    MPI_Request request;
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Waitany(1, &request, &index, &status);
    check(index == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE, "Waitany, inactive", 1);
    MPI_Testany(1, &request, &index, &flag, &status);
    check(flag && index == MPI_UNDEFINED, "Testany, inactive", 1);
    MPI_Testsome(1, &request, &count, indices, &status);
    check(count == MPI_UNDEFINED, "Testsome, inactive", 1);
    MPI_Waitsome(1, &request, &count, indices, &status);
    check(count == MPI_UNDEFINED, "Waitsome, inactive", 1);
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    typedef void way(int n, int inactive, MPI_Request *requests);
    static way *const ways[] = {with_waitall, with_testall, with_some, with_any};
    static const int lengths[] = {4, 5, 17, 40, LONGEST};
    static MPI_Request requests[LONGEST];
    int rank;
    MPI_Init(&argc, &argv);
    alarm(50);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    without_active();
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (int inactive = 0; inactive <= INACTIVE; inactive++) {
                if (rank == 0)
                    ways[w](lengths[l], inactive, requests);
                else
                    send_late(0);
            }
    MPI_Finalize();
    return failures > 0;
}
