/* SPDX-License-Identifier: MIT */
/* What a program says of a communicator: its attributes, error handler, hints and name; and
 * MPI_Error_class and MPI_Error_string. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "nbcshim.h"

#include "api/setup.h"
#include "base/errors.h"
#include "base/hints.h"
#include "base/lock.h"
#include "base/state.h"
#include "below/export.h"
#include "below/quirks.h"
#include "comm/context.h"

NBC_ARCHIVE_MEMBER(properties)

/* --- attributes ------------------------------------------------------------------------------- */

/* A program may not change the predefined attributes (MPI-4.1 7.7.4), and the MPI knows
 * MPI_ICOLL_MAX_OUTSTANDING as any keyval. Functions that bypass these, as those of Fortran do,
 * change its value; nbcshim does not read it. */
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

/* --- errors ----------------------------------------------------------------------------------- */

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

/* nbcshim sets other error handlers on these communicators for a moment (nbc_quirks_mute), hidden
 * from another thread of the program that sets or gets a handler meanwhile. */
static bool needs_lock(MPI_Comm comm)
{
    return nbc_threaded && !nbc_inside && (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF);
}

EXPORT(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
{
    nbc_idup_start_all(comm);
    if (!needs_lock(comm))
        return NEXT(Comm_set_errhandler)(comm, handler);
    pthread_mutex_lock(&nbc_quirks_handlers);
    int error = NEXT(Comm_set_errhandler)(comm, handler);
    pthread_mutex_unlock(&nbc_quirks_handlers);
    return error;
}

EXPORT(int, Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *handler), (comm, handler))
{
    if (!needs_lock(comm))
        return NEXT(Comm_get_errhandler)(comm, handler);
    pthread_mutex_lock(&nbc_quirks_handlers);
    int error = NEXT(Comm_get_errhandler)(comm, handler);
    pthread_mutex_unlock(&nbc_quirks_handlers);
    return error;
}

/* --- hints and name --------------------------------------------------------------------------- */

#ifdef HAVE_MPI_COMM_SET_INFO
EXPORT(int, Comm_set_info, (MPI_Comm comm, MPI_Info info), (comm, info))
{
    int error = NEXT(Comm_set_info)(comm, info);
    return error || !nbc_enabled || nbc_inside ? error : nbc_context_hint(comm, info);
}
#endif

#ifdef HAVE_MPI_COMM_GET_INFO
EXPORT(int, Comm_get_info, (MPI_Comm comm, MPI_Info *info), (comm, info))
{
    static const struct nbc_hints none;
    int error = NEXT(Comm_get_info)(comm, info);
    if (error || !nbc_enabled || nbc_inside)
        return error;
    nbc_lock();
    const struct nbc_context *c = nbc_context_find(comm);
    error = c ? nbc_hints_write(c->hints ? c->hints : &none, *info) : MPI_SUCCESS;
    nbc_unlock();
    return error;
}
#endif

/* Takes the lock, unless its holder keeps it for long: it may be in an operator of the program that
 * waits for this thread (free.c). */
static bool name_lock(void)
{
    enum { TRIES = 50 };
    for (int i = 0; i < TRIES; i++, sched_yield())
        if (nbc_lock_if_free())
            return true;
    return false;
}

/* Keeps the name for hang reports. */
EXPORT(int, Comm_set_name, (MPI_Comm comm, NBC_CONST char *name), (comm, name))
{
    int error = NEXT(Comm_set_name)(comm, name);
    if (error || !nbc_enabled || nbc_inside || !name_lock())
        return error;
    struct nbc_context *c = nbc_context_find(comm);
    if (c) {
        free(c->name);
        c->name = *name ? strdup(name) : NULL;
    }
    nbc_unlock();
    return MPI_SUCCESS;
}
