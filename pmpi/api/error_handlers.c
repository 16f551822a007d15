/* SPDX-License-Identifier: MIT */
/* MPI_Error_class, MPI_Error_string, MPI_Comm_set_errhandler and MPI_Comm_get_errhandler. */
#include "api/idup.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/state.h"
#include "below/export.h"

NBC_ARCHIVE_MEMBER(error_handlers)

/* Shows the program the standard class of an error of nbcshim. */
EXPORT(int, Error_class, (int errorcode, int *errorclass), (errorcode, errorclass))
{
    nbc_next_resolve(); /* programs may call it before MPI_Init: MPI-4.1 11.4.1 */
    int error = NEXT(Error_class)(errorcode, errorclass);
    if (!error)
        *errorclass = nbc_error_class_shown(*errorclass);
    return error;
}

/* After the end of the MPI too (MPI-4.1 11.4.1), where MPICH 4.0.2 has no text of a code that was
 * added, and crashes. The class of an error of nbcshim has one. */
EXPORT(int, Error_string, (int errorcode, char *string, int *resultlen),
       (errorcode, string, resultlen))
{
    int class;
    nbc_next_resolve();
    if (!nbc_enabled && !NEXT(Error_class)(errorcode, &class) &&
        class != nbc_error_class_shown(class))
        errorcode = nbc_error_class_shown(class);
    return NEXT(Error_string)(errorcode, string, resultlen);
}

/* nbcshim sets other error handlers on these communicators for a moment, under the lock (hints.c).
 * The lock hides them from another thread of the program that sets or gets a handler meanwhile. */
static bool needs_lock(MPI_Comm comm)
{
    return nbc_threaded && !nbc_inside && (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF);
}

EXPORT(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
{
    nbc_idup_start_all(comm);
    if (!needs_lock(comm))
        return NEXT(Comm_set_errhandler)(comm, handler);
    nbc_lock();
    int error = NEXT(Comm_set_errhandler)(comm, handler);
    nbc_unlock();
    return error;
}

EXPORT(int, Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *handler), (comm, handler))
{
    if (!needs_lock(comm))
        return NEXT(Comm_get_errhandler)(comm, handler);
    nbc_lock();
    int error = NEXT(Comm_get_errhandler)(comm, handler);
    nbc_unlock();
    return error;
}
