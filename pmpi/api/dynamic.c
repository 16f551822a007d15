/* SPDX-License-Identifier: MIT */
#include "api/dynamic.h"

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/presync.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/system_thread.h"
#include "base/tag_space.h"
#include "base/tuning.h"
#include "below/export.h"
#include "comm/agree.h"
#include "comm/context.h"

#include "rules.h"

/* What both sides must have alike: the algorithms of a call are chosen by it, and its tags. */
enum { KNOWN, BLOCKING, CHECK, TAGS, RULES, FORCED, NWORDS };

static void describe(bool known, int word[NWORDS])
{
    memset(word, 0, NWORDS * sizeof *word);
    if (!known)
        return;
    word[KNOWN] = 1;
    word[BLOCKING] = nbc_settings.blocking;
    word[CHECK] = nbc_settings.check;
    word[TAGS] = nbc_tag_ub;
    word[RULES] = nbc_rules_hash(nbc_tuning);
    word[FORCED] = nbc_settings_hash();
}

static void tell_difference(MPI_Comm inter)
{
    int rank;
    NEXT(Comm_rank)(inter, &rank);
    if (rank == 0)
        fprintf(stderr, "nbcshim: two connected jobs have different NBCSHIM_ variables: the MPI "
                        "itself runs the collectives between them\n");
}

/* --- another job that does not answer ----------------------------------------------------------*/

/* Both sides are at hand when they are asked, so that a longer wait means that one never answers:
 * nothing tells whether a process runs under nbcshim but itself. */
enum { PATIENCE = 10 }; /* seconds */

struct watcher {
    pthread_t thread;
    sem_t answered;
    bool runs;
};

static void *watch(void *arg)
{
    struct watcher *w = arg;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    int late;
    while ((late = sem_timedwait(&w->answered, &until)) != 0 && errno == EINTR)
        ;
    if (late)
        fprintf(stderr,
                "nbcshim: still waiting after %d s for the other job of an intercommunicator; if "
                "that job runs without nbcshim, run this one with NBCSHIM_DYNAMIC=0\n",
                PATIENCE);
    return NULL;
}

static void watch_begin(struct watcher *w, MPI_Comm inter)
{
    int rank;
    w->runs = false;
    if (NEXT(Comm_rank)(inter, &rank) || rank != 0 || sem_init(&w->answered, 0, 0) != 0)
        return;
    w->runs = nbc_system_thread_start(&w->thread, watch, w);
    if (!w->runs)
        sem_destroy(&w->answered);
}

static void watch_end(struct watcher *w)
{
    if (!w->runs)
        return;
    sem_post(&w->answered);
    pthread_join(w->thread, NULL);
    sem_destroy(&w->answered);
}

static int exchange(MPI_Comm inter, int mine[NWORDS], int theirs[NWORDS])
{
    struct watcher watcher;
    watch_begin(&watcher, inter);
    int error = NEXT(Allreduce)(mine, theirs, NWORDS, MPI_INT, MPI_MIN, inter);
    watch_end(&watcher);
    return error;
}

/* Collective over both groups of a communicator just made. known: this side's communicator is. The
 * new one is ours where both sides' are and both are set up alike, as all ranks of one job are. */
static int meet(MPI_Comm inter, bool known)
{
    int mine[NWORDS], theirs[NWORDS];
    bool differ;
    if (inter == MPI_COMM_NULL || !nbc_settings.dynamic)
        return MPI_SUCCESS;
    describe(known, mine);
    int error = exchange(inter, mine, theirs);
    if (!error)
        error = nbc_agree_any(inter, memcmp(mine, theirs, sizeof mine) != 0, &differ);
    if (error || !known || !theirs[KNOWN])
        return error;
    if (differ) {
        tell_difference(inter);
        return MPI_SUCCESS;
    }
    error = nbc_context_attach(inter);
    return error ? nbc_raise(inter, error) : MPI_SUCCESS;
}

int nbc_dynamic_meet_parent(void)
{
    MPI_Comm parent;
    int error = NEXT(Comm_get_parent)(&parent);
    if (error)
        return error;
    nbc_settings.spawned = parent != MPI_COMM_NULL;
    return meet(parent, nbc_enabled);
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
        int error = nbc_presync(comm);                \
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
    return error ? error : meet(*newcomm, nbc_enabled);
}
