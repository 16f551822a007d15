/* SPDX-License-Identifier: MIT */
/* The fuzzer's requests that are neither collectives nor messages: generalized ones, and those of a
 * file or a window. */
#include "fuzz_others.h"

#include <stdlib.h>
#include <string.h>

static _Atomic int freed, made; /* generalized requests */

static unsigned char byte_of(uint64_t key, int64_t i)
{
    return (unsigned char)mix64(key + (uint64_t)i);
}

void other_fill(unsigned char *bytes, int n, uint64_t key)
{
    for (int i = 0; i < n; i++)
        bytes[i] = byte_of(key, i);
}

void other_compare(const unsigned char *bytes, int n, int64_t first, uint64_t key, const char *what)
{
    int i = 0;

    while (i < n && bytes[i] == byte_of(key, first + i))
        i++;
    EXPECT_INT(i, n, "bytes of %s that are right", what);
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
    EXPECT_INT(sum, 1);
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

/* --- all ---------------------------------------------------------------------------------------*/

void others_begin(const struct program *p)
{
    bool files = false, windows = false;

    for (int i = 0; i < p->n; i++) {
        int64_t way = p->line[i].verb == OTHER ? p->line[i].way : 0;
        files = files || way == WRITE || way == READ;
        windows = windows || way >= PUT;
    }
    made = freed = 0;
    shared_begin(files, windows);
}

void others_end(void)
{
    shared_end();
    EXPECT_INT(freed, made, "generalized requests");
}

void do_other(const struct line *line, struct comm *c)
{
    int way = (int)(line->way % NWAYS), n = (int)(8 + line->bytes % (OTHER_MOST - 8));
    struct item *item;
    struct other *o;

    if (way != GENERALIZED && !shared_has(way))
        return;
#ifndef OPEN_MPI
    /* 4.0.2: MPI_Testall of a file's request, complete, and another that is not: crashes. */
    pool->has_files = pool->has_files || way == WRITE || way == READ;
#endif
    item = item_new(line, c);
    o = item->other = test_alloc(sizeof *o);
    *o = (struct other){.way = way, .n = n, .key = mix_in((uint64_t)line->seed, test_rank)};
    o->rank = (int)((test_rank + line->shift) % test_size);
    o->at = shared_constant(line);
    o->inner = MPI_REQUEST_NULL;
    o->bytes = test_alloc(OTHER_MOST);
    other_fill(o->bytes, n, o->key);
    if (way == READ || way == GET)
        memset(o->bytes, 0, OTHER_MOST);
    pool_add(pool,
             way == GENERALIZED ? start_generalized(o)
             : way <= READ      ? file_start(o)
                                : window_start(o),
             item, true);
}

static void check_status(const struct other *o, const MPI_Status *status)
{
    int n;

    if (!status || o->way > READ)
        return;
    MPI_Get_count(status, MPI_BYTE, &n);
    EXPECT_INT(n, o->n, "status of a request of way %d", o->way);
    EXPECT(o->way != GENERALIZED || (status->MPI_SOURCE == 7 && status->MPI_TAG == 7),
           "the status of a generalized request is from %d, tag %d", status->MPI_SOURCE,
           status->MPI_TAG);
}

void other_check(const struct other *o, const MPI_Status *status)
{
    check_status(o, status);
    if (o->way == GENERALIZED)
        EXPECT(o->inner == MPI_REQUEST_NULL, "a generalized request was not queried");
    else if (o->way <= READ)
        file_check(o);
    else
        window_check(o);
}

void other_delete(struct other *o)
{
    free(o->bytes);
    free(o);
}
