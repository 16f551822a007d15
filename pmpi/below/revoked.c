/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/revoked.h"

#include "config.h"

#include <dlfcn.h>
#include <string.h>

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
    static const char name[] = "PMPIX_Comm_is_revoked";
    void *object = dlsym(RTLD_NEXT, name);
    if (!object) /* a program that is linked statically */
        object = dlsym(RTLD_DEFAULT, name);
    memcpy(&ask, &object, sizeof ask);
    nbc_may_be_revoked = ask;
#endif
}

bool nbc_revoked_ask(MPI_Comm comm)
{
    int flag = 0;
    return !ask(comm, &flag) && flag;
}
