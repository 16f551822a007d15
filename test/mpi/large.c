/* SPDX-License-Identifier: MIT */
/* Counts and displacements above 2^31 and messages above 2 GiB, in little memory: types without
 * data, buffers of which few pages exist, and buffers that are one piece of memory many times.
 *
 * A soak has, besides, more than 4 GiB in memory of its own, reductions of more than 2^31
 * elements (10 GB for two ranks), and as many elements in one place. */
#define _GNU_SOURCE
#include "util.h"

#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int64_t GIB = INT64_C(1) << 30;

static void *reserve(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return p;
}

static void done(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Starts it twice. */
static void done_persistent(MPI_Request *request)
{
    for (int i = 0; i < 2; i++) {
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(request);
}

/* --- elements without data -------------------------------------------------------------------- */

static void see_elements(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)type;
    EXPECT(*n >= 0, "an operator gets %d elements", *n);
}

/* A thousand billion elements of no bytes; `extent` apart. */
static void empty_elements(MPI_Aint extent)
{
    const MPI_Count n = INT64_C(1) << 40;
    MPI_Count *counts = test_scratch((size_t)test_size * sizeof *counts);
    MPI_Aint *displs = test_scratch((size_t)test_size * sizeof *displs);
    char a[8] = "abcdefg", b[8] = "hijklmn";
    MPI_Datatype none, type;
    MPI_Request r;
    MPI_Op op;

    test_place("elements of no bytes, %ld apart", (long)extent);
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_create_resized(none, 0, extent, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(see_elements, 1, &op);
    for (int i = 0; i < test_size; i++) {
        counts[i] = n + i;
        displs[i] = (MPI_Aint)1 << 41;
    }

    MPI_Bcast_c(a, n, type, 0, MPI_COMM_WORLD);
    MPI_Ibcast_c(a, n, type, test_size - 1, MPI_COMM_WORLD, &r), done(&r);
    MPI_Bcast_init_c(a, n, type, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r), done_persistent(&r);
    MPI_Igather_c(a, n, type, b, n, type, 0, MPI_COMM_WORLD, &r), done(&r);
    MPI_Iscatter_c(a, n, type, b, n, type, 0, MPI_COMM_WORLD, &r), done(&r);
    MPI_Iallgather_c(a, n, type, b, n, type, MPI_COMM_WORLD, &r), done(&r);
    MPI_Ialltoall_c(a, n, type, b, n, type, MPI_COMM_WORLD, &r), done(&r);
    MPI_Igatherv_c(a, n + test_rank, type, b, counts, displs, type, 0, MPI_COMM_WORLD, &r);
    done(&r);
    MPI_Iscatterv_c(a, counts, displs, type, b, n + test_rank, type, 0, MPI_COMM_WORLD, &r);
    done(&r);
    MPI_Iallgatherv_c(a, n + test_rank, type, b, counts, displs, type, MPI_COMM_WORLD, &r);
    done(&r);
    MPI_Ireduce_c(a, b, n, type, op, 0, MPI_COMM_WORLD, &r), done(&r);
    MPI_Iallreduce_c(a, b, n, type, op, MPI_COMM_WORLD, &r), done(&r);
    MPI_Allreduce_init_c(a, b, n, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    done_persistent(&r);
    MPI_Ireduce_scatter_block_c(a, b, n, type, op, MPI_COMM_WORLD, &r), done(&r);
    MPI_Ireduce_scatter_c(a, b, counts, type, op, MPI_COMM_WORLD, &r), done(&r);
    MPI_Iscan_c(a, b, n, type, op, MPI_COMM_WORLD, &r), done(&r);
    MPI_Iexscan_c(a, b, n, type, op, MPI_COMM_WORLD, &r), done(&r);
    EXPECT(memcmp(a, "abcdefg", 8) == 0 && memcmp(b, "hijklmn", 8) == 0,
           "elements without data were written");

    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Type_free(&none);
}

TEST(empty)
{
    empty_elements(0);
    empty_elements(1);
    empty_elements(16);
}

/* --- far apart ----------------------------------------------------------------------------------
 * Blocks of a few ints, each beyond 2^31 ints from the next. */

enum { BLOCK = 5, GUARD = -1 };

static const int64_t STRIDE = (INT64_C(1) << 31) + 77; /* ints from one block to the next */

static size_t sparse_size(void)
{
    return (size_t)(STRIDE * (test_size + 1)) * sizeof(int);
}

static int value_of(int src, int dst, int i)
{
    return (src * 100 + dst) * 100 + i;
}

static int *sparse_block(int *buf, int i)
{
    return buf + (i + 1) * STRIDE;
}

static void sparse_fill(int *buf, int me, bool sends, bool all_the_same)
{
    for (int i = 0; i < test_size; i++) {
        int *block = sparse_block(buf, i);
        for (int k = -1; k <= BLOCK; k++)
            block[k] = GUARD;
        for (int k = 0; k < BLOCK && sends; k++)
            block[k] = value_of(me, all_the_same ? 0 : i, k);
    }
}

static void sparse_check(int *buf, int dst, const char *what)
{
    for (int i = 0; i < test_size; i++) {
        const int *block = sparse_block(buf, i);
        bool right = block[-1] == GUARD && block[BLOCK] == GUARD;
        for (int k = 0; k < BLOCK; k++)
            right = right && block[k] == value_of(i, dst, k);
        EXPECT(right, "%s: wrong block from rank %d, far apart", what, i);
    }
}

TEST(sparse)
{
    int *in = reserve(sparse_size()), *out = reserve(sparse_size());
    MPI_Count *counts = test_scratch((size_t)test_size * sizeof *counts);
    MPI_Aint *displs = test_scratch((size_t)test_size * sizeof *displs);
    MPI_Aint *bytes = test_scratch((size_t)test_size * sizeof *bytes);
    MPI_Datatype *types = test_scratch((size_t)(test_size + 1) * sizeof *types);
    int *mine = sparse_block(in, test_rank), first[BLOCK], periodic = 1, last = test_size - 1;
    MPI_Datatype far, far_block;
    MPI_Request r;
    MPI_Comm ring;

    for (int i = 0; i < test_size; i++) {
        counts[i] = BLOCK;
        displs[i] = (MPI_Aint)((i + 1) * STRIDE);
        bytes[i] = displs[i] * (MPI_Aint)sizeof(int);
        types[i] = types[i + 1] = MPI_INT; /* a ring of one has two neighbors */
    }
    /* BLOCK ints, and the extent of a stride: counts of one make displacements as large. */
    MPI_Type_contiguous(BLOCK, MPI_INT, &far_block);
    MPI_Type_create_resized(far_block, 0, (MPI_Aint)(STRIDE * (int64_t)sizeof(int)), &far);
    MPI_Type_commit(&far);

#define RUN(what, same, dst, call)                \
    do {                                          \
        test_place("%s, far apart", what);        \
        sparse_fill(in, test_rank, true, same);   \
        sparse_fill(out, test_rank, false, same); \
        call;                                     \
        done(&r);                                 \
        if (dst >= 0)                             \
            sparse_check(out, dst, what);         \
    } while (0)

    RUN("igatherv_c", true, test_rank == last ? 0 : -1,
        MPI_Igatherv_c(mine, BLOCK, MPI_INT, out, counts, displs, MPI_INT, last, MPI_COMM_WORLD,
                       &r));
    RUN("iallgatherv_c", true, 0,
        MPI_Iallgatherv_c(mine, BLOCK, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD, &r));
    RUN("ialltoallv_c", false, test_rank,
        MPI_Ialltoallv_c(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD,
                         &r));
    RUN("ialltoallw_c", false, test_rank,
        MPI_Ialltoallw_c(in, counts, bytes, types, out, counts, bytes, types, MPI_COMM_WORLD, &r));
    RUN("iallgather_c", true, 0,
        MPI_Iallgather_c(mine, BLOCK, MPI_INT, sparse_block(out, 0), 1, far, MPI_COMM_WORLD, &r));
    RUN("ialltoall", false, test_rank,
        MPI_Ialltoall(sparse_block(in, 0), 1, far, sparse_block(out, 0), 1, far, MPI_COMM_WORLD,
                      &r));
    RUN("igather", true, test_rank == 0 ? 0 : -1,
        MPI_Igather(mine, BLOCK, MPI_INT, sparse_block(out, 0), 1, far, 0, MPI_COMM_WORLD, &r));

    RUN("iscatterv_c", false, -1,
        MPI_Iscatterv_c(in, counts, displs, MPI_INT, first, BLOCK, MPI_INT, last, MPI_COMM_WORLD,
                        &r));
    EXPECT_INT(first[0], value_of(last, test_rank, 0));
    EXPECT_INT(first[4], value_of(last, test_rank, 4));
    RUN("ialltoallw_c in place", false, -1,
        MPI_Ialltoallw_c(MPI_IN_PLACE, NULL, NULL, NULL, in, counts, bytes, types, MPI_COMM_WORLD,
                         &r));
    sparse_check(in, test_rank, "ialltoallw_c in place");

    /* Neighbors: the block for the one above, from the one below. */
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &periodic, 0, &ring);
    int below = (test_rank + last) % test_size, above = right();
    sparse_fill(in, test_rank, true, false);
    MPI_Count two[2] = {BLOCK, BLOCK};
    MPI_Aint from[2] = {bytes[below], bytes[above]}, to[2] = {bytes[0], bytes[last]};
    MPI_Ineighbor_alltoallw_c(in, two, from, types, out, two, to, types, ring, &r), done(&r);
    if (test_size > 2) {
        EXPECT_INT(sparse_block(out, 0)[4], value_of(below, test_rank, 4));
        EXPECT_INT(sparse_block(out, last)[4], value_of(above, test_rank, 4));
    }
    MPI_Comm_free(&ring);

    MPI_Type_free(&far);
    MPI_Type_free(&far_block);
    munmap(in, sparse_size());
    munmap(out, sparse_size());
}

/* --- more than 2 GiB ----------------------------------------------------------------------------
 * A buffer is one piece of memory over and over again, but for pages of its own where counts
 * overflow and at the end. Contents depend on the place in the piece, in the pages on the place in
 * the buffer. */

enum { PAGE = 65536, PIECE = 33 * PAGE, NPAGES = 6 };

struct folded {
    unsigned char *base, *piece;
    int64_t size;
    int64_t page[NPAGES]; /* offsets */
};

static void folded_new(struct folded *f, int64_t size)
{
    const int64_t at[NPAGES] = {0, GIB - PAGE, GIB, 2 * GIB - PAGE, 2 * GIB, size - PAGE};
    int file = memfd_create("nbcshim-test", 0);
    f->size = size;
    f->base = reserve((size_t)size);
    if (file < 0 || ftruncate(file, PIECE)) {
        perror("memfd");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    f->piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int64_t i = 0; i < size; i += PIECE)
        mmap(f->base + i, (size_t)(size - i < PIECE ? size - i : PIECE), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0);
    for (int i = 0; i < NPAGES; i++) {
        f->page[i] = at[i];
        mmap(f->base + at[i], PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0);
    }
    close(file);
}

static void folded_free(struct folded *f)
{
    munmap(f->base, (size_t)f->size);
    munmap(f->piece, PIECE);
}

static void put(unsigned char *at, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t x = mix64(key + (uint64_t)i);
        memcpy(at + i, &x, 8);
    }
}

static bool holds(const unsigned char *at, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t x = mix64(key + (uint64_t)i);
        if (memcmp(at + i, &x, 8) != 0)
            return false;
    }
    return true;
}

static void folded_fill(struct folded *f, uint64_t key)
{
    put(f->piece, PIECE, key);
    for (int i = 0; i < NPAGES; i++)
        put(f->base + f->page[i], PAGE, key + 1 + (uint64_t)f->page[i]);
}

static void folded_check(struct folded *f, uint64_t key, const char *what)
{
    EXPECT(holds(f->piece, PIECE, key), "%s: wrong data", what);
    for (int i = 0; i < NPAGES; i++)
        EXPECT(holds(f->base + f->page[i], PAGE, key + 1 + (uint64_t)f->page[i]),
               "%s: wrong data %lld bytes from the beginning", what, (long long)f->page[i]);
}

static void big_element(struct folded *f, MPI_Datatype whole)
{
#ifdef HAVE_MPI_TYPE_SIZE_X
    MPI_Request r;
    test_place("ibcast of one element of %lld bytes", (long long)f->size);
    folded_fill(f, test_rank == 0 ? 2000 : 0);
    MPI_Ibcast(f->base, 1, whole, 0, MPI_COMM_WORLD, &r), done(&r);
    folded_check(f, 2000, "ibcast of one element");
#else
    (void)f, (void)whole;
#endif
}

/* Bytes from the last to the first. With a negative extent that of many elements is not the
 * product. Open MPI moves them one by one, which takes 10 s: there in a soak. */
static void big_backwards(struct folded *f)
{
    MPI_Datatype back;
    MPI_Request r;
#ifdef OPEN_MPI
    if (!test_soak)
        return;
#endif
    test_place("ibcast_c of %lld bytes backwards", (long long)f->size);
    MPI_Type_create_resized(MPI_BYTE, 0, -1, &back);
    MPI_Type_commit(&back);
    folded_fill(f, test_rank == 0 ? 4000 : 0);
    MPI_Ibcast_c(f->base + f->size - 1, f->size, back, 0, MPI_COMM_WORLD, &r), done(&r);
    folded_check(f, 4000, "ibcast_c backwards");
    MPI_Type_free(&back);
}

/* Around the ring; nothing to the others. */
static void big_ring(struct folded *in, struct folded *out)
{
    const int next = right(), last = left();
    MPI_Count *scounts = calloc((size_t)test_size, sizeof *scounts);
    MPI_Count *rcounts = calloc((size_t)test_size, sizeof *rcounts);
    MPI_Aint *displs = calloc((size_t)test_size, sizeof *displs);
    MPI_Datatype *types = test_alloc((size_t)test_size * sizeof *types);
    MPI_Request r;

    test_place("alltoallw_init_c of %lld bytes", (long long)in->size);
    for (int i = 0; i < test_size; i++)
        types[i] = MPI_BYTE;
    scounts[next] = rcounts[last] = in->size;
    folded_fill(in, 3000 + (uint64_t)test_rank);
    folded_fill(out, 0);
    MPI_Alltoallw_init_c(in->base, scounts, displs, types, out->base, rcounts, displs, types,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    done(&r);
    MPI_Request_free(&r);
    folded_check(out, 3000 + (uint64_t)last, "alltoallw_init_c");
    free(scounts);
    free(rcounts);
    free(displs);
    free(types);
}

/* On more than 2 ranks only the first, except in a soak: the others differ in their types and
 * counts, not in what ranks do. Each message keeps a processor for seconds. */
TEST(big)
{
    enum { MIB = 1 << 20, COUNT = 2051 };
    const bool all = test_size <= 2 || test_soak;
    const int64_t size = (int64_t)COUNT * MIB; /* above 2^31, as many bytes */
    MPI_Datatype mib, whole;
    struct folded in, out;
    MPI_Request r;

    folded_new(&in, size);
    folded_new(&out, size);
    MPI_Type_contiguous(MIB, MPI_BYTE, &mib);
    MPI_Type_commit(&mib);
    MPI_Type_contiguous(COUNT, mib, &whole);
    MPI_Type_commit(&whole);

    test_place("ibcast_c of %lld bytes", (long long)size);
    folded_fill(&in, test_rank == 0 ? 1000 : 0);
    if (test_rank == 0)
        MPI_Ibcast_c(in.base, size, MPI_BYTE, 0, MPI_COMM_WORLD, &r);
    else
        MPI_Ibcast_c(in.base, COUNT, mib, 0, MPI_COMM_WORLD, &r);
    done(&r);
    folded_check(&in, 1000, "ibcast_c");

    if (all) {
        big_element(&in, whole);
        big_backwards(&in);
        big_ring(&in, &out);
    }

    MPI_Type_free(&whole);
    MPI_Type_free(&mib);
    folded_free(&in);
    folded_free(&out);
}

/* --- memory of its own, for a soak ------------------------------------------------------------ */

static bool in_soak(void)
{
    return test_soak && test_size == 2;
}

static void huge_bcast(void)
{
    const int64_t size = 4 * GIB + 123456;
    unsigned char *bytes = reserve((size_t)size);
    MPI_Request r;

    test_place("ibcast_c of %lld bytes", (long long)size);
    if (test_rank == 0)
        put(bytes, size, 1);
    MPI_Ibcast_c(bytes, size, MPI_BYTE, 0, MPI_COMM_WORLD, &r);
    done(&r);
    EXPECT(holds(bytes, size, 1), "ibcast_c of %lld bytes: wrong data", (long long)size);
    munmap(bytes, (size_t)size);
}

static unsigned char in_of(int64_t i, int rank)
{
    return (unsigned char)(i % 251 + rank);
}

static void add_bytes(void *in, void *inout, int *n, MPI_Datatype *type)
{
    unsigned char *a = in, *b = inout;
    (void)type;
    EXPECT(*n >= 0, "an operator gets %d elements", *n);
    for (int i = 0; i < *n; i++)
        b[i] = (unsigned char)(a[i] + b[i]);
}

/* More elements than an int counts; `user`: with an operator that counts them by int. */
static void huge_reduction(bool user)
{
    const int64_t n = 2 * GIB + 4321;
    unsigned char *in = reserve((size_t)n), *out = reserve((size_t)n);
    MPI_Op op = MPI_SUM;
    MPI_Request r;

    test_place("iallreduce_c of %lld elements, %s operator", (long long)n,
               user ? "user's" : "MPI's");
    if (user)
        MPI_Op_create(add_bytes, 1, &op);
    for (int64_t i = 0; i < n; i++)
        in[i] = in_of(i, test_rank);
    MPI_Iallreduce_c(in, out, n, user ? MPI_BYTE : MPI_UNSIGNED_CHAR, op, MPI_COMM_WORLD, &r);
    done(&r);
    for (int64_t i = 0; i < n; i++) {
        unsigned sum = 0;
        for (int k = 0; k < test_size; k++)
            sum += in_of(i, k);
        if (out[i] != (unsigned char)sum) {
            test_fail("iallreduce_c of %lld elements: wrong at %lld", (long long)n, (long long)i);
            break;
        }
    }
    if (user)
        MPI_Op_free(&op);
    munmap(in, (size_t)n);
    munmap(out, (size_t)n);
}

/* A type with gaps, of which one element has more than 2 GiB: sent, and copied on one rank. */
#ifdef HAVE_MPI_TYPE_SIZE_X
TEST(element, .wanted = in_soak)
{
    enum { ROW = 1 << 20, ROWS = 2053 };
    const int64_t size = (int64_t)ROWS * ROW * 2;
    unsigned char *in = reserve((size_t)size), *out = reserve((size_t)size);
    MPI_Datatype rows;
    MPI_Request r;

    MPI_Type_vector(ROWS, ROW, 2 * ROW, MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    test_place("ialltoall of one element of more than 2 GiB");
    for (int i = 0; i < ROWS; i++)
        put(in + (int64_t)i * 2 * ROW, ROW, (uint64_t)i);
    MPI_Ialltoall(in, 1, rows, out, 1, rows, MPI_COMM_SELF, &r), done(&r);
    for (int i = 0; i < ROWS; i++)
        EXPECT(holds(out + (int64_t)i * 2 * ROW, ROW, (uint64_t)i), "row %d is wrong", i);
    memset(out, 0, (size_t)size);
    MPI_Ibcast(test_rank == 0 ? in : out, 1, rows, 0, MPI_COMM_WORLD, &r), done(&r);
    for (int i = 0; i < ROWS && test_rank > 0; i++)
        EXPECT(holds(out + (int64_t)i * 2 * ROW, ROW, (uint64_t)i), "row %d is wrong", i);
    MPI_Type_free(&rows);
    munmap(in, (size_t)size);
    munmap(out, (size_t)size);
}
#endif

/* All elements in one place: they are packed one by one, though there is but one byte. */
TEST(overlaid, .wanted = in_soak)
{
    const MPI_Count n = 2 * GIB + 9;
    char byte = test_rank == 0 ? 'x' : '-';
    MPI_Datatype none;
    MPI_Request r;
    test_place("ibcast_c of %lld elements without extent", (long long)n);
    MPI_Type_create_resized(MPI_CHAR, 0, 0, &none);
    MPI_Type_commit(&none);
    MPI_Ibcast_c(&byte, n, none, 0, MPI_COMM_WORLD, &r), done(&r);
    EXPECT_INT(byte, 'x');
    MPI_Type_free(&none);
}

/* Copied on one rank, where the MPI packs and unpacks no more than 2 GiB at once. */
TEST(rows, .wanted = in_soak)
{
    enum { ROW = 1 << 20, ROWS = 1026 };
    const size_t size = (size_t)ROWS * ROW;
    unsigned char *in = reserve(2 * size), *out = reserve(size);
    MPI_Datatype row, apart;
    MPI_Request r;

    MPI_Type_contiguous(ROW, MPI_BYTE, &row);
    MPI_Type_create_resized(row, 0, 2 * ROW, &apart);
    MPI_Type_commit(&apart);
    test_place("ialltoall of many rows");
    for (int i = 0; i < ROWS; i++)
        put(in + (int64_t)i * 2 * ROW, ROW, (uint64_t)i);
    MPI_Ialltoall(in, ROWS, apart, out, ROWS * ROW, MPI_BYTE, MPI_COMM_SELF, &r), done(&r);
    memset(in, 0, 2 * size);
    for (int i = 0; i < ROWS; i++)
        EXPECT(holds(out + (int64_t)i * ROW, ROW, (uint64_t)i), "row %d is wrong", i);
    MPI_Ialltoall(out, ROWS * ROW, MPI_BYTE, in, ROWS, apart, MPI_COMM_SELF, &r), done(&r);
    for (int i = 0; i < ROWS; i++)
        EXPECT(holds(in + (int64_t)i * 2 * ROW, ROW, (uint64_t)i), "row %d is wrong behind", i);
    MPI_Type_free(&row);
    MPI_Type_free(&apart);
    munmap(in, 2 * size);
    munmap(out, size);
}

TEST(huge, .wanted = in_soak)
{
    huge_bcast();
    huge_reduction(false);
    huge_reduction(true);
}
