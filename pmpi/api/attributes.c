/* SPDX-License-Identifier: MIT */
/* MPI_Comm_set_attr, MPI_Comm_delete_attr and MPI_Comm_free_keyval: a program may not change the
 * predefined attributes (MPI-4.1 7.7.4), and the MPI knows MPI_ICOLL_MAX_OUTSTANDING as any keyval.
 * Functions that bypass these, as those of Fortran do, change its value; nbcshim does not read it.
 */
#include "nbcshim.h"

#include "api/idup.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/state.h"
#include "below/export.h"

NBC_ARCHIVE_MEMBER(attributes)

static bool is_predefined(int keyval)
{
    return nbc_enabled && !nbc_inside && keyval == nbcshim_icoll_max_outstanding;
}

EXPORT(int, Comm_set_attr, (MPI_Comm comm, int keyval, void *value), (comm, keyval, value))
{
    nbc_idup_start_all(comm);
    return is_predefined(keyval) ? nbc_raise(comm, MPI_ERR_KEYVAL)
                                 : NEXT(Comm_set_attr)(comm, keyval, value);
}

EXPORT(int, Comm_delete_attr, (MPI_Comm comm, int keyval), (comm, keyval))
{
    nbc_idup_start_all(comm);
    return is_predefined(keyval) ? nbc_raise(comm, MPI_ERR_KEYVAL)
                                 : NEXT(Comm_delete_attr)(comm, keyval);
}

EXPORT(int, Comm_free_keyval, (int *keyval), (keyval))
{
    return keyval && is_predefined(*keyval) ? nbc_raise(MPI_COMM_NULL, MPI_ERR_KEYVAL)
                                            : NEXT(Comm_free_keyval)(keyval);
}
