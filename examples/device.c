/* SPDX-License-Identifier: MIT */
/* Gradients on GPUs, averaged over all ranks in the manner of data-parallel training: while one
 * bucket is under way, the GPU works on the next.
 *
 *     mpicc -O2 -I$CUDA_HOME/include device.c -o device -L$CUDA_HOME/lib64 -lcudart
 *     nbcrun mpiexec -n 4 ./device [BUCKETS [FLOATS]]
 *
 * MPI gets the pointers of cudaMalloc, whether it knows of GPUs or not. For HIP, hipify-perl
 * translates this file.
 *
 * Exit status: 0 if the sums are right. */
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, count;
static float *host; /* a bucket's values: this program has no kernels */

static void must(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* In place of the backward pass. On return the bucket is written: MPI's copies wait for no stream
 * of the program. After a kernel, this takes a cudaStreamSynchronize. */
static void compute(float *bucket, int b)
{
    for (int i = 0; i < count; i++)
        host[i] = (float)(rank + b);
    must(cudaMemcpy(bucket, host, (size_t)count * sizeof *host, cudaMemcpyHostToDevice));
}

static int is_sum(const float *bucket, int b)
{
    float sum = (float)(size * b + size * (size - 1) / 2);

    must(cudaMemcpy(host, bucket, (size_t)count * sizeof *host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        if (host[i] != sum)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    int buckets = argc > 1 ? atoi(argv[1]) : 8, right = 1, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    count = argc > 2 ? atoi(argv[2]) : 1 << 20;
    host = malloc((size_t)count * sizeof *host);

    float **bucket = malloc((size_t)buckets * sizeof *bucket);
    MPI_Request *request = malloc((size_t)buckets * sizeof *request);
    for (int b = 0; b < buckets; b++) {
        must(cudaMalloc((void **)&bucket[b], (size_t)count * sizeof *host));
        compute(bucket[b], b);
        MPI_Iallreduce(MPI_IN_PLACE, bucket[b], count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &request[b]);
    }
    MPI_Waitall(buckets, request, MPI_STATUSES_IGNORE);

    for (int b = 0; b < buckets; b++) {
        right = right && is_sum(bucket[b], b);
        must(cudaFree(bucket[b]));
    }
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d buckets of %d floats, %d ranks: %s\n", buckets, count, size,
               all ? "right" : "WRONG");
    free(bucket);
    free(request);
    free(host);
    MPI_Finalize();
    return !all;
}
