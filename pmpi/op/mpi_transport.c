/* SPDX-License-Identifier: MIT */
#include "op/mpi_transport.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "op/run.h"
#include "op/types.h"

#include "block.h"
#include "coll.h"

MPI_Comm nbc_transport_alone = MPI_COMM_NULL;

/* nbc_handle and MPI_Request may differ in width; one is kept in the other's bits. */
static void store(nbc_handle *h, MPI_Request request)
{
    *h = 0;
    memcpy(h, &request, sizeof request);
}

static MPI_Request load(const nbc_handle *h)
{
    MPI_Request request;
    memcpy(&request, h, sizeof request);
    return request;
}

/* Counts above INT_MAX travel as one element of a type that stands for them all: whole chunks,
 * and what is left. */
enum { CHUNK = 1 << 30 };

static int make_large(int64_t count, MPI_Datatype type, MPI_Datatype *large)
{
    MPI_Aint lb, extent, displs[2] = {0, 0};
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, type};
    int lengths[2] = {(int)(count / CHUNK), (int)(count % CHUNK)};
    int error = NEXT(Type_contiguous)(CHUNK, type, &parts[0]);
    if (error)
        return error;
    NEXT(Type_get_extent)(type, &lb, &extent);
    displs[1] = (MPI_Aint)lengths[0] * CHUNK * extent;
    error = NEXT(Type_create_struct)(2, lengths, displs, parts, large);
    NEXT(Type_free)(&parts[0]);
    return error ? error : NEXT(Type_commit)(large);
}

static int post(bool sends, void *addr, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    return sends ? NEXT(Isend)(addr, n, type, peer, tag, comm, request)
                 : NEXT(Irecv)(addr, n, type, peer, tag, comm, request);
}

static int post_any(bool sends, void *addr, int64_t count, MPI_Datatype type, int peer, int tag,
                    MPI_Comm comm, MPI_Request *request)
{
    if (count <= INT_MAX)
        return post(sends, addr, (int)count, type, peer, tag, comm, request);
    MPI_Datatype large;
    int error = make_large(count, type, &large);
    if (error)
        return error;
    error = post(sends, addr, 1, large, peer, tag, comm, request);
    NEXT(Type_free)(&large);
    return error;
}

static int send(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    const struct nbc_run *r = self;
    MPI_Request request;
    int error = post_any(true, (void *)addr, count, r->holdings.types[type]->handle, peer, r->tag,
                         r->comm, &request);
    if (!error)
        store(h, request);
    return error;
}

static int receive(void *self, uintptr_t addr, int64_t count, int type, int peer, nbc_handle *h)
{
    const struct nbc_run *r = self;
    MPI_Request request;
    int error = post_any(false, (void *)addr, count, r->holdings.types[type]->handle, peer, r->tag,
                         r->comm, &request);
    if (!error)
        store(h, request);
    return error;
}

static int poll_single(nbc_handle *h, int *done, int *ndone)
{
    MPI_Request request = load(h);
    int flag = 0;
    int error = NEXT(Test)(&request, &flag, MPI_STATUS_IGNORE);
    if (error)
        flag = 1; /* a failed request is gone, like a completed one */
    done[0] = 0;
    *ndone = flag;
    return error;
}

/* So many messages of one operation are tested in one call. */
enum { BATCH = 32 };

static int compare(const void *x, const void *y)
{
    return *(const int *)x - *(const int *)y;
}

static int first_error(int error, const MPI_Status *statuses, int n)
{
    for (int i = 0; error == MPI_ERR_IN_STATUS && i < n; i++)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS)
            error = statuses[i].MPI_ERROR;
    return error;
}

static int poll_batch(nbc_handle *h, int n, int *done, int *ndone)
{
    MPI_Request batch[BATCH];
    MPI_Status statuses[BATCH];
    for (int i = 0; i < n; i++)
        batch[i] = load(&h[i]);
    int outcount;
    int error = NEXT(Testsome)(n, batch, &outcount, done, statuses);
    if (outcount == MPI_UNDEFINED)
        outcount = 0;
    *ndone = outcount;
    return first_error(error, statuses, outcount);
}

static int poll(void *self, int n, nbc_handle *h, int *done, int *ndone)
{
    struct nbc_run *r = self;
    if (n == 1)
        return poll_single(h, done, ndone);
    int first = 0;
    if (n > BATCH) { /* a part of them, another one each time */
        first = r->cursor < n ? r->cursor : 0;
        r->cursor = first + BATCH;
        n = n - first < BATCH ? n - first : BATCH;
    }
    int error = poll_batch(h + first, n, done, ndone);
    if (*ndone > 1)
        qsort(done, *ndone, sizeof *done, compare); /* the standard names no order */
    for (int i = 0; i < *ndone; i++)
        done[i] += first;
    return error;
}

static bool drop(void *self, nbc_handle h, bool is_send)
{
    (void)self;
    MPI_Request request = load(&h);
    MPI_Status status;
    int cancelled = 0;
    if (is_send) {
        NEXT(Request_free)(&request);
        return false;
    }
    /* A cancelled receive completes, by itself or with its message: the wait is local. */
    if (NEXT(Cancel)(&request) || NEXT(Wait)(&request, &status))
        return false;
    NEXT(Test_cancelled)(&status, &cancelled);
    return !cancelled;
}

static const struct nbc_type *layout(const struct nbc_run *r, int type)
{
    return &r->holdings.types[type]->layout;
}

/* MPI_Pack and MPI_Unpack take int positions: large data goes in pieces of whole elements. */
static int64_t piece_of(int64_t size)
{
    return size ? nbc_div_up(CHUNK, size) : INT_MAX;
}

/* MPICH 4.0.2 packs a few bytes too little, without an error, in programs with hundreds of derived
 * types: better none than wrong data. */
static int check_packed(int error, int position, int size)
{
    return error || position == size ? error : MPI_ERR_INTERN;
}

static int pack_piece(const struct nbc_run *r, char *bytes, int size, uintptr_t from, int n,
                      int type)
{
    MPI_Datatype handle = r->holdings.types[type]->handle;
    int position = 0;
    bool made;
    int error = nbc_leave_bottom(layout(r, type), &from, &n, &handle, &made);
    if (!error)
        error = NEXT(Pack)((void *)from, n, handle, bytes, size, &position, r->comm);
    if (made)
        NEXT(Type_free)(&handle);
    return check_packed(error, position, size);
}

static int unpack_piece(const struct nbc_run *r, uintptr_t to, int n, int type, const char *bytes,
                        int size)
{
    MPI_Datatype handle = r->holdings.types[type]->handle;
    int position = 0;
    bool made;
    int error = nbc_leave_bottom(layout(r, type), &to, &n, &handle, &made);
    if (!error)
        error =
            NEXT(Unpack)((void *)(uintptr_t)bytes, size, &position, (void *)to, n, handle, r->comm);
    if (made)
        NEXT(Type_free)(&handle);
    return check_packed(error, position, size);
}

static int pack(const struct nbc_run *r, char *bytes, uintptr_t from, int64_t count, int type)
{
    const struct nbc_type *t = layout(r, type);
    int64_t piece = piece_of(t->size);
    for (int64_t i = 0; i < count; i += piece) {
        int n = (int)(count - i < piece ? count - i : piece);
        int error =
            pack_piece(r, bytes + i * t->size, (int)(n * t->size), from + i * t->extent, n, type);
        if (error)
            return error;
    }
    return 0;
}

static int unpack(const struct nbc_run *r, uintptr_t to, int64_t count, int type, const char *bytes)
{
    const struct nbc_type *t = layout(r, type);
    int64_t piece = piece_of(t->size);
    for (int64_t i = 0; i < count; i += piece) {
        int n = (int)(count - i < piece ? count - i : piece);
        int error =
            unpack_piece(r, to + i * t->extent, n, type, bytes + i * t->size, (int)(n * t->size));
        if (error)
            return error;
    }
    return 0;
}

/* One element of more bytes than MPI_Pack counts goes as a message to ourselves: an operation has
 * no others to its own rank. An intercommunicator has no way to that rank. */
static int copy_by_message(const struct nbc_run *r, uintptr_t dst, int64_t dcount, int dtype,
                           uintptr_t src, int64_t scount, int stype)
{
    int inter, rank;
    MPI_Request request[2];
    MPI_Status statuses[2];
    NEXT(Comm_test_inter)(r->comm, &inter);
    MPI_Comm comm = inter ? nbc_transport_alone : r->comm;
    if (comm == MPI_COMM_NULL)
        return MPI_ERR_OTHER;
    NEXT(Comm_rank)(comm, &rank);
    int error = post_any(false, (void *)dst, dcount, r->holdings.types[dtype]->handle, rank, r->tag,
                         comm, &request[0]);
    if (error)
        return error;
    error = post_any(true, (void *)src, scount, r->holdings.types[stype]->handle, rank, r->tag,
                     comm, &request[1]);
    if (!error) {
        error = NEXT(Waitall)(2, request, statuses);
        return first_error(error, statuses, 2);
    }
    NEXT(Cancel)(&request[0]);
    NEXT(Wait)(&request[0], MPI_STATUS_IGNORE);
    return error;
}

static int copy(void *self, uintptr_t dst, int64_t dcount, int dtype, uintptr_t src, int64_t scount,
                int stype)
{
    const struct nbc_run *r = self;
    const struct nbc_type *d = layout(r, dtype), *s = layout(r, stype);
    int64_t n = scount * s->size;
    if (n != dcount * d->size)
        return MPI_ERR_TRUNCATE;
    if (n == 0)
        return 0;
    if (d->packed && s->packed) {
        memcpy((void *)dst, (void *)src, n);
        return 0;
    }
    if ((!d->packed && d->size > INT_MAX) || (!s->packed && s->size > INT_MAX))
        return copy_by_message(r, dst, dcount, dtype, src, scount, stype);
    if (d->packed)
        return pack(r, (char *)dst, src, scount, stype);
    if (s->packed)
        return unpack(r, dst, dcount, dtype, (char *)src);
    char *bytes = malloc(n);
    if (!bytes)
        return MPI_ERR_NO_MEM;
    int error = pack(r, bytes, src, scount, stype);
    if (!error)
        error = unpack(r, dst, dcount, dtype, bytes);
    free(bytes);
    return error;
}

/* inout = in op inout. */
static int reduce_local(const struct nbc_run *r, uintptr_t in, uintptr_t inout, int64_t count,
                        int type)
{
    int64_t extent = layout(r, type)->extent;
    for (int64_t i = 0; i < count; i += CHUNK) {
        int n = (int)(count - i < CHUNK ? count - i : CHUNK);
        int error =
            NEXT(Reduce_local)((void *)(in + i * extent), (void *)(inout + i * extent), n,
                               r->holdings.types[type]->handle, r->holdings.reducer->handle);
        if (error)
            return error;
    }
    return 0;
}

static int reduce(void *self, uintptr_t dst, uintptr_t left, uintptr_t right, int64_t count,
                  int type)
{
    const struct nbc_run *r = self;
    if (r->kernel) {
        r->kernel((void *)dst, (void *)left, (void *)right, count);
        return MPI_SUCCESS;
    }
    if (dst != right) {
        int error = copy(self, dst, count, type, right, count, type);
        if (error)
            return error;
    }
    return reduce_local(r, left, dst, count, type);
}

const struct nbc_transport nbc_mpi_transport = {
    .send = send,
    .recv = receive,
    .poll = poll,
    .drop = drop,
    .copy = copy,
    .reduce = reduce,
};
