/* SPDX-License-Identifier: MIT */
/* How real programs use nonblocking collectives, each checked by its result. */
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often, or how long. */
static int times(void)
{
    return test_scale(test_oversubscribed() ? 1 : 5, 100);
}

/* --- NBX: a sparse exchange where nobody knows who will send to him ----------------------------
 * T. Hoefler, C. Siebert, A. Lumsdaine: Scalable communication protocols for dynamic sparse data
 * exchange (PPoPP 2010). */

static void exchange(int round, struct rng *own)
{
    int n = rng_below(own, 6), tag = round % 2, received = 0, sum = 0, expected[2] = {0, 0};
    int *counts = calloc((size_t)test_size * 2, sizeof *counts), *theirs;
    int *payload = test_alloc((size_t)n * sizeof *payload);
    MPI_Request *sends = test_alloc((size_t)n * sizeof(MPI_Request)), barrier = MPI_REQUEST_NULL;
    bool in_barrier = false;
    int done = 0;

    test_place("nbx, round %d", round);
    theirs = test_alloc((size_t)test_size * 2 * sizeof *theirs);
    for (int i = 0; i < n; i++) {
        int to = rng_below(own, test_size);
        payload[i] = 1 + rng_below(own, 1000);
        counts[2 * to]++;
        counts[2 * to + 1] += payload[i];
        MPI_Issend(&payload[i], 1, MPI_INT, to, tag, MPI_COMM_WORLD, &sends[i]);
    }
    while (!done) {
        MPI_Status status;
        int flag, value;
        MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, &status);
        if (flag) {
            MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            received++;
            sum += value;
        }
        if (in_barrier) {
            MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Testall(n, sends, &flag, MPI_STATUSES_IGNORE);
        if (flag) {
            MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
            in_barrier = true;
        }
    }
    MPI_Alltoall(counts, 2, MPI_INT, theirs, 2, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < test_size; i++) {
        expected[0] += theirs[2 * i];
        expected[1] += theirs[2 * i + 1];
    }
    EXPECT_INT(received, expected[0]);
    EXPECT_INT(sum, expected[1]);
    free(counts);
    free(theirs);
    free(payload);
    free(sends);
}

TEST(nbx)
{
    struct rng own = rng_private(1);
    for (int i = 0; i < 10 * times(); i++)
        exchange(i, &own);
}

/* --- a pipelined Krylov method ----------------------------------------------------------------
 * The reduction of one iteration is in flight while the next one exchanges halos and sums up over
 * rows. What is iterated is a vector of whole numbers under the 1-D Laplacian, so that the numbers
 * must be exact. */

enum { LOCAL = 50 };

static long element(int k, long i)
{
    return (i * 7 + k * 13) % 31 - 15;
}

TEST(krylov)
{
    const int iterations = 20 * times();
    long x[LOCAL + 2], n = (long)LOCAL * test_size, first = (long)LOCAL * test_rank;
    int left = test_rank > 0 ? test_rank - 1 : MPI_PROC_NULL;
    int right = test_rank < test_size - 1 ? test_rank + 1 : MPI_PROC_NULL;
    MPI_Comm row;
    int row_size;

    MPI_Comm_split(MPI_COMM_WORLD, test_rank / 2, test_rank, &row);
    MPI_Comm_size(row, &row_size);
    for (int k = 0; k < iterations; k++) {
        MPI_Request reduction, halo[4];
        long dot[2] = {0, 0}, all[2], row_sum = 0, mine, exact[2] = {0, 0};
        test_place("Krylov, iteration %d", k);
        for (int i = 0; i < LOCAL; i++) {
            x[i + 1] = element(k, first + i);
            dot[0] += x[i + 1] * x[i + 1];
            dot[1] += x[i + 1];
        }
        MPI_Iallreduce(dot, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &reduction);
        x[0] = x[LOCAL + 1] = 0;
        MPI_Irecv(&x[0], 1, MPI_LONG, left, 1, MPI_COMM_WORLD, &halo[0]);
        MPI_Irecv(&x[LOCAL + 1], 1, MPI_LONG, right, 1, MPI_COMM_WORLD, &halo[1]);
        MPI_Isend(&x[1], 1, MPI_LONG, left, 1, MPI_COMM_WORLD, &halo[2]);
        MPI_Isend(&x[LOCAL], 1, MPI_LONG, right, 1, MPI_COMM_WORLD, &halo[3]);
        MPI_Waitall(4, halo, MPI_STATUSES_IGNORE);
        mine = test_rank + k;
        MPI_Allreduce(&mine, &row_sum, 1, MPI_LONG, MPI_SUM, row);
        for (int i = 1; i <= LOCAL; i++) {
            long at = first + i - 1, l = at > 0 ? element(k, at - 1) : 0;
            long r = at < n - 1 ? element(k, at + 1) : 0;
            EXPECT_INT(2 * x[i] - x[i - 1] - x[i + 1], 2 * element(k, at) - l - r,
                       "Krylov: halo at %ld in iteration %d", at, k);
        }
        MPI_Wait(&reduction, MPI_STATUS_IGNORE);
        for (long i = 0; i < n; i++) {
            exact[0] += element(k, i) * element(k, i);
            exact[1] += element(k, i);
        }
        EXPECT_INT(all[0], exact[0]);
        EXPECT_INT(all[1], exact[1]);
        EXPECT_INT(row_sum, (long)row_size * (test_rank / 2 * 2 + k) + (row_size == 2),
                   "Krylov: iteration %d", k);
    }
    MPI_Comm_free(&row);
}

/* --- double buffering --------------------------------------------------------------------------
 * The next block is on its way while this one is worked on. */

static void stream(int blocks, int n)
{
    int *buffer[2] = {test_scratch((size_t)n * sizeof(int)), test_scratch((size_t)n * sizeof(int))};
    MPI_Request request[2];
    int root = test_size - 1;

    for (int b = 0; b <= blocks; b++) {
        test_place("double buffering, block %d of %d", b, blocks);
        if (b < blocks) {
            for (int i = 0; i < n; i++)
                buffer[b % 2][i] = test_rank == root ? b * 1000003 + i : -1;
            MPI_Ibcast(buffer[b % 2], n, MPI_INT, root, MPI_COMM_WORLD, &request[b % 2]);
        }
        if (b > 0) {
            int wrong = 0, last = b - 1;
            MPI_Wait(&request[last % 2], MPI_STATUS_IGNORE);
            for (int i = 0; i < n; i++)
                wrong += buffer[last % 2][i] != last * 1000003 + i;
            EXPECT_INT(wrong, 0, "double buffering: elements of block %d", last);
        }
    }
}

TEST(double_buffered)
{
    stream(20 * times(), 10);
    stream(10 * times(), 30000);
}

/* --- a distributed transpose, as in an FFT -----------------------------------------------------
 * Panel by panel: one is computed while the one before is being exchanged, and the one before that
 * is unpacked. */

enum { SIDE = 24, PANELS = 6 };

static double cell(int panel, int from, int to, int i)
{
    return panel * 1e6 + from * 1e4 + to * 1e2 + i;
}

TEST(transpose)
{
    const int rounds = 5 * times();
    int block = SIDE, n = block * test_size;
    double *in = test_scratch((size_t)n * PANELS * sizeof *in);
    double *out = test_scratch((size_t)n * PANELS * sizeof *out);
    MPI_Request request[PANELS];

    for (int round = 0; round < rounds; round++) {
        int wrong = 0;
        test_place("transpose, round %d", round);
        memset(out, 0, (size_t)n * PANELS * sizeof *out);
        for (int p = 0; p <= PANELS; p++) {
            for (int i = 0; i < n && p < PANELS; i++)
                in[p * n + i] = cell(p + round, test_rank, i / block, i % block);
            if (p < PANELS)
                MPI_Ialltoall(in + p * n, block, MPI_DOUBLE, out + p * n, block, MPI_DOUBLE,
                              MPI_COMM_WORLD, &request[p]);
            if (p == 0)
                continue;
            MPI_Wait(&request[p - 1], MPI_STATUS_IGNORE);
            for (int i = 0; i < n; i++)
                wrong +=
                    out[(p - 1) * n + i] != cell(p - 1 + round, i / block, test_rank, i % block);
        }
        EXPECT_INT(wrong, 0, "transpose");
    }
}
