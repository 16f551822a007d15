/* SPDX-License-Identifier: MIT */
/* The fuzzer's requests that are neither collectives nor messages: generalized ones, and those of a
 * file of this rank and of a window of all, which live as long as a program. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GENERALIZED, WRITE, READ, PUT, GET, ACCUMULATE, NWAYS };

/* What is the same for all starts, and then where each rank writes: in a window, so much for each
 * rank, a counter first. */
enum { CONSTANT = 4096, SLOT = 256, SLOTS = 100, SHARE = SLOT * (SLOTS + 1) };

struct other {
    int way, n, rank; /* bytes, and whose window */
    int64_t at;
    unsigned char *bytes;
    uint64_t key;
    MPI_Request inner; /* generalized: what it stands for */
    bool told;         /* that it is complete */
};

static MPI_File file = MPI_FILE_NULL;
static int64_t file_end;
static MPI_Win window = MPI_WIN_NULL;
static _Atomic int freed, made; /* generalized requests */

static unsigned char byte_of(uint64_t key, int64_t i)
{
    return (unsigned char)mix64(key + (uint64_t)i);
}

static void fill(unsigned char *bytes, int n, uint64_t key)
{
    for (int i = 0; i < n; i++)
        bytes[i] = byte_of(key, i);
}

static void compare(const unsigned char *bytes, int n, int64_t first, uint64_t key,
                    const char *what)
{
    int i = 0;

    while (i < n && bytes[i] == byte_of(key, first + i))
        i++;
    EXPECT(i == n, "%s: byte %d of %d is wrong", what, i, n);
}

/* --- generalized requests ----------------------------------------------------------------------*/

/* Whether callbacks may use MPI: in MPI_THREAD_MULTIPLE, which the progress thread asks for,
 * MPICH 4.0.2 ends the process then, or hangs. */
static bool may_use_mpi(void)
{
#ifdef OPEN_MPI
    return true;
#else
    const char *progress = getenv("NBCSHIM_PROGRESS");
    return threads == 1 && !(progress && strcmp(progress, "thread") == 0);
#endif
}

static int query(void *state, MPI_Status *status)
{
    struct other *o = state;

    if (o->inner != MPI_REQUEST_NULL)
        MPI_Wait(&o->inner, MPI_STATUS_IGNORE);
    MPI_Status_set_elements(status, MPI_BYTE, o->n);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = 7;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    int one = 1, sum = 1;

    (void)state;
    if (may_use_mpi())
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    EXPECT(sum == 1, "a sum over one rank is %d", sum);
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static MPI_Request start_generalized(struct other *o)
{
    MPI_Request r;

    if (may_use_mpi())
        MPI_Ibarrier(MPI_COMM_SELF, &o->inner);
    MPI_Grequest_start(query, release, cancel, o, &r);
    made++;
    return r;
}

void others_go_on(int percent)
{
    for (int i = 0; i < pool->n; i++) {
        const struct item *item = pool->item[i];
        if (!item || !item->other || item->other->way != GENERALIZED || item->other->told ||
            !rng_chance(&own, percent))
            continue;
        item->other->told = true;
        MPI_Grequest_complete(pool->request[i]);
    }
}

/* --- files -------------------------------------------------------------------------------------*/

static uint64_t constant_key(int rank)
{
    return mix_in(99, rank);
}

static void open_file(void)
{
    char name[TEST_FILE_NAME];
    unsigned char bytes[CONSTANT];

    if (!test_file(name))
        return;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file);
    fill(bytes, CONSTANT, constant_key(0));
    MPI_File_write_at(file, 0, bytes, CONSTANT, MPI_BYTE, MPI_STATUS_IGNORE);
    file_end = CONSTANT;
}

static MPI_Request start_file(struct other *o)
{
    MPI_Request r;

    if (o->way == READ) {
        MPI_File_iread_at(file, o->at, o->bytes, o->n, MPI_BYTE, &r);
        return r;
    }
    o->at = file_end;
    file_end += o->n;
    MPI_File_iwrite_at(file, o->at, o->bytes, o->n, MPI_BYTE, &r);
    return r;
}

/* --- windows -----------------------------------------------------------------------------------*/

#if MPI_VERSION >= 3

static unsigned char *memory;
static int slot;
static int64_t *due; /* sums in the counters that this rank has in others' windows */

static void open_window(void)
{
    MPI_Aint size = CONSTANT + SHARE * (MPI_Aint)test_size;

    MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    memset(memory, 0, (size_t)size);
    fill(memory, CONSTANT, constant_key(test_rank));
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    due = calloc((size_t)test_size, sizeof *due);
    slot = 0;
}

static MPI_Aint my_share(void)
{
    return CONSTANT + SHARE * (MPI_Aint)test_rank;
}

static MPI_Request start_window(struct other *o)
{
    MPI_Request r;

    if (o->way == GET) {
        MPI_Rget(o->bytes, o->n, MPI_BYTE, o->rank, o->at, o->n, MPI_BYTE, window, &r);
    } else if (o->way == PUT) {
        slot = slot % SLOTS + 1;
        o->at = my_share() + slot * SLOT;
        MPI_Rput(o->bytes, o->n, MPI_BYTE, o->rank, o->at, o->n, MPI_BYTE, window, &r);
    } else {
        int64_t value = o->n;
        due[o->rank] += value;
        memcpy(o->bytes, &value, sizeof value);
        MPI_Raccumulate(o->bytes, 1, MPI_INT64_T, o->rank, my_share(), 1, MPI_INT64_T, MPI_SUM,
                        window, &r);
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
    for (int i = 0; i < test_size; i++) {
        int64_t sum;
        read_back(&sum, (int)sizeof sum, i, my_share());
        EXPECT(sum == due[i], "accumulated at rank %d: %d, not %d", i, (int)sum, (int)due[i]);
    }
    free(due);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

#else

static void open_window(void)
{
}

static MPI_Request start_window(struct other *o)
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

/* --- all ---------------------------------------------------------------------------------------*/

/* Files and windows are for programs of one thread. */
void others_begin(const struct program *p)
{
    bool files = false, windows = false;

    for (int i = 0; i < p->n && threads == 1; i++) {
        int64_t way = p->line[i].verb == OTHER ? p->line[i].way : 0;
        files = files || way == WRITE || way == READ;
        windows = windows || way >= PUT;
    }
    made = freed = 0;
    if (files)
        open_file();
    if (windows)
        open_window();
}

void others_end(void)
{
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
    if (window != MPI_WIN_NULL)
        close_window();
    EXPECT(freed == made, "%d of %d generalized requests were freed", freed, made);
}

static bool is_there(int way)
{
    return way == GENERALIZED || (way <= READ ? file != MPI_FILE_NULL : window != MPI_WIN_NULL);
}

void do_other(const struct line *line, struct comm *c)
{
    int way = (int)(line->way % NWAYS), n = (int)(8 + line->bytes % (SLOT - 8));
    struct item *item;
    struct other *o;

    if (!is_there(way))
        return;
#ifndef OPEN_MPI
    /* 4.0.2: MPI_Testall of a file's request, complete, and another that is not: crashes. */
    pool->no_testall = pool->no_testall || way == WRITE || way == READ;
#endif
    item = item_new(line, c);
    o = item->other = test_alloc(sizeof *o);
    *o = (struct other){.way = way, .n = n, .key = mix_in((uint64_t)line->seed, test_rank)};
    o->rank = (int)((test_rank + line->shift) % test_size);
    o->at = line->seed % (CONSTANT - SLOT);
    o->inner = MPI_REQUEST_NULL;
    o->bytes = test_alloc(SLOT);
    fill(o->bytes, n, o->key);
    if (way == READ || way == GET)
        memset(o->bytes, 0, SLOT);
    pool_add(pool,
             way == GENERALIZED ? start_generalized(o)
             : way <= READ      ? start_file(o)
                                : start_window(o),
             item, true);
}

static void check_status(const struct other *o, const MPI_Status *status)
{
    int n;

    if (!status || o->way > READ)
        return;
    MPI_Get_count(status, MPI_BYTE, &n);
    EXPECT(n == o->n, "request of way %d: a status says %d bytes, not %d", o->way, n, o->n);
    EXPECT(o->way != GENERALIZED || (status->MPI_SOURCE == 7 && status->MPI_TAG == 7),
           "the status of a generalized request is from %d, tag %d", status->MPI_SOURCE,
           status->MPI_TAG);
}

void other_check(const struct other *o, const MPI_Status *status)
{
    unsigned char bytes[SLOT];

    check_status(o, status);
    switch (o->way) {
    case WRITE:
        MPI_File_read_at(file, o->at, bytes, o->n, MPI_BYTE, MPI_STATUS_IGNORE);
        compare(bytes, o->n, 0, o->key, "written to a file");
        break;
    case READ:
        compare(o->bytes, o->n, o->at, constant_key(0), "read from a file");
        break;
    case PUT:
        read_back(bytes, o->n, o->rank, o->at);
        compare(bytes, o->n, 0, o->key, "put into a window");
        break;
    case GET:
        compare(o->bytes, o->n, o->at, constant_key(o->rank), "got from a window");
        break;
    default:
        EXPECT(o->inner == MPI_REQUEST_NULL, "a generalized request was not queried");
        break;
    }
}

void other_delete(struct other *o)
{
    free(o->bytes);
    free(o);
}
