/* SPDX-License-Identifier: MIT */
/* Makes communicators until the MPI has no more, at most as many as its first argument says, and
 * prints their number. "use": first makes and frees others, in which there is all that a
 * communicator of nbcshim may hold; "fail": first fails to make some. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
#pragma weak MPI_Barrier_init /* the MPI may lack it */
#pragma weak MPI_Ibarrier

static int rank, size;

/* More persistent operations than a range of few tags has. */
static void persistent(MPI_Comm comm)
{
    enum { N = 1000 };
    static MPI_Request request[N];
    for (int i = 0; i < N; i++)
        MPI_Barrier_init(comm, MPI_INFO_NULL, &request[i]);
    MPI_Startall(N, request);
    MPI_Waitall(N, request, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm); /* before its requests */
    for (int i = 0; i < N; i++)
        MPI_Request_free(&request[i]);
}

static void make_and_free(int i)
{
    MPI_Comm comm, part, next;
    MPI_Request request, made = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Ibarrier(comm, &request);
    MPI_Comm_split(comm, i % size == rank ? MPI_UNDEFINED : 0, 0, &part);
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    MPI_Comm_split(comm, rank, 0, &part);
    MPI_Comm_dup(part, &next);
    MPI_Comm_free(&part);
    MPI_Comm_free(&next);
#if MPI_VERSION >= 3
    MPI_Comm_idup(comm, &next, &made);
#else
    MPI_Comm_dup(comm, &next);
#endif
    MPI_Wait(&made, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (i % 20 == 0)
        persistent(next);
    else
        MPI_Comm_free(&next);
}

static void fail_to_make(void)
{
    MPI_Comm comm;
    int most = size + 1, periodic = 0;
    if (MPI_Cart_create(MPI_COMM_WORLD, 1, &most, &periodic, 0, &comm) == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    int n = 0;
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (MPI_Ibarrier) { /* an MPI-2.2 lacks it, too */
        MPI_Ibarrier(comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; argc > 2 && i < 300; i++) {
        if (strcmp(argv[2], "use") == 0)
            make_and_free(i);
        else
            fail_to_make();
    }
    while (argc > 1 && n < atoi(argv[1])) {
        int error = n % 2 ? MPI_Comm_dup(MPI_COMM_WORLD, &comm)
                          : MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
        if (error)
            break;
        n++;
    }
    if (rank == 0)
        printf("%d communicators\n", n);
    MPI_Finalize();
    return 0;
}
