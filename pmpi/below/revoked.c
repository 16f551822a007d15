/* SPDX-License-Identifier: MIT */
#include "below/revoked.h"

#include "below/next.h"

bool nbc_may_be_revoked;

/* A library that was built on Open MPI 4 runs on Open MPI 5 too, whose mpi.h has this number. */
enum { OF_OPEN_MPI_5 = 77 };

#if defined MPI_ERR_REVOKED
const int nbc_error_revoked = MPI_ERR_REVOKED;
#elif defined MPIX_ERR_REVOKED
const int nbc_error_revoked = MPIX_ERR_REVOKED;
#else
const int nbc_error_revoked = OF_OPEN_MPI_5;
#endif

typedef int asks(MPI_Comm comm, int *flag);

static asks *ask;

/* Under the ABI of MPI-5 and in another MPI than these two families the error has no known number.
 */
void nbc_revoked_setup(void)
{
#if defined OPEN_MPI || defined MPIX_ERR_REVOKED
    ask = (asks *)nbc_next_function("PMPIX_Comm_is_revoked");
    nbc_may_be_revoked = ask;
#endif
}

bool nbc_revoked_ask(MPI_Comm comm)
{
    int flag = 0;
    return !ask(comm, &flag) && flag;
}
