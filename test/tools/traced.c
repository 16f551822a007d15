/* SPDX-License-Identifier: MIT */
/* A program for tracer.c to watch: every rank makes the same calls, of each function another
 * number where that can be, so that no two can be mistaken for each other. */
#include <nbcshim.h>

#include <stdio.h>
#ifndef LINKED /* with nbcshim; otherwise preloading brings it */
#pragma weak MPI_Allreduce_init
#pragma weak MPI_Iallreduce /* an MPI-2.2 lacks these, too */
#pragma weak MPI_Ibarrier
#endif

static int rank, size, bad;

static void check(int value, const char *what)
{
    int right = size * (size + 1) / 2;
    if (value != right) {
        fprintf(stderr, "rank %d: %s gives %d, not %d\n", rank, what, value, right);
        bad = 1;
    }
}

static void nonblocking(MPI_Comm comm)
{
    MPI_Request request[3];
    int one = rank + 1, sum[3];
    for (int i = 0; i < 3; i++)
        MPI_Iallreduce(&one, &sum[i], 1, MPI_INT, MPI_SUM, comm, &request[i]);
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++)
        check(sum[i], "MPI_Iallreduce");
    MPI_Ibarrier(comm, &request[0]);
    MPI_Ibarrier(comm, &request[1]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Wait(&request[1], MPI_STATUS_IGNORE);
}

static void persistent(MPI_Comm comm)
{
    MPI_Request request;
    int one, sum;
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < 4; i++) {
        one = rank + 1;
        sum = 0;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(sum, "MPI_Allreduce_init");
    }
    MPI_Request_free(&request);
}

/* Blocking calls while a collective is pending, which nbcshim carries out by others. */
static void blocking(MPI_Comm comm)
{
    MPI_Request pending, request;
    int one = rank + 1, sum, token = -1;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &pending);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 0, comm, &request);
    MPI_Recv(&token, 1, MPI_INT, (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    check(sum, "MPI_Iallreduce with others");
    if (token != (rank + size - 1) % size)
        bad = 1;
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    nonblocking(comm);
    persistent(comm);
    blocking(comm);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return bad;
}
