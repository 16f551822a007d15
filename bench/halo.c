/* SPDX-License-Identifier: MIT */
/* Measures a halo exchange on periodic grids: MPI_Neighbor_alltoall_init against what programs
 * write themselves, MPI_Irecv, MPI_Isend and MPI_Waitall, and against persistent messages. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "meter.h"

enum { MOST_DIMS = 3, MOST_SIDES = 2 * MOST_DIMS, NWAYS = 3 };

/* A grid, and a block for each of its sides: first the lower one of each dimension. */
struct halo {
    MPI_Comm grid;
    int dims, sides, bytes, neighbor[MOST_SIDES];
    char *send, *recv;
    MPI_Request collective, message[2 * MOST_SIDES];
};

static void exchange(struct halo *h)
{
    shim.Start(&h->collective);
    shim.Wait(&h->collective, MPI_STATUS_IGNORE);
}

/* On a ring of two, both messages have the same two ends: the tag is the side of the receiver. */
static int tag_of(int side)
{
    return side ^ 1;
}

static void exchange_by_hand(struct halo *h)
{
    MPI_Request r[2 * MOST_SIDES];
    for (int i = 0; i < h->sides; i++)
        native.Irecv(h->recv + (size_t)i * h->bytes, h->bytes, MPI_BYTE, h->neighbor[i], i, h->grid,
                     &r[i]);
    for (int i = 0; i < h->sides; i++)
        native.Isend(h->send + (size_t)i * h->bytes, h->bytes, MPI_BYTE, h->neighbor[i], tag_of(i),
                     h->grid, &r[h->sides + i]);
    native.Waitall(2 * h->sides, r, no_statuses);
}

static void exchange_messages(struct halo *h)
{
    native.Startall(2 * h->sides, h->message);
    native.Waitall(2 * h->sides, h->message, no_statuses);
}

static void (*const ways[NWAYS])(struct halo *h) = {exchange, exchange_by_hand, exchange_messages};
static const char *const way_names[NWAYS] = {"shim", "by_hand", "messages"};

static void halo_free(struct halo *h)
{
    for (int i = 0; i < 2 * h->sides; i++)
        if (h->message[i] != MPI_REQUEST_NULL)
            native.Request_free(&h->message[i]);
    if (h->collective != MPI_REQUEST_NULL)
        shim.Request_free(&h->collective);
    MPI_Comm_free(&h->grid);
    free(h->send);
    free(h->recv);
}

/* Returns false on all ranks if the memory of one of them does not suffice. */
static bool halo_make(const struct bench *b, struct halo *h, int dims, int bytes)
{
    int extent[MOST_DIMS] = {0}, periodic[MOST_DIMS] = {1, 1, 1};
    *h = (struct halo){.dims = dims, .sides = 2 * dims, .bytes = bytes};
    h->collective = MPI_REQUEST_NULL;
    MPI_Dims_create(b->size, dims, extent);
    MPI_Cart_create(b->comm, dims, extent, periodic, 0, &h->grid);
    h->send = calloc(h->sides, bytes + 1);
    h->recv = calloc(h->sides, bytes + 1);
    for (int d = 0; d < dims; d++)
        MPI_Cart_shift(h->grid, d, 1, &h->neighbor[2 * d], &h->neighbor[2 * d + 1]);
    for (int i = 0; i < 2 * h->sides; i++)
        h->message[i] = MPI_REQUEST_NULL;
    if (!on_all_ranks(b->comm, h->send && h->recv))
        return false;
    for (int i = 0; i < h->sides; i++) {
        size_t at = (size_t)i * bytes;
        native.Recv_init(h->recv + at, bytes, MPI_BYTE, h->neighbor[i], i, h->grid, &h->message[i]);
        native.Send_init(h->send + at, bytes, MPI_BYTE, h->neighbor[i], tag_of(i), h->grid,
                         &h->message[h->sides + i]);
    }
    return !shim.Neighbor_alltoall_init(h->send, bytes, MPI_BYTE, h->recv, bytes, MPI_BYTE, h->grid,
                                        MPI_INFO_NULL, &h->collective);
}

/* Whether each side has received what its neighbor has sent there. */
static bool is_right(const struct bench *b, struct halo *h, int way)
{
    bool right = true;
    for (int i = 0; i < h->sides; i++) {
        memset(h->send + (size_t)i * h->bytes, 1 + i + MOST_SIDES * b->rank, h->bytes);
        memset(h->recv + (size_t)i * h->bytes, 0, h->bytes);
    }
    ways[way](h);
    for (int i = 0; i < h->sides && h->bytes; i++)
        right &=
            h->recv[(size_t)i * h->bytes] == (char)(1 + tag_of(i) + MOST_SIDES * h->neighbor[i]);
    return right;
}

/* Returns the seconds of an exchange, of the slowest rank. */
static double halo_sample(const struct bench *b, struct halo *h, int way, int times)
{
    native.Barrier(b->comm);
    double start = MPI_Wtime();
    for (int i = 0; i < times; i++)
        ways[way](h);
    double each = (MPI_Wtime() - start) / times;
    of_slowest(b->comm, &each, 1);
    return each;
}

static void report(struct bench *b, const struct halo *h, double sample[NWAYS][MAX_SAMPLES])
{
    struct quartiles took[NWAYS];
    for (int w = 0; w < NWAYS; w++)
        took[w] = quartiles_of(sample[w], b->samples);
    if (b->rank != 0)
        return;
    meter_clear();
    printf("%d-d %11d", h->dims, h->bytes);
    print_time(true, took[0].median);
    for (int w = 1; w < NWAYS; w++)
        print_ratio(true, took[w].median, took[0].median / took[w].median);
    printf("\n");
    fflush(stdout);
    if (!b->json.writer.out)
        return;
    emit_row(&b->json, NULL);
    emit_string(&b->json, "measure", 0, "halo");
    emit_number(&b->json, "dimensions", 0, h->dims);
    emit_number(&b->json, "ranks", 0, b->size);
    emit_number(&b->json, "bytes", 0, h->bytes);
    for (int w = 0; w < NWAYS; w++)
        json_quartiles(b, way_names[w], took[w]);
    json_end(b);
}

static void measure_grid(struct bench *b, int dims, int bytes)
{
    static double sample[NWAYS][MAX_SAMPLES];
    struct halo h;
    bool right = halo_make(b, &h, dims, bytes);
    for (int w = 0; right && w < NWAYS; w++)
        right = is_right(b, &h, w);
    bool all = on_all_ranks(b->comm, right);
    if (!all && b->rank == 0)
        fprintf(stderr, "nbcbench: halo, %d-d, %d bytes: no memory, or a wrong result\n", dims,
                bytes);
    b->failed |= !all;
    double once = all ? halo_sample(b, &h, 1, 10) : 1;
    int times = once < 1e-6 ? 1000 : once < 1e-3 ? (int)(1e-3 / once) : 1;
    for (int s = 0; all && s < b->samples; s++)
        for (int w = 0; w < NWAYS; w++)
            sample[(s + w) % NWAYS][s] = halo_sample(b, &h, (s + w) % NWAYS, times);
    if (all)
        report(b, &h, sample);
    halo_free(&h);
}

void measure_halo(struct bench *b)
{
    runner_warm_up(b->comm, b->samples);
    if (b->rank == 0) {
        printf("%-3s %11s %9s %9s %6s %9s %6s\n", "", "bytes", "shim", "by hand", "ratio",
               "messages", "ratio");
        meter_begin(MOST_DIMS * b->nsizes, true);
    }
    for (int dims = 1; dims <= MOST_DIMS; dims++)
        for (int i = 0; i < b->nsizes; i++) {
            if (b->rank == 0)
                meter_step("halo, %d-d, %lld bytes", dims, (long long)b->sizes[i]);
            measure_grid(b, dims, (int)b->sizes[i]);
        }
    meter_end();
}
