/* SPDX-License-Identifier: MIT */
#include "comm/agree.h"

/* Between two groups each reduction brings what the other one has, so the second brings back what
 * this one had. */
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
