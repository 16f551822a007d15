/* SPDX-License-Identifier: MIT */
#include "op/message.h"

#include "base/state.h"
#include "base/tag_space.h"

#include "block.h"

bool nbc_inside_mpi_loop;
NBC_PER_THREAD bool nbc_is_below;
unsigned nbc_operations_ended; /* under the lock */

static MPI_Request dummy = MPI_REQUEST_NULL; /* made when first needed; under the lock */

MPI_Request nbc_dummy_get(void)
{
    if (dummy == MPI_REQUEST_NULL && nbc_self_comm != MPI_COMM_NULL &&
        NEXT(Irecv)(NULL, 0, MPI_BYTE, 0, nbc_dummy_tag(), nbc_self_comm, &dummy))
        dummy = MPI_REQUEST_NULL; /* unreached: no memory */
    return dummy;
}

void nbc_dummy_cleanup(void)
{
    if (dummy == MPI_REQUEST_NULL)
        return;
    NEXT(Cancel)(&dummy);
    NEXT(Wait)(&dummy, MPI_STATUS_IGNORE);
}

void nbc_poll_the_mpi(void)
{
    int flag;
    if (nbc_dummy_get() != MPI_REQUEST_NULL)
        NEXT(Test)(&dummy, &flag, MPI_STATUS_IGNORE);
}

/* A message with a count above INT_MAX is one element of a datatype of that many elements: whole
 * chunks and a remainder. */
static int large_type_new(int64_t count, MPI_Datatype type, MPI_Datatype *large)
{
    MPI_Aint lb, extent, displs[2] = {0, 0};
    MPI_Datatype chunk, parts[2] = {MPI_DATATYPE_NULL, type};
    int lengths[2] = {(int)(count / NBC_CHUNK), (int)(count % NBC_CHUNK)};
    int error = NEXT(Type_contiguous)(NBC_CHUNK, type, &chunk);
    if (error)
        return error; /* unreached: above 2 GiB */
    NEXT(Type_get_extent)(type, &lb, &extent);
    /* The extent of n elements is n extents only if that of an element is not negative. */
    error = NEXT(Type_create_resized)(chunk, 0, (MPI_Aint)NBC_CHUNK * extent, &parts[0]);
    NEXT(Type_free)(&chunk);
    if (error)
        return error; /* unreached: above 2 GiB */
    displs[1] = (MPI_Aint)lengths[0] * NBC_CHUNK * extent;
    error = NEXT(Type_create_struct)(2, lengths, displs, parts, large);
    NEXT(Type_free)(&parts[0]);
    return error ? error : NEXT(Type_commit)(large);
}

int nbc_message_post_large(bool sends, void *addr, int64_t count, MPI_Datatype type, int peer,
                           int tag, MPI_Comm comm, MPI_Request *request)
{
    MPI_Datatype large;
    int error = large_type_new(count, type, &large);
    if (error)
        return error; /* unreached: the MPI fails */
    error = message_post(sends, addr, 1, large, peer, tag, comm, request);
    NEXT(Type_free)(&large);
    return error; /* unreached: the MPI fails */
}

/* Sends cannot be cancelled. */
bool nbc_message_give_up(nbc_handle h, bool sends, bool *cancelled)
{
    bool over;
    int flag = 0;
    MPI_Status status;
    MPI_Request request = nbc_message_load(&h);
    if (!sends)
        NEXT(Cancel)(&request);
    nbc_message_end(&request, &status, false, &over);
    if (!over)
        NEXT(Request_free)(&request);
    else if (cancelled)
        NEXT(Test_cancelled)(&status, &flag);
    if (cancelled)
        *cancelled = flag;
    return over;
}

/* MPI_Pack and MPI_Unpack have int positions. Larger data is packed in pieces of whole elements;
 * this is the number of elements of a piece. */
static int64_t piece_of(int64_t size)
{
    return size ? nbc_div_up(NBC_CHUNK, size) : INT_MAX;
}

/* Elements at MPI_BOTTOM: MPICH refuses a null buffer in MPI_Pack and MPI_Unpack. Replaces them by
 * one element of a datatype whose displacements count from where the data begins. If it sets *made,
 * the caller frees *type. */
static int rebase_from_bottom(const struct nbc_type *t, uintptr_t *addr, int *n, MPI_Datatype *type,
                              bool *made)
{
    MPI_Aint displ = (MPI_Aint)-t->true_lb;
    MPI_Datatype given = *type;
    *made = false;
    if (*addr)
        return MPI_SUCCESS;
    int error = NEXT(Type_create_struct)(1, n, &displ, &given, type);
    if (error)
        return error; /* unreached: the MPI fails */
    *addr = (uintptr_t)t->true_lb;
    *n = 1;
    *made = true;
    return NEXT(Type_commit)(type);
}

/* n elements at an address, as bytes; into these, or from them. */
static int move_piece(const struct nbc_run *r, bool packs, uintptr_t at, int n, int type,
                      char *bytes, int size)
{
    MPI_Datatype handle = r->handles.types[type]->handle;
    int position = 0;
    bool made;
    int error = rebase_from_bottom(&r->handles.types[type]->layout, &at, &n, &handle, &made);
    if (!error)
        error = packs ? NEXT(Pack)((void *)at, n, handle, bytes, size, &position, r->comm)
                      : NEXT(Unpack)(bytes, size, &position, (void *)at, n, handle, r->comm);
    if (made)
        NEXT(Type_free)(&handle);
    /* In programs with hundreds of derived datatypes MPICH 4.0.2 may pack a few bytes too few
     * without returning an error. An error is better than wrong data. */
    return error || position == size ? error : MPI_ERR_INTERN;
}

int nbc_message_pack(const struct nbc_run *r, bool packs, uintptr_t at, int64_t count, int type,
                     void *bytes)
{
    const struct nbc_type *t = &r->handles.types[type]->layout;
    int64_t piece = piece_of(t->size);
    for (int64_t i = 0; i < count; i += piece) { /* mutants: <= for <: a copy of nothing is none */
        int n = (int)(count - i < piece ? count - i : piece);
        /* mutants: - for +: above 2 GiB, which test/mpi/large has */
        int error = move_piece(r, packs, at + i * t->extent, n, type, (char *)bytes + i * t->size,
                               (int)(n * t->size));
        if (error)
            return error; /* unreached: the MPI fails */
    }
    return 0;
}
