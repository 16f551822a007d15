/* SPDX-License-Identifier: MIT */
/* What a program says of a communicator: hints for its collectives, and its name. */
#include "base/lock.h"
#include "base/state.h"
#include "below/export.h"
#include "comm/context.h"

NBC_ARCHIVE_MEMBER(info)

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
    int error = NEXT(Comm_get_info)(comm, info);
    return error || !nbc_enabled || nbc_inside ? error : nbc_context_show_hints(comm, *info);
}
#endif

EXPORT(int, Comm_set_name, (MPI_Comm comm, NBC_CONST char *name), (comm, name))
{
    int error = NEXT(Comm_set_name)(comm, name);
    if (!error && nbc_enabled && !nbc_inside)
        nbc_context_name(comm, name);
    return error;
}
