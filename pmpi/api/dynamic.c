/* SPDX-License-Identifier: MIT */
/* Connections between jobs that were started apart (MPI-4.1 chapter 11). Each job has decided for
 * itself whether nbcshim is active, so they exchange that, by a collective call of the MPI below.
 * The other job must run under nbcshim as well, or this one must set NBCSHIM_DYNAMIC=0. */
#include "api/setup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/errors.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/system_thread.h"
#include "below/export.h"
#include "below/quirks.h"
#include "comm/context.h"
#include "comm/handshake.h"
#include "hookless/barrier_before.h"

NBC_ARCHIVE_MEMBER(dynamic)

/* --- a job that does not answer ----------------------------------------------------------------*/

/* A job cannot see whether another one runs under nbcshim. Both sides are in the same call when
 * they exchange their settings, so a longer wait means that the other one does not run under
 * nbcshim. */
enum { PATIENCE = 10 }; /* seconds */

static bool say_that_it_waits(void)
{
    fprintf(stderr, /* unreached: in a process that writes no counts */
            "nbcshim: still waiting after %d s for the other job of an intercommunicator; if "
            "that job runs without nbcshim, run this one with NBCSHIM_DYNAMIC=0\n",
            PATIENCE);
    return false; /* unreached: in a process that writes no counts */
}

/* Compares this side of a new intercommunicator with the other one, and attaches a context if the
 * communicators of both sides have one and their settings match. known: the communicator of this
 * side has a context. Collective over both groups. */
static int jobs_connect(MPI_Comm inter, bool known)
{
    struct nbc_origin origin = {.range = NBC_NO_RANGE};
    struct nbc_comparison all;
    struct nbc_timer watcher = {.runs = false};
    int rank;
    if (inter == MPI_COMM_NULL || !nbc_settings.dynamic)
        return MPI_SUCCESS;
    NEXT(Comm_rank)(inter, &rank);
    if (rank == 0)
        nbc_timer_start(&watcher, PATIENCE * INT64_C(1000000000), say_that_it_waits);
    int error = nbc_compare_ranks(inter, NBC_OF_TWO_JOBS | (known ? 0 : NBC_UNKNOWN), 0, 0, &all);
    nbc_timer_stop(&watcher);
    if (error || all.said & NBC_UNKNOWN)
        return error; /* unreached: the MPI fails */
    if (all.same_build && all.same_settings)
        error = nbc_context_attach(inter, &origin);
    else if (rank == 0)
        fprintf(stderr, "nbcshim: two connected jobs have different NBCSHIM_ variables or builds: "
                        "the MPI itself runs the collectives between them\n");
    return error ? nbc_raise(inter, error) : MPI_SUCCESS;
}

int nbc_dynamic_meet_parent(void)
{
    MPI_Comm parent;
    if (!nbc_settings.dynamic)
        return MPI_SUCCESS;
    int error = nbc_quirks_parent(&parent);
    return error ? error : jobs_connect(parent, nbc_enabled);
}

/* --- the calls ---------------------------------------------------------------------------------*/

/* info is significant on the root only. */
static bool is_root(int root, MPI_Comm comm)
{
    int rank;
    return comm != MPI_COMM_NULL && !NEXT(Comm_rank)(comm, &rank) && rank == root;
}

static int spawn(NBC_CONST char *command, char *argv[], int maxprocs, MPI_Info info, int root,
                 MPI_Comm comm, MPI_Comm *newcomm, int codes[])
{
    MPI_Info passed = is_root(root, comm) ? nbc_quirks_spawn_info(info) : info;
    int error = NEXT(Comm_spawn)(command, argv, maxprocs, passed, root, comm, newcomm, codes);
    nbc_quirks_forget(passed, info);
    return error;
}

static int spawn_multiple(int count, char *commands[], char **argvs[],
                          NBC_CONST_SPAWN int maxprocs[], NBC_CONST_SPAWN MPI_Info infos[],
                          int root, MPI_Comm comm, MPI_Comm *newcomm, int codes[])
{
    MPI_Info *passed = NULL;
    if (count > 0 && infos && is_root(root, comm))
        passed = malloc((size_t)count * sizeof *passed);
    for (int i = 0; passed && i < count; i++)
        passed[i] = nbc_quirks_spawn_info(infos[i]);
    int error = NEXT(Comm_spawn_multiple)(count, commands, argvs, maxprocs, passed ? passed : infos,
                                          root, comm, newcomm, codes);
    for (int i = 0; passed && i < count; i++)
        nbc_quirks_forget(passed[i], infos[i]);
    free(passed);
    return error;
}

/* After the barrier all ranks of the communicator are in the call. The native call may also wait
 * for the other side, where no barrier can help: `comm` does not connect both sides. */
#define CONNECTING(name, call, params, args)                  \
    EXPORT(int, name, params, args)                           \
    {                                                         \
        if (nbc_inside)                                       \
            return NEXT(name) args;                           \
        bool known = nbc_comm_is_ours(comm);                  \
        int error = nbc_barrier_before_outside_loop(comm);    \
        if (!error)                                           \
            error = call args;                                \
        return error ? error : jobs_connect(*newcomm, known); \
    }

CONNECTING(Comm_spawn, spawn,
           (NBC_CONST char *command, char *argv[], int maxprocs, MPI_Info info, int root,
            MPI_Comm comm, MPI_Comm *newcomm, int codes[]),
           (command, argv, maxprocs, info, root, comm, newcomm, codes))

CONNECTING(Comm_spawn_multiple, spawn_multiple,
           (int count, char *commands[], char **argvs[], NBC_CONST_SPAWN int maxprocs[],
            NBC_CONST_SPAWN MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm *newcomm,
            int codes[]),
           (count, commands, argvs, maxprocs, infos, root, comm, newcomm, codes))

CONNECTING(Comm_accept, NEXT(Comm_accept),
           (NBC_CONST char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
           (port, info, root, comm, newcomm))

CONNECTING(Comm_connect, NEXT(Comm_connect),
           (NBC_CONST char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
           (port, info, root, comm, newcomm))

EXPORT(int, Comm_join, (int fd, MPI_Comm *newcomm), (fd, newcomm))
{
    if (nbc_inside)
        return NEXT(Comm_join)(fd, newcomm); /* unreached: within the MPI */
    int error = NEXT(Comm_join)(fd, newcomm);
    return error ? error : jobs_connect(*newcomm, nbc_enabled);
}
