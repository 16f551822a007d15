/* SPDX-License-Identifier: MIT */
/* Sessions (MPI-4.1 section 11.3). A program of sessions need not call MPI_Init, so its ranks have
 * no common communicator on which to agree whether nbcshim is active. They agree on each
 * communicator that is made from a group: it gets a context if nbcshim is active on any of its
 * ranks, or any of them wants it. Communicators made from that one follow it. */
#include "api/setup.h"

#include <pthread.h>

#include "nbcshim.h"

#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/detect.h"
#include "below/export.h"
#include "comm/context.h"
#include "comm/handshake.h"
#include "diag/diag.h"
#include "engine/progress.h"

NBC_ARCHIVE_MEMBER(sessions)

#ifdef HAVE_MPI_SESSION_INIT
/* Several threads may open sessions and make communicators before nbc_threaded is set, so this file
 * has its own mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int nopen; /* sessions of the program that are open */

/* The session of nbcshim where a session comes before MPI_Init. It keeps the home communicator
 * alive. While it is open, MPICH 4.0.2 leaves the process manager no earlier than when the process
 * exits, upon which the process manager kills the other ranks. */
static MPI_Session own;
static bool own_is_open;
static bool world_is_over; /* MPI_Finalize has returned */

/* *rank: among all processes of the job. */
static int open_home(MPI_Comm *home, int *rank)
{
    MPI_Group self, world;
    int error = NEXT(Session_init)(MPI_INFO_NULL, MPI_ERRORS_RETURN, &own);
    if (error)
        return error;
    own_is_open = true;
    error = NEXT(Group_from_session_pset)(own, "mpi://WORLD", &world);
    if (error)
        return error; /* unreached: the MPI fails */
    NEXT(Group_rank)(world, rank);
    NEXT(Group_free)(&world);
    error = NEXT(Group_from_session_pset)(own, "mpi://SELF", &self);
    if (error)
        return error; /* unreached: the MPI fails */
    error = NEXT(Comm_create_from_group)(self, "nbcshim", MPI_INFO_NULL, MPI_ERRORS_RETURN, home);
    NEXT(Group_free)(&self);
    return error;
}

static int session_take_over(MPI_Comm comm)
{
    MPI_Comm home = MPI_COMM_NULL;
    int rank = -1, error = MPI_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (!nbc_enabled) {
        error = open_home(&home, &rank);
        if (rank == 0)
            nbc_settings_read(true); /* a second time, in which one rank reports errors */
        nbc_tuning_read(rank == 0);
        if (!error)
            error = nbc_set_up(comm, home, rank);
        nbc_self_comm = home;
        nbc_enabled = !error;
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

/* Agrees on a communicator that was made from a group, and attaches its context. Ranks can compare
 * their settings only when all are set up. Collective. */
static int session_attach(MPI_Comm comm)
{
    struct nbc_origin origin = {.range = NBC_NO_RANGE};
    struct nbc_comparison all;
    if (comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    int error = nbc_compare_ranks(comm, nbc_enabled || nbc_wanted() ? NBC_WANTS : 0, 0, 0, &all);
    if (error || !(all.said & NBC_WANTS))
        return error; /* unreached: the MPI fails */
    error = session_take_over(comm);
    if (!error)
        error = nbc_compare_ranks(comm, NBC_WANTS, 0, 0, &all);
    if (!error)
        error = nbc_compare_ranks_report(comm, &all, false);
    if (!error && all.same_settings)
        error = nbc_context_attach(comm, &origin);
    if (error)
        NEXT(Comm_call_errhandler)(comm, error); /* unreached: the MPI fails */
    return error;
}

/* Whether opening a session initializes the MPI: not after MPI_Init. */
static bool is_first(void)
{
    return nopen == 0 && !nbc_world_initialized;
}

EXPORT(int, Session_init, (MPI_Info info, MPI_Errhandler handler, MPI_Session *session),
       (info, handler, session))
{
    nbc_next_resolve();
    nbc_require_its_mpi();
    if (nbc_inside)
        return NEXT(Session_init)(info, handler, session); /* unreached: within the MPI */
    pthread_mutex_lock(&mutex);
    if (is_first())
        nbc_hang_report_before_init(false);
    pthread_mutex_unlock(&mutex);
    int error = NEXT(Session_init)(info, handler, session);
    if (error)
        return error;
    pthread_mutex_lock(&mutex);
    if (is_first()) {
        nbc_hang_report_after_init();
        nbc_settings_read(false);
    }
    nopen++;
    pthread_mutex_unlock(&mutex);
    return MPI_SUCCESS;
}

/* From now on, request handles are made on `next`. */
static void close_own(MPI_Comm next)
{
    MPI_Comm home = nbc_handle_comm;
    if (!own_is_open)
        return;
    own_is_open = false;
    nbc_lock();
    nbc_handle_comm = next;
    nbc_unlock();
    NEXT(Comm_free)(&home);
    NEXT(Session_finalize)(&own);
}

static void session_shut_down(void)
{
    nbc_hang_report_stop();
    nbc_hang_report_finalize_ends();
    if (nbc_enabled) {
        nbc_thread_stop();
        nbc_shutdown();
    }
    close_own(MPI_COMM_NULL);
}

/* MPICH 4.0.2 deletes the attributes of MPI_COMM_SELF in the last of MPI_Finalize and the calls of
 * MPI_Session_finalize, so MPI_COMM_SELF exists until then. */

EXPORT(int, Session_finalize, (MPI_Session * session), (session))
{
    if (!session || *session == MPI_SESSION_NULL)
        return NEXT(Session_finalize)(session);
    pthread_mutex_lock(&mutex);
    bool last = --nopen == 0;
    pthread_mutex_unlock(&mutex);
    if (last && !nbc_world_initialized)
        session_shut_down();
    else if (last && world_is_over)
        close_own(MPI_COMM_SELF);
    return NEXT(Session_finalize)(session);
}

void nbc_sessions_finalize_begins(void)
{
    if (nopen == 0)
        close_own(MPI_COMM_SELF);
}

void nbc_sessions_finalize_ends(void)
{
    world_is_over = true;
}

void nbc_sessions_end_world(void)
{
    int rank;
    if (nopen == 0) {
        session_shut_down(); /* errors of the MPI reach MPI_COMM_WORLD and MPI_COMM_SELF */
        nbc_world_initialized = false;
        return;
    }
    nbc_world_initialized = false;
    nbc_context_end_early(MPI_COMM_WORLD);
    if (!own_is_open && open_home(&nbc_handle_comm, &rank))
        session_shut_down(); /* unreached: the MPI fails */
    else
        nbc_self_comm = nbc_handle_comm;
}

EXPORT(int, Comm_create_from_group,
       (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *newcomm),
       (group, tag, info, handler, newcomm))
{
    int error = NEXT(Comm_create_from_group)(group, tag, info, handler, newcomm);
    return error || nbc_inside ? error : session_attach(*newcomm);
}

EXPORT(int, Intercomm_create_from_groups,
       (MPI_Group local, int local_leader, MPI_Group remote, int remote_leader, const char *tag,
        MPI_Info info, MPI_Errhandler handler, MPI_Comm *newcomm),
       (local, local_leader, remote, remote_leader, tag, info, handler, newcomm))
{
    int error = NEXT(Intercomm_create_from_groups)(local, local_leader, remote, remote_leader, tag,
                                                   info, handler, newcomm);
    return error || nbc_inside ? error : session_attach(*newcomm);
}
#else
void nbc_sessions_finalize_begins(void)
{
}

void nbc_sessions_finalize_ends(void)
{
}

void nbc_sessions_end_world(void)
{
    nbc_shutdown();
}
#endif
