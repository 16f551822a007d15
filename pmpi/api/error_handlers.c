/* SPDX-License-Identifier: MIT */
/* MPI_Error_class, MPI_Comm_set_errhandler and MPI_Comm_get_errhandler. */
#include "base/errors.h"
#include "base/lock.h"
#include "below/export.h"

/* To the program our classes are the standard's. */
EXPORT(int, Error_class, (int errorcode, int *errorclass), (errorcode, errorclass))
{
    nbc_next_resolve(); /* programs may call it before MPI_Init: MPI-4.1 11.4.1 */
    int error = NEXT(Error_class)(errorcode, errorclass);
    if (!error)
        *errorclass = nbc_error_class_shown(*errorclass);
    return error;
}

/* We put other handlers there for a moment (types.c), under the lock: one that another thread sets
 * or asks for meanwhile is the program's all the same. */
static bool is_shared(MPI_Comm comm)
{
    return nbc_threaded && !nbc_inside && (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF);
}

EXPORT(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
{
    if (!is_shared(comm))
        return NEXT(Comm_set_errhandler)(comm, handler);
    nbc_lock();
    int error = NEXT(Comm_set_errhandler)(comm, handler);
    nbc_unlock();
    return error;
}

EXPORT(int, Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *handler), (comm, handler))
{
    if (!is_shared(comm))
        return NEXT(Comm_get_errhandler)(comm, handler);
    nbc_lock();
    int error = NEXT(Comm_get_errhandler)(comm, handler);
    nbc_unlock();
    return error;
}
