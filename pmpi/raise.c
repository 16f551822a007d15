/* SPDX-License-Identifier: MIT */
#include "raise.h"

#include <stdio.h>

#include "export.h"
#include "init.h"
#include "lock.h"

int nbc_raise(MPI_Comm comm, int error)
{
    if (comm == MPI_COMM_NULL)
        comm = nbc_world ? MPI_COMM_WORLD : nbc_home;
    NEXT(Comm_call_errhandler)(comm, error);
    return error;
}

/* The error below whose string names a bad entry, and its class; MPI_SUCCESS until one is needed.
 * Written under the lock, the class read without. Both are added: MPICH 4.0.2 garbles the strings
 * of codes of predefined classes, and Open MPI 4.1.4 does not know an added class for an error. */
static int entry_class = MPI_SUCCESS, entry_code;

static bool entry_setup(void)
{
    int class;
    if (entry_class != MPI_SUCCESS)
        return true;
    if (NEXT(Add_error_class)(&class) || NEXT(Add_error_code)(class, &entry_code))
        return false;
    __atomic_store_n(&entry_class, class, __ATOMIC_RELAXED);
    return true;
}

static int describe(const char *function, int entry, const char *why)
{
    char text[MPI_MAX_ERROR_STRING];
    if (!entry_setup())
        return MPI_ERR_REQUEST;
    snprintf(text, sizeof text, "%s: entry %d of the array of requests is %s", function, entry,
             why);
    NEXT(Add_error_string)(entry_code, text);
    return entry_code;
}

int nbc_raise_entry(MPI_Comm comm, const char *function, int entry, const char *why)
{
    nbc_lock();
    int error = describe(function, entry, why);
    nbc_unlock();
    return nbc_raise(comm, error);
}

/* To the program our class is MPI_ERR_REQUEST. */
EXPORT(int, Error_class, (int errorcode, int *errorclass), (errorcode, errorclass))
{
    int error = NEXT(Error_class)(errorcode, errorclass);
    int ours = __atomic_load_n(&entry_class, __ATOMIC_RELAXED);
    if (!error && ours != MPI_SUCCESS && *errorclass == ours)
        *errorclass = MPI_ERR_REQUEST;
    return error;
}
