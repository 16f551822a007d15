/* SPDX-License-Identifier: MIT */
/* Sparse exchange: every rank sends messages to a few other ranks, and no rank knows which ranks
 * will send to it.
 *
 *     mpicc -O2 nbx.c -o nbx
 *     mpiexec -n 4 ./nbx [MESSAGES [STEPS]]
 *
 * The blocking version first exchanges the numbers of messages with MPI_Alltoall over all ranks.
 * The NBX algorithm (Hoefler, Siebert, Lumsdaine: Scalable communication protocols for dynamic
 * sparse data exchange, 2010) needs no such table: a rank sends with MPI_Issend, which completes
 * when the message is matched, and receives every message that MPI_Iprobe finds. When its own sends
 * are complete, the rank starts an MPI_Ibarrier and continues to receive. When the barrier
 * completes, every message has arrived.
 *
 * Exit status: 0 if both versions received the same messages, and all that were sent. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG = 7, LENGTH = 16, MOST = 64 };

struct exchange {
    int rank, ranks, messages;
    int to[MOST];
    long data[MOST][LENGTH];
    long received, sum; /* number of messages; sum of the numbers in them */
};

/* Chooses a new set of receivers for each step, the same for both versions. */
static void choose(struct exchange *x, int step)
{
    uint64_t state = (uint64_t)x->rank * 1000003u + (uint64_t)step * 7919u + 1;
    for (int i = 0; i < x->messages; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x->to[i] = (int)((state >> 33) % (uint64_t)x->ranks);
        for (int k = 0; k < LENGTH; k++)
            x->data[i][k] = x->rank + i * k + step;
    }
}

static void receive(struct exchange *x, int source)
{
    long data[LENGTH];
    MPI_Recv(data, LENGTH, MPI_LONG, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    x->received++;
    for (int k = 0; k < LENGTH; k++)
        x->sum += data[k];
}

static void send_all(struct exchange *x, MPI_Request *requests)
{
    for (int i = 0; i < x->messages; i++)
        MPI_Issend(x->data[i], LENGTH, MPI_LONG, x->to[i], TAG, MPI_COMM_WORLD, &requests[i]);
}

static void nbx(struct exchange *x)
{
    MPI_Request sends[MOST], barrier = MPI_REQUEST_NULL;
    int entered = 0, done = 0;
    send_all(x, sends);
    while (!done) {
        int flag;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, &status);
        if (flag)
            receive(x, status.MPI_SOURCE);
        if (entered) {
            MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Testall(x->messages, sends, &entered, MPI_STATUSES_IGNORE);
        if (entered)
            MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    }
    /* The next exchange must not begin on one rank while another still looks for messages. */
    MPI_Barrier(MPI_COMM_WORLD);
}

static void table(struct exchange *x)
{
    int *out = calloc((size_t)x->ranks, sizeof *out), *in = calloc((size_t)x->ranks, sizeof *in);
    MPI_Request sends[MOST];
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < x->messages; i++)
        out[x->to[i]]++;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    send_all(x, sends);
    for (int source = 0; source < x->ranks; source++)
        for (int i = 0; i < in[source]; i++)
            receive(x, source);
    MPI_Waitall(x->messages, sends, MPI_STATUSES_IGNORE);
    free(out);
    free(in);
}

static double timed(struct exchange *x, void (*way)(struct exchange *), int steps)
{
    x->received = x->sum = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        choose(x, step);
        way(x);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / steps;
}

int main(int argc, char **argv)
{
    static struct exchange x;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &x.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &x.ranks);
    x.messages = argc > 1 ? atoi(argv[1]) : 3;
    int steps = argc > 2 ? atoi(argv[2]) : 200;
    if (x.messages < 0 || x.messages > MOST || steps < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    double blocking = timed(&x, table, steps);
    long expected = x.sum, total;
    double sparse = timed(&x, nbx, steps);
    int wrong = x.sum != expected, any;
    MPI_Allreduce(&x.received, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong |= total != (long)x.messages * x.ranks * steps;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (x.rank == 0)
        printf("nbx: %ld messages, %s\nblocking %.3f us, nonblocking %.3f us, gain %.0f %%\n",
               total, any ? "WRONG" : "the same both ways", blocking * 1e6, sparse * 1e6,
               100 * (1 - sparse / blocking));
    MPI_Finalize();
    return any;
}
