/* SPDX-License-Identifier: MIT */
/* Measures collectives whose buffers are in the memory of a GPU, beside what a program does without
 * nbcshim: copy to pinned memory of the host, a collective there, copy back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench.h"
#include "common/device.h"
#include "meter.h"

/* STAGED: nbcshim gets the buffers of the GPU, and copies them. By hand: around nbcshim's
 * collective, or around the blocking one of the MPI. If the MPI takes such buffers, DIRECT: nbcshim
 * gives them to it where it can; MPI_ALONE: the MPI's blocking collective gets them. */
enum way { STAGED, BY_HAND, BY_HAND_NATIVE, DIRECT, MPI_ALONE, NWAYS };

static const char *const way_names[NWAYS] = {"staged", "by_hand", "by_hand_native", "direct",
                                             "native"};

static bool is_measured[NWAYS] = {true, true, true};

struct cell {
    struct operands host, device, direct;
    int64_t read, written; /* bytes of this rank */
    double sample[NWAYS][MAX_SAMPLES];
};

/* --- the data of a rank ------------------------------------------------------------------------*/

static int64_t blocks_read(const struct operands *o)
{
    const uint32_t for_each = NBC_BIT(SCATTER) | NBC_BIT(SCATTERV) | NBC_BIT(ALLTOALL) |
                              NBC_BIT(ALLTOALLV) | NBC_BIT(ALLTOALLW) | NBC_BIT(REDUCE_SCATTER) |
                              NBC_BIT(REDUCE_SCATTER_BLOCK) | NBC_BIT(NEIGHBOR_ALLTOALL) |
                              NBC_BIT(NEIGHBOR_ALLTOALLV) | NBC_BIT(NEIGHBOR_ALLTOALLW);
    bool from_root = nbc_coll_has_root(o->coll) && !nbc_coll_is_to_root(o->coll);
    if (o->coll == NBC_BARRIER || (from_root && o->rank != 0))
        return 0;
    return for_each >> o->coll & 1 ? operands_blocks(o) : 1;
}

static int64_t blocks_written(const struct operands *o)
{
    const uint32_t of_each = NBC_BIT(GATHER) | NBC_BIT(GATHERV) | NBC_BIT(ALLGATHER) |
                             NBC_BIT(ALLGATHERV) | NBC_BIT(ALLTOALL) | NBC_BIT(ALLTOALLV) |
                             NBC_BIT(ALLTOALLW);
    bool all_but_first = o->coll == NBC_BCAST || o->coll == NBC_EXSCAN;
    if (o->coll == NBC_BARRIER || (all_but_first && o->rank == 0) ||
        (nbc_coll_is_to_root(o->coll) && o->rank != 0))
        return 0;
    bool many = of_each >> o->coll & 1 || nbc_coll_is_neighborhood(o->coll);
    return many ? operands_blocks(o) : 1;
}

static size_t buffer_bytes(const struct operands *o)
{
    enum { PAGE = 4096 };
    return (operands_doubles(o) * sizeof(double) + PAGE - 1) / PAGE * PAGE;
}

static double *pinned_copy(const double *data, const struct operands *o)
{
    size_t bytes = buffer_bytes(o);
    double *copy = aligned_alloc(4096, bytes);
    if (!copy)
        return NULL;
    memcpy(copy, data, operands_doubles(o) * sizeof *data);
    if (device_pin(copy, bytes))
        return copy;
    free(copy);
    return NULL;
}

static double *device_copy(const double *data, const struct operands *o)
{
    double *copy = device_new(ON_DEVICE, buffer_bytes(o));
    device_store(copy, data, operands_doubles(o) * sizeof *data);
    return copy;
}

static void cell_free(struct cell *c)
{
    MPI_Comm_free(&c->device.comm);
    MPI_Comm_free(&c->direct.comm);
    for (int i = 0; i < 2; i++) {
        double *pinned = i ? c->host.send : c->host.recv, *on = i ? c->device.send : c->device.recv;
        if (pinned)
            device_unpin(pinned);
        free(pinned);
        if (on)
            device_free(on);
    }
}

/* Returns false on all ranks if any rank lacks memory. */
static bool cell_make(struct cell *c, const struct operands *o)
{
    c->host = c->device = *o;
    c->read = blocks_read(o) * o->count * (int64_t)sizeof(double);
    c->written = blocks_written(o) * o->count * (int64_t)sizeof(double);
    c->host.send = pinned_copy(o->send, o);
    c->host.recv = pinned_copy(o->recv, o);
    c->device.send = device_copy(o->send, o);
    c->device.recv = device_copy(o->recv, o);
    c->direct = c->device;
    c->device.comm = comm_with_hint(o->comm, "nbcshim_device", "stage");
    c->direct.comm = comm_with_hint(o->comm, "nbcshim_device", "direct");
    return on_all_ranks(o->comm, c->host.send && c->host.recv);
}

/* --- samples -----------------------------------------------------------------------------------*/

static void run_nonblocking(const struct operands *o)
{
    MPI_Request r;
    operands_start(&shim, o, &r);
    shim.Wait(&r, MPI_STATUS_IGNORE);
}

static void run_by_hand(struct cell *c, bool by_mpi)
{
    bool one = c->host.coll == NBC_BCAST; /* buffer */
    device_fetch(one ? c->host.recv : c->host.send, one ? c->device.recv : c->device.send,
                 (size_t)c->read);
    if (by_mpi)
        operands_call(&native, &c->host);
    else
        run_nonblocking(&c->host);
    device_store(c->device.recv, c->host.recv, (size_t)c->written);
}

static void run(struct cell *c, enum way way)
{
    if (way == STAGED)
        run_nonblocking(&c->device);
    else if (way == DIRECT)
        run_nonblocking(&c->direct);
    else if (way == MPI_ALONE)
        operands_call(&native, &c->device);
    else
        run_by_hand(c, way == BY_HAND_NATIVE);
}

static double sample(struct cell *c, enum way way, int calls)
{
    native.Barrier(c->host.comm);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        run(c, way);
    double each = (MPI_Wtime() - start) / calls;
    of_slowest(c->host.comm, &each, 1);
    return each;
}

static int calls_for(struct cell *c, double seconds)
{
    sample(c, STAGED, 1);
    int calls = (int)(seconds / sample(c, STAGED, 2));
    return calls < 1 ? 1 : calls > 1000 ? 1000 : calls;
}

/* How much of the staged operation a rest hides that is as long. */
static struct quartiles hidden(const struct bench *b, const struct cell *c, int calls)
{
    static struct runner r;
    double share[MAX_SAMPLES];
    runner_make(&r, SHIM, &c->device);
    for (int i = 0; i < b->samples; i++) {
        double alone = idle_sample(b, &r, calls, 0);
        share[i] = 1 - (idle_sample(b, &r, calls, alone) - alone) / alone;
    }
    runner_free(&r);
    return quartiles_of(share, b->samples);
}

/* --- telling -----------------------------------------------------------------------------------*/

static void print_cell(const struct operands *o, const struct quartiles *q, struct quartiles share)
{
    bool directly = is_measured[DIRECT] && q[DIRECT].median < q[STAGED].median;
    double ours = q[directly ? DIRECT : STAGED].median;
    meter_clear();
    printf("%-22s %9lld %9.2f", nbc_coll_name(o->coll), (long long)cell_bytes(o),
           q[STAGED].median * 1e6);
    print_time(is_measured[DIRECT], q[DIRECT].median);
    for (int way = BY_HAND; way < NWAYS; way++) {
        if (way == DIRECT)
            continue;
        print_ratio(is_measured[way], q[way].median, ours / q[way].median);
    }
    printf(" %6.0f%%\n", 100 * share.median);
    fflush(stdout);
}

static void measure_cell(struct bench *b, struct operands *o)
{
    static struct cell cell;
    struct quartiles q[NWAYS] = {0};
    if (cell_make(&cell, o)) {
        int calls = calls_for(&cell, 2e-3);
        for (int i = 0; i < b->samples; i++)
            for (int way = 0; way < NWAYS; way++)
                if (is_measured[way])
                    cell.sample[way][i] = sample(&cell, way, calls);
        for (int way = 0; way < NWAYS; way++)
            q[way] = quartiles_of(cell.sample[way], b->samples);
        struct quartiles share = hidden(b, &cell, calls);
        if (b->rank == 0)
            print_cell(o, q, share);
        if (json_begin(b, "device", o)) {
            emit_string(&b->json, "progress", 0, b->progress);
            for (int way = 0; way < NWAYS; way++)
                if (is_measured[way])
                    json_quartiles(b, way_names[way], q[way]);
            json_quartiles(b, "overlap", share);
            json_end(b);
        }
    }
    cell_free(&cell);
}

/* Whether the MPI says that it takes buffers of a GPU; MPICH and Open MPI have one or more of
 * these. */
static bool mpi_is_aware(void)
{
    static const char *const names[] = {"MPIX_Query_cuda_support", "MPIX_Query_rocm_support",
                                        "MPIX_Query_hip_support"};
    bool aware = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = dlsym(RTLD_DEFAULT, names[i]);
        int (*query)(void);
        memcpy(&query, &found, sizeof query);
        aware = aware || (found && query());
    }
    return aware;
}

static void print_head(void)
{
    char name[100];
    device_name(name, sizeof name);
    printf("# on %s; the MPI %s buffers of a GPU\n", name,
           is_measured[DIRECT] ? "takes" : "does not take");
    printf("%-22s %9s %9s %9s %9s %6s %9s %6s %9s %6s %7s\n", "collective", "bytes", "staged",
           "direct", "by hand", "ratio", "with MPI", "ratio", "MPI", "ratio", "overlap");
}

void measure_device(struct bench *b)
{
    if (!on_all_ranks(b->comm, device_load("libcuda.so.1") || device_load("libamdhip64.so") ||
                                   device_load("libamdhip64.so.6"))) {
        if (b->rank == 0)
            fputs("nbcbench: device: no GPU with libcuda.so.1 or libamdhip64.so\n", stderr);
        b->failed = true;
        return;
    }
    is_measured[DIRECT] = mpi_is_aware();
    is_measured[MPI_ALONE] = is_measured[DIRECT] && !device_is_look_alike();
    device_choose(b->rank);
    prctl(PR_SET_TIMERSLACK, 1UL); /* makes sleeps exact */
    runner_warm_up(b->comm, b->samples);
    if (b->rank == 0)
        print_head();
    for_each_cell(b, measure_cell);
}
