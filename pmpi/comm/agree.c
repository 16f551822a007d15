/* SPDX-License-Identifier: MIT */
#include "comm/agree.h"

#include "ranges.h"

/* On an intercommunicator a reduction returns the result of the remote group. A second reduction
 * returns that of this group. */
int nbc_agree_any(MPI_Comm comm, bool mine, bool *any)
{
    int inter, own = mine, first = 0, back = 0;
    NEXT(Comm_test_inter)(comm, &inter);
    int error = NEXT(Allreduce)(&own, &first, 1, MPI_INT, MPI_MAX, comm);
    if (!error && inter)
        error = NEXT(Allreduce)(&first, &back, 1, MPI_INT, MPI_MAX, comm);
    if (!error)
        *any = first || back;
    return error;
}

int nbc_agree_and(MPI_Comm comm, const uint64_t *mine, uint64_t *all, int words)
{
    int inter;
    void *in = (void *)(uintptr_t)mine;
    NEXT(Comm_test_inter)(comm, &inter);
    if (!inter)
        return NEXT(Allreduce)(in, all, words, MPI_UNSIGNED_LONG_LONG, MPI_BAND, comm);
    uint64_t remote[NBC_RANGE_WORDS];
    int error = NEXT(Allreduce)(in, remote, words, MPI_UNSIGNED_LONG_LONG, MPI_BAND, comm);
    if (!error)
        error = NEXT(Allreduce)(remote, all, words, MPI_UNSIGNED_LONG_LONG, MPI_BAND, comm);
    for (int i = 0; i < words && !error; i++)
        all[i] &= remote[i];
    return error;
}
