/* SPDX-License-Identifier: MIT */
#include "dynamic.h"

#include <stdbool.h>

#include "call.h"
#include "context.h"
#include "env.h"
#include "export.h"
#include "init.h"
#include "lock.h"
#include "rendezvous.h"

/* Collective over both groups of a communicator just made. known: this side's communicator is. The
 * new one is ours where both sides' are and both take the blocking calls alike, as on all ranks of
 * one job. */
static int meet(MPI_Comm inter, bool known)
{
    int mine = known ? 1 + nbc_settings.blocking : 0, theirs = 0;
    if (inter == MPI_COMM_NULL || !nbc_settings.dynamic)
        return MPI_SUCCESS;
    int error = NEXT(Allreduce)(&mine, &theirs, 1, MPI_INT, MPI_MIN, inter);
    if (error || !mine || theirs != mine)
        return error;
    error = nbc_context_attach(inter);
    return error ? nbc_raise(inter, error) : MPI_SUCCESS;
}

int nbc_dynamic_meet_parent(void)
{
    MPI_Comm parent;
    int error = NEXT(Comm_get_parent)(&parent);
    return error ? error : meet(parent, nbc_on);
}

/* All ranks of the communicator are in the call before the MPI is. It may wait for the other side
 * too, which is not ours to see to: those processes are connected to us by nothing, or by another
 * communicator. */
#define MEETING(name, params, args)                   \
    EXPORT(int, name, params, args)                   \
    {                                                 \
        if (nbc_inside)                               \
            return NEXT(name) args;                   \
        bool known = nbc_knows(comm);                 \
        int error = nbc_rendezvous(comm);             \
        if (!error)                                   \
            error = NEXT(name) args;                  \
        return error ? error : meet(*newcomm, known); \
    }

MEETING(Comm_spawn,
        (NBC_CONST char *command, char *argv[], int maxprocs, MPI_Info info, int root,
         MPI_Comm comm, MPI_Comm *newcomm, int codes[]),
        (command, argv, maxprocs, info, root, comm, newcomm, codes))

MEETING(Comm_spawn_multiple,
        (int count, char *commands[], char **argvs[], NBC_CONST int maxprocs[],
         NBC_CONST MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *newcomm, int codes[]),
        (count, commands, argvs, maxprocs, infos, root, comm, newcomm, codes))

MEETING(Comm_accept,
        (NBC_CONST char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port, info, root, comm, newcomm))

MEETING(Comm_connect,
        (NBC_CONST char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port, info, root, comm, newcomm))

EXPORT(int, Comm_join, (int fd, MPI_Comm *newcomm), (fd, newcomm))
{
    if (nbc_inside)
        return NEXT(Comm_join)(fd, newcomm);
    int error = NEXT(Comm_join)(fd, newcomm);
    return error ? error : meet(*newcomm, nbc_on);
}
