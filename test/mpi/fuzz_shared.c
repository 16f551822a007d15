/* SPDX-License-Identifier: MIT */
/* A file of this rank and a window of all, which the threads share, for the fuzzer's requests of
 * such. They live as long as a program. */
#include "config.h"
#include "fuzz_others.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What is the same for all starts, and then where each thread of each rank writes: in a window, so
 * much for each, a counter first. */
enum { CONSTANT = 4096, SLOT = OTHER_MOST, SLOTS = 100, SHARE = SLOT * (SLOTS + 1) };

static uint64_t constant_key(int rank)
{
    return mix_in(99, rank);
}

int64_t shared_constant(const struct line *line)
{
    return line->seed % (CONSTANT - SLOT);
}

/* --- files -------------------------------------------------------------------------------------*/

#ifdef HAVE_MPI_FILE_OPEN

static MPI_File file = MPI_FILE_NULL;
static _Atomic int64_t file_end;

/* Open MPI 4.1.4: a file operation that one thread completes crashes while another is in the MPI.
 */
static bool bears_files(void)
{
#ifdef OPEN_MPI
    return threads == 1;
#else
    return true;
#endif
}

static void open_file(void)
{
    char name[TEST_FILE_NAME];
    unsigned char bytes[CONSTANT];

    if (!test_file(name))
        return;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file);
    other_fill(bytes, CONSTANT, constant_key(0));
    MPI_File_write_at(file, 0, bytes, CONSTANT, MPI_BYTE, MPI_STATUS_IGNORE);
    file_end = CONSTANT;
}

MPI_Request file_start(struct other *o)
{
    MPI_Request r;

    if (o->way == READ) {
        MPI_File_iread_at(file, o->at, o->bytes, o->n, MPI_BYTE, &r);
        return r;
    }
    o->at = atomic_fetch_add(&file_end, o->n);
    MPI_File_iwrite_at(file, o->at, o->bytes, o->n, MPI_BYTE, &r);
    return r;
}

void file_check(const struct other *o)
{
    unsigned char bytes[SLOT];

    if (o->way == READ) {
        other_compare(o->bytes, o->n, o->at, constant_key(0), "read from a file");
        return;
    }
    MPI_File_read_at(file, o->at, bytes, o->n, MPI_BYTE, MPI_STATUS_IGNORE);
    other_compare(bytes, o->n, 0, o->key, "written to a file");
}

static void close_file(void)
{
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
}

#else

static const MPI_File file = MPI_FILE_NULL;

static bool bears_files(void)
{
    return false;
}

static void open_file(void)
{
}

MPI_Request file_start(struct other *o)
{
    (void)o;
    return MPI_REQUEST_NULL;
}

void file_check(const struct other *o)
{
    (void)o;
}

static void close_file(void)
{
}

#endif

/* --- windows -----------------------------------------------------------------------------------*/

static MPI_Win window = MPI_WIN_NULL;

#if MPI_VERSION >= 3

static unsigned char *memory;
static _Thread_local int slot;
static int64_t *due; /* sums in the counters that each thread has in each window */

/* Where a thread of this rank writes. */
static MPI_Aint share_of(int thread)
{
    return CONSTANT + SHARE * (MPI_Aint)(test_rank * threads + thread);
}

static void open_window(void)
{
    MPI_Aint size = CONSTANT + SHARE * (MPI_Aint)(test_size * threads);

    MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    memset(memory, 0, (size_t)size);
    other_fill(memory, CONSTANT, constant_key(test_rank));
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    due = calloc((size_t)(test_size * threads), sizeof *due);
}

MPI_Request window_start(struct other *o)
{
    MPI_Request r;

    if (o->way == GET) {
        MPI_Rget(o->bytes, o->n, MPI_BYTE, o->rank, o->at, o->n, MPI_BYTE, window, &r);
    } else if (o->way == PUT) {
        slot = slot % SLOTS + 1;
        o->at = share_of(thread_number) + slot * SLOT;
        MPI_Rput(o->bytes, o->n, MPI_BYTE, o->rank, o->at, o->n, MPI_BYTE, window, &r);
    } else {
        int64_t value = o->n;
        due[thread_number * test_size + o->rank] += value;
        memcpy(o->bytes, &value, sizeof value);
        MPI_Raccumulate(o->bytes, 1, MPI_INT64_T, o->rank, share_of(thread_number), 1, MPI_INT64_T,
                        MPI_SUM, window, &r);
    }
    return r;
}

static void read_back(void *bytes, int n, int rank, MPI_Aint at)
{
    MPI_Win_flush(rank, window);
    MPI_Get(bytes, n, MPI_BYTE, rank, at, n, MPI_BYTE, window);
    MPI_Win_flush(rank, window);
}

static void close_window(void)
{
    for (int i = 0; i < test_size * threads; i++) {
        int64_t sum;
        read_back(&sum, (int)sizeof sum, i % test_size, share_of(i / test_size));
        EXPECT_INT(sum, due[i], "accumulated at rank %d", i % test_size);
    }
    free(due);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

#else

static void open_window(void)
{
}

MPI_Request window_start(struct other *o)
{
    (void)o;
    return MPI_REQUEST_NULL;
}

static void read_back(void *bytes, int n, int rank, MPI_Aint at)
{
    (void)bytes, (void)n, (void)rank, (void)at;
}

static void close_window(void)
{
}

#endif

void window_check(const struct other *o)
{
    unsigned char bytes[SLOT];

    if (o->way == GET)
        other_compare(o->bytes, o->n, o->at, constant_key(o->rank), "got from a window");
    if (o->way != PUT)
        return;
    read_back(bytes, o->n, o->rank, o->at);
    other_compare(bytes, o->n, 0, o->key, "put into a window");
}

/* --- all ---------------------------------------------------------------------------------------*/

void shared_begin(bool files, bool windows)
{
    if (files && bears_files())
        open_file();
    if (windows)
        open_window();
}

void shared_end(void)
{
    close_file();
    if (window != MPI_WIN_NULL)
        close_window();
}

bool shared_has(int way)
{
    return way <= READ ? file != MPI_FILE_NULL : window != MPI_WIN_NULL;
}
