/* SPDX-License-Identifier: MIT */
/* Buffers in the memory of a device, over the look-alike of its runtime (test/device): what the
 * cases of other programs do not do, which NBC_DEVICE puts there too. */
#define _GNU_SOURCE
#include "device.h"
#include "util.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 1500, PAGES = 2 * 4096 };

static int64_t (*copies)(void), (*bytes)(void), (*under_way)(void), (*asked)(void);
static void (*place_next)(void *address);

static void look_up(const char *name, void *function)
{
    void *found = device_function(name);
    memcpy(function, &found, sizeof found);
}

enum runtime { CUDA, HIP, LEVEL_ZERO };

static enum runtime runtime(void)
{
    return device_function("hipMalloc") ? HIP : device_function("zeInit") ? LEVEL_ZERO : CUDA;
}

/* The words for an error of the look-alike. */
static const char *injected(void)
{
    return runtime() == LEVEL_ZERO ? "an error of Level Zero" : "an injected error";
}

/* A process can load the runtime only once. */
static void load_runtime(void)
{
    if (copies)
        return;
    device_load_tested();
    look_up("nbc_runtime_copies", &copies);
    look_up("nbc_runtime_bytes", &bytes);
    look_up("nbc_runtime_under_way", &under_way);
    look_up("nbc_runtime_place", &place_next);
    look_up("nbc_runtime_asked", &asked);
}

/* Of the next buffers; -1: of each in turn. */
static void choose_device(int device)
{
    load_runtime();
    device_choose(device);
}

/* A vector of which element i is `first` + i, in memory of this kind. */
static int *vector_new(enum device_memory kind, int n, int first)
{
    int *host = test_alloc((size_t)n * sizeof *host);
    if (kind != ON_HOST)
        load_runtime();
    int *device = kind == ON_HOST ? host : device_new(kind, (size_t)n * sizeof *device);
    for (int i = 0; i < n; i++)
        host[i] = first + i;
    if (kind == ON_HOST)
        return host;
    device_store(device, host, (size_t)n * sizeof *host);
    free(host);
    return device;
}

/* Whether element i is factor * i + first; frees nothing. */
static bool vector_is(enum device_memory kind, const int *v, int n, int factor, int first)
{
    int *host = test_alloc((size_t)n * sizeof *host);
    bool ok = true;
    if (kind == ON_DEVICE)
        device_fetch(host, v, (size_t)n * sizeof *host);
    else
        memcpy(host, v, (size_t)n * sizeof *host);
    for (int i = 0; i < n && ok; i++)
        ok = host[i] == factor * i + first;
    free(host);
    return ok;
}

/* Waits for an operation, unless the call has failed. */
static int ended(int error, MPI_Request *r)
{
    return error ? error : MPI_Wait(r, MPI_STATUS_IGNORE);
}

/* A sum over all ranks works. */
static void expect_sum(const char *when)
{
    int *in = vector_new(ON_DEVICE, N, test_rank), *out = vector_new(ON_DEVICE, N, -1);
    MPI_Request r;
    int error = MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    EXPECT(error == MPI_SUCCESS && MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS, "%s: an error",
           when);
    EXPECT(vector_is(ON_DEVICE, out, N, test_size, sum_of_ranks()), "%s: a wrong sum", when);
    device_free(in);
    device_free(out);
}

/* Whether the MPI takes the memory of devices. As nbcshim asks: that of MPICH 3.4.1 ends the
 * program in the second function. */
static bool takes_devices(void)
{
    int (*of_mpich)(int, int *), (*query)(void), answer = 0;
    void *found = dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
    memcpy(&of_mpich, &found, sizeof found);
    if (found && of_mpich(0, &answer) == MPI_SUCCESS)
        return answer;
    found = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    memcpy(&query, &found, sizeof found);
    return found && query();
}

/* Whether the MPI gets the buffers of collectives that only move data. */
static bool is_direct(void)
{
    const char *use = getenv("NBCSHIM_DEVICE");
    return runtime() != LEVEL_ZERO && takes_devices() && !(use && strcmp(use, "stage") == 0);
}

enum late { NONBLOCKING, BLOCKING, PERSISTENT };

static void late_call(enum late kind, const int *in, int *out, MPI_Request *kept)
{
    MPI_Request r;
    if (kind == BLOCKING) {
        MPI_Allreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        return;
    }
    if (kind == NONBLOCKING)
        MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    else
        MPI_Start(kept);
    MPI_Wait(kind == NONBLOCKING ? &r : kept, MPI_STATUS_IGNORE);
}

/* A call before there is a runtime, and the same one, without another call in between, with its
 * result on a device. */
static void expect_late(enum late kind)
{
    MPI_Request kept = MPI_REQUEST_NULL;
    int *in = vector_new(ON_HOST, N, test_rank);
    int *out = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (kind == PERSISTENT && !test_has_persistent())
        kind = NONBLOCKING;
    if (kind == PERSISTENT)
        MPI_Allreduce_init(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
    for (int i = 0; i < 4; i++) {
        if (i == 2) /* another library comes and goes */
            dlclose(dlopen("libutil.so.1", RTLD_NOW));
        late_call(kind, in, out, &kept);
    }
    EXPECT(vector_is(ON_HOST, out, N, test_size, sum_of_ranks()), "a wrong sum on the host");
    load_runtime();
    place_next(out);
    EXPECT(device_new(ON_DEVICE, PAGES) == out, "the memory is not where it should be");
    late_call(kind, in, out, &kept);
    EXPECT(vector_is(ON_DEVICE, out, N, test_size, sum_of_ranks()), "a wrong sum on the device");
    if (kept != MPI_REQUEST_NULL)
        MPI_Request_free(&kept);
    device_free(out);
    munmap(out, PAGES);
    free(in);
}

/* The other two run alone. */
TEST(loaded_late)
{
    expect_late(NONBLOCKING);
}

TEST(loaded_late_blocking)
{
    if (!copies)
        expect_late(BLOCKING);
}

TEST(loaded_late_persistent)
{
    if (!copies)
        expect_late(PERSISTENT);
}

/* No question is asked of Level Zero unless somebody wants that. */
TEST(asked_if_wanted)
{
    const char *wanted = getenv("NBCSHIM_LEVEL_ZERO");
    int in = 1, out = 0;
    MPI_Request r;
    load_runtime();
    int64_t before = asked();
    OK(ended(MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), &r));
    EXPECT_INT(asked() > before, runtime() != LEVEL_ZERO || wanted);
}

/* HIP keeps the last error for the program. That a buffer is memory of the host is none. */
TEST(no_error_is_left)
{
    int (*peek)(void), in = 1, out = 0;
    void *found = device_function("hipPeekAtLastError");
    MPI_Request r;
    memcpy(&peek, &found, sizeof peek);
    OK(ended(MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), &r));
    EXPECT_INT(out, test_size);
    if (peek)
        EXPECT_INT(peek(), 0);
}

/* Only the data that a rank reads or writes is copied, in one copy if it is short. */
TEST(counted)
{
    MPI_Request r;
    int *v = vector_new(ON_DEVICE, N, test_rank == 0 ? 5 : -1);
    int64_t before = copies();
    OK(ended(MPI_Ibcast(v, N, MPI_INT, 0, MPI_COMM_WORLD, &r), &r));
    int made = (int)(copies() - before);
    EXPECT(made == (test_size > 1 && !is_direct()), "broadcast: %d copies", made);
    EXPECT(vector_is(ON_DEVICE, v, N, 1, 5), "broadcast: wrong data");
    device_free(v);
}

/* Both sides of an alltoallw are parts of one buffer of the host, or MPI_BOTTOM: the blocks alone
 * have datatypes, which the MPI's own function gets as they are. */
static void expect_one_buffer(int *v, bool absolute)
{
    int *counts = test_alloc(5 * (size_t)test_size * sizeof *counts), *lengths = counts;
    int *displs = counts + test_size;
    MPI_Datatype *types = test_alloc(2 * (size_t)test_size * sizeof *types);
    for (int i = 0; i < 2 * test_size; i++) {
        MPI_Aint at;
        OK(MPI_Get_address(&v[i], &at));
        v[i] = i < test_size ? 100 * test_rank + i : -1;
        lengths[i % test_size] = 1;
        displs[i] = absolute ? 0 : i * (int)sizeof *v;
        OK(MPI_Type_create_hindexed(1, lengths, absolute ? &at : &(MPI_Aint){0}, MPI_INT,
                                    &types[i]));
        OK(MPI_Type_commit(&types[i]));
    }
    void *buf = absolute ? MPI_BOTTOM : v;
    OK(MPI_Alltoallw(buf, counts, displs, types, buf, counts, displs + test_size, types + test_size,
                     MPI_COMM_WORLD));
    EXPECT(vector_is(ON_HOST, v + test_size, test_size, 100, test_rank), "wrong data%s",
           absolute ? " of MPI_BOTTOM" : "");
    for (int i = 0; i < 2 * test_size; i++)
        MPI_Type_free(&types[i]);
    free(types);
    free(counts);
}

/* On one rank Open MPI's own function takes the same address for MPI_IN_PLACE. */
static bool is_right_on_one_rank(void)
{
    const char *blocking = getenv("NBCSHIM_BLOCKING");
    return test_size > 1 || (blocking && strcmp(blocking, "own") == 0);
}

TEST(one_buffer, .wanted = is_right_on_one_rank)
{
    int *v = test_alloc(2 * (size_t)test_size * sizeof *v);
    load_runtime();
    expect_one_buffer(v, false);
    expect_one_buffer(v, true);
    free(v);
}

/* Two operations at once on memory that the program has written, and the device does not have yet.
 */
TEST(both_wait)
{
    MPI_Request r[2];
    for (int i = 0; i < 20; i++) {
        int *v = vector_new(ON_DEVICE, N, test_rank == 0 ? 5 : -1);
        MPI_Ibcast(v, N / 2, MPI_INT, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Ibcast(v + N / 2, N / 2, MPI_INT, 0, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        EXPECT(vector_is(ON_DEVICE, v, N, 1, 5), "wrong data");
        device_free(v);
    }
}

/* Whether the MPI carries out what it can, of which a call may wait for copies, and the other ranks
 * do not learn that a copy has failed. */
static bool is_by_mpi(void)
{
    const char *rules = getenv("NBCSHIM_TUNING");
    return rules && strstr(rules, "by_mpi");
}

/* The MPI's own blocking collectives cannot read the stand-in's memory. */
static bool has_rounds(void)
{
    return test_size > 2 && test_has_persistent() && !test_blocking_is_native();
}

/* Rank 0 is in a blocking call, which the MPI may carry out, while the root needs it for the second
 * round of a barrier before it makes that call. */
TEST(blocked_rank_progresses, .wanted = has_rounds)
{
    int last = test_size - 1, *v = vector_new(ON_DEVICE, N, test_rank == last ? 5 : -1);
    MPI_Request barrier;
    MPI_Info info = test_info("nbcshim_algorithm", "dissemination");
    OK(MPI_Barrier_init(MPI_COMM_WORLD, info, &barrier));
    OK(MPI_Info_free(&info));
    if (test_rank > 0)
        usleep(50000);
    OK(MPI_Start(&barrier));
    if (test_rank > 0)
        OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    OK(MPI_Bcast(v, N, MPI_INT, last, MPI_COMM_WORLD));
    OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    EXPECT(vector_is(ON_DEVICE, v, N, 1, 5), "wrong data");
    OK(MPI_Request_free(&barrier));
    device_free(v);
}

/* Changes a variable of the runtime. */
static void set_runtime(const char *name, const char *value)
{
    void (*settings)(void);
    void *found = device_function("nbc_runtime_settings");

    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    memcpy(&settings, &found, sizeof found);
    settings();
}

/* The runtime is asked once what a buffer is, and before a copy once whether its context is there.
 */
TEST(asked_once)
{
    int64_t before = 0;
    MPI_Request r;
    int *v = vector_new(ON_DEVICE, N, test_rank == 0 ? 5 : -1);
    for (int i = 0; i < 3; i++) { /* the first makes the context known, and changes the memory */
        before = asked();
        OK(ended(MPI_Ibcast(v, N, MPI_INT, 0, MPI_COMM_WORLD, &r), &r));
    }
    bool once = is_direct() || runtime() != CUDA;
    int made = (int)(asked() - before), wanted = test_size == 1 ? 0 : once ? 1 : 2;
    EXPECT(made == wanted, "asked %d times, not %d", made, wanted);
    device_free(v);
}

/* A driver that the program has not initialized, or that finds no GPU, is asked once too. */
TEST(asked_once_in_vain)
{
    MPI_Request r;
    int v = 5;
    load_runtime();
    if (runtime() != CUDA)
        return;
    set_runtime("NBC_RUNTIME_FAIL", "cuInit");
    int64_t before = asked();
    OK(ended(MPI_Ibcast(&v, 1, MPI_INT, 0, MPI_COMM_WORLD, &r), &r));
    int made = (int)(asked() - before), wanted = test_size > 1;
    set_runtime("NBC_RUNTIME_FAIL", NULL);
    EXPECT(made == wanted, "asked %d times, not %d", made, wanted);
}

/* If the MPI takes the buffers, nothing passes through the host; the own block is a copy within the
 * device. */
TEST(nothing_staged)
{
    MPI_Request r;
    int *in, *out, n = N * test_size;
    choose_device(test_rank);
    in = vector_new(ON_DEVICE, N, test_rank * N);
    out = vector_new(ON_DEVICE, n, -1);
    int64_t ncopies = copies(), nbytes = bytes();
    OK(ended(MPI_Iallgather(in, N, MPI_INT, out, N, MPI_INT, MPI_COMM_WORLD, &r), &r));
    int made = (int)(copies() - ncopies), moved = (int)(bytes() - nbytes);
    int staged = (N + n) * (int)sizeof *in;
    EXPECT_INT(moved, is_direct() ? 0 : staged);
    EXPECT(!is_direct() || made == 1, "%d copies", made);
    EXPECT(vector_is(ON_DEVICE, out, n, 1, 0), "wrong data");
    device_free(in);
    device_free(out);
    choose_device(-1);
}

/* When an operation is over, no copy of it is under way, which would write to memory that the
 * program may use again. */
static void expect_nothing_under_way(void)
{
    EXPECT_INT((int)under_way(), 0);
}

/* Buffers of a call on two devices, whose copies end in any order, and at the same time the other
 * way round: it is staged, each copy in the context of its memory. */
TEST(two_devices)
{
    for (int round = 0; round < 20; round++) {
        MPI_Request r[3];
        int *in[2], *out[2], *sum, n = N * test_size;
        for (int i = 0; i < 2; i++) {
            choose_device(i);
            in[i] = vector_new(ON_DEVICE, N, test_rank * N + i);
            choose_device(1 - i);
            out[i] = vector_new(ON_DEVICE, n, -1);
        }
        sum = vector_new(ON_DEVICE, N, -1);
        int64_t before = bytes();
        for (int i = 0; i < 2; i++)
            MPI_Iallgather(in[i], N, MPI_INT, out[i], N, MPI_INT, MPI_COMM_WORLD, &r[i]);
        MPI_Iallreduce(in[1], sum, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r[2]);
        MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
        EXPECT_INT((int)(bytes() - before), (int)sizeof(int) * (4 * N + 2 * n));
        expect_nothing_under_way();
        EXPECT(vector_is(ON_DEVICE, sum, N, 1, (test_size - 1) * N + 1), "a wrong maximum");
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < test_size; k++)
                EXPECT(vector_is(ON_DEVICE, out[i] + k * N, N, 1, k * N + i), "wrong data of %d",
                       k);
            device_free(in[i]);
            device_free(out[i]);
        }
        device_free(sum);
        choose_device(-1);
    }
}

/* Gathers an int of each rank on this communicator, by a persistent operation with this info unless
 * it is null. Returns the bytes between a device and the host. */
static int bytes_staged(MPI_Comm comm, MPI_Info info)
{
    MPI_Request r;
    int *in, *out, n = test_size;
    choose_device(0);
    in = vector_new(ON_DEVICE, 1, test_rank);
    out = vector_new(ON_DEVICE, n, -1);
    int64_t before = bytes();
    if (info == MPI_INFO_NULL)
        MPI_Iallgather(in, 1, MPI_INT, out, 1, MPI_INT, comm, &r);
    else {
        MPI_Allgather_init(in, 1, MPI_INT, out, 1, MPI_INT, comm, info, &r);
        MPI_Start(&r);
    }
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (info != MPI_INFO_NULL)
        MPI_Request_free(&r);
    int moved = (int)(bytes() - before);
    EXPECT(vector_is(ON_DEVICE, out, n, 1, 0), "wrong data");
    device_free(in);
    device_free(out);
    choose_device(-1);
    return moved;
}

/* Bruck's algorithm has a copy for each block, but staged one of all that is sent and one of all
 * that is received. */
TEST(staged_if_better)
{
    MPI_Comm bruck;
    MPI_Request r;
    int *in, *out, n = test_size;
    if (getenv("NBCSHIM_DEVICE") || test_size < 4) /* else one block has no copy */
        return;
    choose_device(0);
    in = vector_new(ON_DEVICE, n, test_rank * n);
    out = vector_new(ON_DEVICE, n, -1);
    MPI_Info info = test_info("nbcshim_algorithm", "alltoall:bruck");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &bruck);
    int64_t before = copies();
    OK(ended(MPI_Ialltoall(in, 1, MPI_INT, out, 1, MPI_INT, bruck, &r), &r));
    EXPECT_INT((int)(copies() - before), 2);
    EXPECT(vector_is(ON_DEVICE, out, n, n, test_rank), "wrong data");
    MPI_Info_free(&info);
    MPI_Comm_free(&bruck);
    device_free(in);
    device_free(out);
    choose_device(-1);
}

/* The info of the call takes precedence over that of the communicator. */
TEST(hints)
{
    const int all = (1 + test_size) * (int)sizeof(int);
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    MPI_Comm staged;
    if (!is_direct() || getenv("NBCSHIM_DEVICE"))
        return;
    EXPECT_INT(bytes_staged(MPI_COMM_WORLD, MPI_INFO_NULL), 0);
    MPI_Info info = test_info("nbcshim_device", "stage");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &staged);
    EXPECT_INT(bytes_staged(staged, MPI_INFO_NULL), all);
    if (test_has_persistent()) {
        EXPECT_INT(bytes_staged(MPI_COMM_WORLD, info), all);
        MPI_Info_set(info, "nbcshim_device", "direct");
        EXPECT_INT(bytes_staged(staged, info), 0);
    }
    EXPECT_INT(bytes_staged(MPI_COMM_WORLD, MPI_INFO_NULL), 0);
    MPI_Info_free(&info);
    MPI_Comm_get_info(staged, &info);
    MPI_Info_get(info, "nbcshim_device", MPI_MAX_INFO_VAL, value, &found);
    EXPECT(found && strcmp(value, "stage") == 0, "MPI_Comm_get_info shows '%s'", value);
    MPI_Info_free(&info);
    MPI_Comm_free(&staged);
}

/* Broadcasts ints of a datatype: the data is written in so many copies, and no other int changes.
 * The root reads the gaps too, in one copy. */
static void expect_rows(const char *what, MPI_Datatype type, int count, int written)
{
    enum { ROOM = 4096 };
    int *v = vector_new(ON_DEVICE, ROOM, test_rank == 0 ? 5 : -7), got[ROOM], data[ROOM] = {0};
    int ones[ROOM], at = 0;
    MPI_Request r;
    for (int i = 0; i < ROOM; i++)
        ones[i] = 1;
    MPI_Unpack(ones, sizeof ones, &at, data, count, type, MPI_COMM_SELF);
    int64_t before = copies();
    OK(ended(MPI_Ibcast(v, count, type, 0, MPI_COMM_WORLD, &r), &r));
    int made = (int)(copies() - before), wanted = test_rank == 0 ? test_size > 1 : written;
    wanted = is_direct() ? 0 : wanted;
    EXPECT(made == wanted, "%s: %d copies, not %d", what, made, wanted);
    device_fetch(got, v, sizeof got);
    for (int i = 0; i < ROOM; i++)
        EXPECT(got[i] == i + (data[i] || test_rank == 0 ? 5 : -7), "%s: element %d is %d", what, i,
               got[i]);
    device_free(v);
    MPI_Type_free(&type);
}

TEST(rows)
{
    enum { BLOCKS = 40 };
    MPI_Datatype vector, type;
    MPI_Type_vector(BLOCKS, 3, 5, MPI_INT, &type);
    MPI_Type_commit(&type);
    expect_rows("a vector", type, 1, 1);
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &type);
    MPI_Type_commit(&type);
    expect_rows("elements apart", type, BLOCKS, 1);
    MPI_Type_vector(BLOCKS, 3, 5, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, BLOCKS * 5 * sizeof(int), &type);
    MPI_Type_commit(&type);
    expect_rows("vectors that go on", type, 3, 1);
    MPI_Type_create_resized(vector, 0, (BLOCKS * 5 + 4) * sizeof(int), &type);
    MPI_Type_commit(&type);
    expect_rows("vectors apart", type, 3, 3);
    MPI_Type_free(&vector);
    MPI_Type_indexed(2, (int[]){2, 1}, (int[]){0, 4}, MPI_INT, &type);
    MPI_Type_commit(&type);
    expect_rows("unequal blocks", type, BLOCKS, 2);
}

/* A call with a wrong buffer on rank 0 alone. The other ranks get an error or a result. */
static void expect_buffer_error(const int *send, int *recv, MPI_Datatype type, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, *in = vector_new(ON_DEVICE, N, 1), *out = vector_new(ON_DEVICE, N, 1);
    MPI_Request r;
    bool wrong = test_rank == 0;
    int error = ended(MPI_Iallgather(wrong ? send : in, wrong ? 1 : 4, wrong ? type : MPI_INT,
                                     wrong ? recv : out, 4, MPI_INT, MPI_COMM_WORLD, &r),
                      &r);
    if (wrong && error)
        MPI_Error_string(error, text, &length);
    EXPECT(!wrong || class_of(error) == MPI_ERR_BUFFER, "%s: error class %d, not MPI_ERR_BUFFER",
           what, class_of(error));
    EXPECT(!wrong || strstr(text, "memory"), "%s: the text is '%s'", what, text);
    device_free(in);
    device_free(out);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_sum(what);
}

TEST(no_memory)
{
    MPI_Datatype four, apart;
    int *gone = vector_new(ON_DEVICE, N, 0), *ok = vector_new(ON_DEVICE, N, 0);
    char *host = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *beside = vector_new(ON_DEVICE, N, 0);
    MPI_Aint displs[2] = {0, (MPI_Aint)((intptr_t)beside - (intptr_t)host)};
    int lengths[2] = {2, 2};
    device_free(gone);
    MPI_Type_contiguous(4, MPI_INT, &four);
    MPI_Type_commit(&four);
    MPI_Type_create_hindexed(2, lengths, displs, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    expect_buffer_error(gone, ok, four, "a send buffer that was freed");
    expect_buffer_error(ok, gone, four, "a receive buffer that was freed");
    expect_buffer_error((int *)host, ok, apart, "a buffer on the host and on a device");
    MPI_Type_free(&four);
    MPI_Type_free(&apart);
    munmap(host, 4096);
    device_free(ok);
    device_free(beside);
}

/* A persistent operation, of which a buffer is memory of another kind at each start. */
TEST(kinds_change)
{
    MPI_Request r;
    if (!test_has_persistent())
        return;
    int *out = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *in = vector_new(ON_DEVICE, N, test_rank);
    MPI_Allreduce_init(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int i = 0; i < 6; i++) {
        enum device_memory kind = i % 2 == 0 ? ON_HOST : ON_DEVICE;
        if (kind == ON_DEVICE) {
            place_next(out);
            EXPECT(device_new(kind, PAGES) == out, "the memory is not where it should be");
        }
        MPI_Start(&r);
        int error = MPI_Wait(&r, MPI_STATUS_IGNORE);
        EXPECT(!error && vector_is(kind, out, N, test_size, sum_of_ranks()), "start %d: wrong", i);
        if (kind == ON_DEVICE)
            device_free(out);
        mmap(out, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    MPI_Request_free(&r);
    munmap(out, PAGES);
    device_free(in);
}

/* Blocks in allocations far from each other, by their addresses: there is no memory of the host for
 * what is between them. */
static void expect_far_apart(void)
{
    enum { MOST = 8 };
    const size_t step = (size_t)1 << 40;
    MPI_Request r;
    MPI_Datatype send[MOST], recv[MOST];
    int *in[MOST], *out[MOST], ones[MOST], zeros[MOST] = {0}, n = N;
    char *room = mmap(NULL, (MOST + 1) * step, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(room != MAP_FAILED, "no room");
    if (test_size > MOST || room == MAP_FAILED)
        return;
    load_runtime();
    for (int i = 0; i < test_size; i++) {
        MPI_Aint at;
        ones[i] = 1;
        place_next(room + (size_t)i * step);
        in[i] = vector_new(ON_DEVICE, N, test_rank + i);
        place_next(room + (size_t)(MOST - i) * step);
        out[i] = vector_new(ON_DEVICE, N, -1);
        at = (MPI_Aint)(intptr_t)in[i];
        MPI_Type_create_hindexed(1, &n, &at, MPI_INT, &send[i]);
        at = (MPI_Aint)(intptr_t)out[i];
        MPI_Type_create_hindexed(1, &n, &at, MPI_INT, &recv[i]);
        MPI_Type_commit(&send[i]);
        MPI_Type_commit(&recv[i]);
    }
    int error = MPI_Ialltoallw(MPI_BOTTOM, ones, zeros, send, MPI_BOTTOM, ones, zeros, recv,
                               MPI_COMM_WORLD, &r);
    EXPECT(!error && !MPI_Wait(&r, MPI_STATUS_IGNORE), "an error");
    for (int i = 0; i < test_size; i++) {
        EXPECT(vector_is(ON_DEVICE, out[i], N, 1, test_rank + i), "wrong data of rank %d", i);
        MPI_Type_free(&send[i]);
        MPI_Type_free(&recv[i]);
        device_free(in[i]);
        device_free(out[i]);
    }
    munmap(room, (MOST + 1) * step);
}

TEST(far_apart) /* on all devices */
{
    expect_far_apart();
}

TEST(far_apart_on_one)
{
    choose_device(test_rank);
    expect_far_apart();
    choose_device(-1);
}

/* A block on a device between two on the host. */
TEST(host_and_device)
{
    enum { MOST = 8 };
    MPI_Request r;
    MPI_Datatype types[MOST];
    int ones[MOST], zeros[MOST] = {0}, n = 4;
    if (test_size < 3 || test_size > MOST)
        return;
    char *room = mmap(NULL, 3 * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *out = vector_new(ON_DEVICE, N, -1);
    place_next(room + PAGES);
    void *device = device_new(ON_DEVICE, PAGES);
    for (int i = 0; i < test_size; i++) {
        MPI_Aint at = (MPI_Aint)(intptr_t)(room + i % 3 * PAGES);
        ones[i] = 1;
        MPI_Type_create_hindexed(1, &n, &at, MPI_INT, &types[i]);
        MPI_Type_commit(&types[i]);
    }
    int counts[MOST], displs[MOST];
    MPI_Datatype ints[MOST];
    for (int i = 0; i < test_size; i++) {
        counts[i] = n;
        displs[i] = i * n * (int)sizeof(int);
        ints[i] = MPI_INT;
    }
    int error = ended(MPI_Ialltoallw(MPI_BOTTOM, ones, zeros, types, out, counts, displs, ints,
                                     MPI_COMM_WORLD, &r),
                      &r);
    EXPECT(class_of(error) == MPI_ERR_BUFFER, "error class %d", class_of(error));
    for (int i = 0; i < test_size; i++)
        MPI_Type_free(&types[i]);
    device_free(device);
    device_free(out);
    munmap(room, 3 * PAGES);
}

/* Returns the seconds of the longest call on any rank while two copies take a fifth of a second
 * each. */
static double longest_call(void)
{
    double longest = 0, begin, before;
    int flag = 0, *in = vector_new(ON_DEVICE, N, test_rank), *out = vector_new(ON_DEVICE, N, -1);
    MPI_Request r;
    MPI_Barrier(MPI_COMM_WORLD);
    set_runtime("NBC_RUNTIME_TIME", "200000000,1000");
    begin = before = MPI_Wtime();
    MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    for (;;) {
        double now = MPI_Wtime();
        longest = now - before > longest ? now - before : longest;
        before = now;
        if (flag)
            break;
        usleep(1000); /* other tests have the processor */
        MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    }
    set_runtime("NBC_RUNTIME_TIME", NULL);
    EXPECT(before - begin >= 0.4 || is_direct(), "two copies took %.3f s", before - begin);
    EXPECT(vector_is(ON_DEVICE, out, N, test_size, sum_of_ranks()), "a wrong sum");
    device_free(in);
    device_free(out);
    MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

/* No call waits for copies. A busy machine may take a rank its processor for as long, but not each
 * time. */
TEST(nobody_waits)
{
    double longest = longest_call();
    for (int i = 0; i < 5 && longest >= 0.16; i++)
        longest = longest_call();
    EXPECT(longest < 0.16 || is_by_mpi(), "a call took %.3f s", longest);
}

/* Functions of the same or a similar purpose. */
static const char *const functions[][3] = {
    {"cuCtxPushCurrent_v2", "hipSetDevice", "zeEventHostReset"},
    {"cuEventRecord", "hipEventRecord", "zeCommandListAppendBarrier"},
    {"cuEventQuery", "hipEventQuery", "zeEventQueryStatus"},
    {"cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", "zeCommandListAppendMemoryCopy"},
    {"cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", "zeCommandListAppendMemoryCopy"},
    {"cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", "zeEventPoolCreate"},
    {"cuMemcpy2DAsync_v2", "hipMemcpy2DAsync", "zeCommandListAppendMemoryCopyRegion"},
    {"cuPointerGetAttributes", "hipPointerGetAttributes", "zeMemGetAllocProperties"},
    {"cuMemHostRegister_v2", "hipHostRegister", "zeMemFree"},
    {"cuStreamCreate", "hipStreamCreateWithFlags", "zeCommandListCreateImmediate"},
    {"cuEventCreate", "hipEventCreateWithFlags", "zeEventCreate"},
    {"cuPointerSetAttribute", "hipMemGetAddressRange", "zeMemGetAddressRange"},
    {"cuStreamWaitEvent", "hipGetDevice", "zeDeviceGetCommandQueueGroupProperties"},
};

enum { NFUNCTIONS = sizeof functions / sizeof *functions };

/* Each function of the runtime fails at each of its calls, on rank 0. */
static void fail(const char *function, int at, bool matters)
{
    char setting[100], text[MPI_MAX_ERROR_STRING] = "";
    int length, *in = vector_new(ON_DEVICE, N, test_rank), *out = vector_new(ON_DEVICE, N, -1);
    MPI_Request r;
    test_place("%s, call %d", function, at);
    snprintf(setting, sizeof setting, "%s=%d", function, at);
    if (test_rank == 0)
        set_runtime("NBC_RUNTIME_FAIL", setting);
    int error = ended(MPI_Iallreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), &r);
    set_runtime("NBC_RUNTIME_FAIL", NULL);
    if (error)
        MPI_Error_string(error, text, &length);
    expect_nothing_under_way();
    if (test_rank == 0 && matters)
        EXPECT(class_of(error) == MPI_ERR_OTHER && strstr(text, injected()), "error class %d, '%s'",
               class_of(error), text);
    EXPECT(error || is_by_mpi() || vector_is(ON_DEVICE, out, N, test_size, sum_of_ranks()),
           "a wrong sum");
    device_free(in);
    device_free(out);
    expect_sum(function);
}

/* Checks what has been gathered of vectors: the gaps are as before. */
static void expect_gathered(const int *out, int room, bool gaps)
{
    enum { EXTENT = 148, PER = 90 };
    int *got = test_alloc((size_t)room * sizeof *got);
    device_fetch(got, out, (size_t)room * sizeof *got);
    for (int i = 0, extent = gaps ? EXTENT : PER; i < room; i++) {
        int at = i % extent, from = i / extent;
        bool data = from < test_size && (!gaps || at % 5 < 3);
        int wanted = data ? from * 100 + at : i - 7000;
        EXPECT(got[i] == wanted, "element %d is %d, not %d", i, got[i], wanted);
    }
    free(got);
}

/* Gathers vectors, with gaps if `gaps`, while a function fails on rank 0: all ranks end, with an
 * error or the right data. The next time all is right. */
static void fail_moving(const char *function, int at, bool gaps)
{
    enum { ROOM = 4096 };
    char setting[100], text[MPI_MAX_ERROR_STRING] = "";
    MPI_Datatype type;
    MPI_Request r;
    int length, *in, *out;
    choose_device(test_rank);
    in = vector_new(ON_DEVICE, ROOM, test_rank * 100);
    out = vector_new(ON_DEVICE, ROOM, -7000);
    MPI_Type_vector(30, 3, gaps ? 5 : 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    test_place("%s, call %d, %s", function, at, gaps ? "gaps" : "no gaps");
    snprintf(setting, sizeof setting, "%s=%d", function, at);
    if (test_rank == 0)
        set_runtime("NBC_RUNTIME_FAIL", setting);
    for (int i = 0; i < 2; i++) {
        int error = ended(MPI_Iallgather(in, 1, type, out, 1, type, MPI_COMM_WORLD, &r), &r);
        set_runtime("NBC_RUNTIME_FAIL", NULL);
        expect_nothing_under_way();
        if (error)
            MPI_Error_string(error, text, &length);
        if (test_rank == 0 && error)
            EXPECT(strstr(text, injected()) || class_of(error) == MPI_ERR_BUFFER ||
                       class_of(error) == MPI_ERR_TRUNCATE,
                   "error class %d, '%s'", class_of(error), text);
        EXPECT(i == 0 || !error, "an error without a fault");
        if (!error && !(i == 0 && is_by_mpi())) /* else nothing here waits for what was written */
            expect_gathered(out, ROOM, gaps);
    }
    MPI_Type_free(&type);
    device_free(in);
    device_free(out);
    choose_device(-1);
    expect_sum(function);
}

TEST(faults_in_moves)
{
    for (int i = 0; i < NFUNCTIONS; i++)
        for (int at = 1; at <= 6; at++) {
            fail_moving(functions[i][runtime()], at, false);
            fail_moving(functions[i][runtime()], at, true);
        }
}

/* Copies cannot be made to wait for what the program has written. The next ones do. */
TEST(faults_in_settling)
{
    static const char *const names[] = {"cuEventRecord", "cuStreamWaitEvent", "cuEventCreate",
                                        "cuCtxPushCurrent_v2"};
    char setting[100];
    MPI_Request r;
    for (int i = 0; i < 80 && runtime() == CUDA; i++) {
        int *v = vector_new(ON_DEVICE, N, test_rank == 0 ? 5 : -1);
        snprintf(setting, sizeof setting, "%s=%d", names[i % 4], i / 4 % 4 + 1);
        test_place("%s", setting);
        if (test_rank == 0)
            set_runtime("NBC_RUNTIME_FAIL", setting);
        if (!MPI_Ibcast(v, N, MPI_INT, 0, MPI_COMM_WORLD, &r))
            MPI_Wait(&r, MPI_STATUS_IGNORE);
        set_runtime("NBC_RUNTIME_FAIL", NULL);
        OK(ended(MPI_Ibcast(v, N, MPI_INT, 0, MPI_COMM_WORLD, &r), &r));
        EXPECT(vector_is(ON_DEVICE, v, N, 1, 5), "wrong data");
        device_free(v);
    }
}

TEST(faults)
{
    enum { ENTER, RECORD, QUERY, FETCH, STORE };
    expect_sum("with a context that is not known yet"); /* and which is not entered */
    for (int i = 0; i < NFUNCTIONS; i++)
        for (int at = 1; at <= 2; at++) {
            bool once = i == FETCH || i == STORE || (i == ENTER && runtime() == HIP);
            bool copies_nothing = is_direct() && (runtime() != CUDA || i >= FETCH); /* perhaps */
            bool matters = i <= STORE && !(at == 2 && once) && !(copies_nothing && i != ENTER);
            fail(functions[i][runtime()], at, matters);
        }
}

/* The context of a device is destroyed, and comes back. */
TEST(reset)
{
    int (*reset_device)(int device);
    look_up("cuDevicePrimaryCtxReset_v2", &reset_device);
    for (int i = 0; i < 3 && reset_device; i++) {
        reset_device(i % 2);
        expect_sum("after a reset");
    }
}

static void before(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

AROUND_TESTS(before, NULL)
