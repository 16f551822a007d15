/* SPDX-License-Identifier: MIT */
/* Repeats a nonblocking collective on 2 ranks, for bench/budget, which counts the instructions of
 * rank 0: `budget COLLECTIVE MODE CALLS FIFO FIFO`.
 *
 *   COLLECTIVE  allreduce, bcast (from rank 1), barrier or allgather
 *   MODE        again: equal calls of 8 bytes; first: each call has another count, from 2 ints on
 *   CALLS       calls that are counted
 *
 * The ranks take turns by the two FIFOs, so that MPI has no other message: rank 0 makes the call,
 * then rank 1 makes it and tests, then rank 0 waits. So the wait finds the messages and does not
 * spin. */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM = 10, MOST = 1000 };

static int rank, to_other, from_other;
static int in[WARM + MOST + 2], out[2 * (WARM + MOST + 2)];
static MPI_Comm comm;
static MPI_Request request;

static void tell(void)
{
    if (write(to_other, "x", 1) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void listen_to(void)
{
    char byte;
    if (read(from_other, &byte, 1) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void start_allreduce(int count)
{
    MPI_Iallreduce(in, out, count, MPI_INT, MPI_SUM, comm, &request);
}

static void start_bcast(int count)
{
    MPI_Ibcast(in, count, MPI_INT, 1, comm, &request);
}

static void start_barrier(int count)
{
    (void)count;
    MPI_Ibarrier(comm, &request);
}

static void start_allgather(int count)
{
    MPI_Iallgather(in, count, MPI_INT, out, count, MPI_INT, comm, &request);
}

static const struct coll {
    const char *name;
    void (*start)(int count);
} colls[] = {{"allreduce", start_allreduce},
             {"bcast", start_bcast},
             {"barrier", start_barrier},
             {"allgather", start_allgather},
             {NULL, NULL}};

static void (*start)(int count);

static void wait_for_it(void)
{
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* What callgrind counts. */
__attribute__((noinline)) void counted_start(int count);
void counted_start(int count)
{
    start(count);
}

__attribute__((noinline)) void counted_wait(void);
void counted_wait(void)
{
    wait_for_it();
}

static void other_rank(int count)
{
    listen_to();
    start(count);
    for (int i = 0, done = 0; i < 1000 && !done; i++)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    tell();
    wait_for_it();
}

static void this_rank(int count, int counted)
{
    (counted ? counted_start : start)(count);
    tell();
    listen_to();
    (counted ? counted_wait : wait_for_it)();
}

/* Each rank waits in open until the other one has opened the same FIFO. */
static void open_fifos(char **names)
{
    if (rank == 0) {
        to_other = open(names[0], O_WRONLY);
        from_other = open(names[1], O_RDONLY);
    } else {
        from_other = open(names[0], O_RDONLY);
        to_other = open(names[1], O_WRONLY);
    }
}

static void run(int first, int calls)
{
    for (int i = 0; i < WARM + calls; i++) {
        int count = first ? 2 + i : 2;
        if (rank == 0)
            this_rank(count, i >= WARM);
        else
            other_rank(count);
    }
}

static void (*find(const char *name))(int)
{
    const struct coll *c = colls;
    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->start;
}

int main(int argc, char **argv)
{
    int calls = argc == 6 ? atoi(argv[3]) : 0;
    if (calls < 1 || calls > MOST || !(start = find(argv[1])))
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    open_fifos(argv + 4);
    run(strcmp(argv[2], "first") == 0, calls);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
