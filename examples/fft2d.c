/* SPDX-License-Identifier: MIT */
/* A two-dimensional FFT of a matrix that is distributed over the ranks by rows: it transforms the
 * rows, transposes the matrix with MPI_Ialltoall, and transforms the columns.
 *
 *     mpicc -O2 fft2d.c -lm -o fft2d
 *     mpiexec -n 4 ./fft2d [N [BATCHES]]
 *
 * N (256 by default) is a power of two and a multiple of the number of ranks. The rows of a rank
 * are divided into BATCHES batches (4 by default). During the transfer of one batch the program
 * transforms the next, with an MPI_Test after each row that progresses the transfer.
 *
 * The input is a sum of two plane waves. The result must be their two amplitudes, and zero
 * elsewhere. Exit status: 0 if it is, for MPI_Alltoall and for MPI_Ialltoall. */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

static const double two_pi = 6.28318530717958647692;
static int rank, ranks, n, rows, batches, batch_rows;
static number *matrix, *packed, *arrived, *columns; /* columns: one column in each row */

/* Radix-2 FFT in place, after a bit-reversal permutation. */
static void fft(number *x, int size)
{
    for (int i = 1, j = 0; i < size; i++) {
        int bit = size >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            number t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
    }
    for (int half = 1; half < size; half *= 2) {
        number turn = cexp(-I * two_pi / (2 * half));
        for (int i = 0; i < size; i += 2 * half) {
            number w = 1;
            for (int k = i; k < i + half; k++, w *= turn) {
                number t = w * x[k + half];
                x[k + half] = x[k] - t;
                x[k] += t;
            }
        }
    }
}

static void fill(void)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) {
            int y = rank * rows + i;
            matrix[(size_t)i * n + j] =
                cexp(I * two_pi * (3.0 * y + 5.0 * j) / n) + 2 * cexp(I * two_pi * (1.0 * y) / n);
        }
}

/* Transforms the rows of a batch and packs them by the rank that receives the columns. */
static void transform_batch(int batch, MPI_Request *under_way)
{
    number *out = packed + (size_t)batch * batch_rows * n;
    for (int i = 0; i < batch_rows; i++) {
        number *row = matrix + (size_t)(batch * batch_rows + i) * n;
        int flag;
        fft(row, n);
        for (int to = 0; to < ranks; to++)
            for (int j = 0; j < rows; j++)
                out[((size_t)to * batch_rows + i) * rows + j] = row[to * rows + j];
        if (under_way)
            MPI_Test(under_way, &flag, MPI_STATUS_IGNORE);
    }
}

static void place_batch(int batch)
{
    const number *in = arrived + (size_t)batch * batch_rows * n;
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < batch_rows; i++)
            for (int j = 0; j < rows; j++)
                columns[(size_t)j * n + from * rows + batch * batch_rows + i] =
                    in[((size_t)from * batch_rows + i) * rows + j];
}

static void transform(int overlap)
{
    int count = batch_rows * rows;
    MPI_Request *requests = malloc((size_t)batches * sizeof *requests);
    if (!requests)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int b = 0; b < batches; b++) {
        number *out = packed + (size_t)b * batch_rows * n,
               *in = arrived + (size_t)b * batch_rows * n;
        transform_batch(b, overlap && b > 0 ? &requests[b - 1] : NULL);
        if (overlap)
            MPI_Ialltoall(out, count, MPI_C_DOUBLE_COMPLEX, in, count, MPI_C_DOUBLE_COMPLEX,
                          MPI_COMM_WORLD, &requests[b]);
        else
            MPI_Alltoall(out, count, MPI_C_DOUBLE_COMPLEX, in, count, MPI_C_DOUBLE_COMPLEX,
                         MPI_COMM_WORLD);
    }
    for (int b = 0; b < batches; b++) {
        if (overlap)
            MPI_Wait(&requests[b], MPI_STATUS_IGNORE);
        place_batch(b);
    }
    for (int j = 0; j < rows; j++)
        fft(columns + (size_t)j * n, n);
    free(requests);
}

static double timed(int overlap, double *worst)
{
    double error = 0;
    fill();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    transform(overlap);
    MPI_Barrier(MPI_COMM_WORLD);
    double time = MPI_Wtime() - start;
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < n; i++) {
            int x = rank * rows + j;
            double expected = (x == 5 && i == 3) + 2.0 * (x == 0 && i == 1);
            error = fmax(error, cabs(columns[(size_t)j * n + i] / ((double)n * n) - expected));
        }
    MPI_Allreduce(&error, worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return time;
}

int main(int argc, char **argv)
{
    enum { REPEATS = 5 };
    double time[2] = {INFINITY, INFINITY}, error[2], worst = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    n = argc > 1 ? atoi(argv[1]) : 256;
    batches = argc > 2 ? atoi(argv[2]) : 4;
    if (n < 8 || (n & (n - 1)) || n % ranks || batches < 1 || (n / ranks) % batches)
        MPI_Abort(MPI_COMM_WORLD, 2);
    rows = n / ranks;
    batch_rows = rows / batches;
    size_t bytes = (size_t)rows * n * sizeof(number);
    matrix = malloc(bytes), packed = malloc(bytes), arrived = malloc(bytes),
    columns = malloc(bytes);
    if (!matrix || !packed || !arrived || !columns)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < REPEATS; i++)
        for (int overlap = 0; overlap <= 1; overlap++) {
            time[overlap] = fmin(time[overlap], timed(overlap, &error[overlap]));
            worst = fmax(worst, error[overlap]);
        }
    if (rank == 0)
        printf("fft2d: %d x %d, worst error %.1e, %s\n"
               "blocking %.3f us, nonblocking %.3f us, gain %.0f %%\n",
               n, n, worst, worst < 1e-10 ? "right both ways" : "WRONG", time[0] * 1e6,
               time[1] * 1e6, 100 * (1 - time[1] / time[0]));
    free(matrix), free(packed), free(arrived), free(columns);
    MPI_Finalize();
    return !(worst < 1e-10);
}
