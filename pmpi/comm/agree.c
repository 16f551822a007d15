/* SPDX-License-Identifier: MIT */
#include "comm/agree.h"

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
