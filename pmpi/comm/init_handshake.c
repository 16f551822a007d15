/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "comm/init_handshake.h"

#include <dirent.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/in_mpi.h"
#include "base/settings.h"
#include "below/next.h"
#include "below/quirks.h"
#include "comm/rank_lines.h"

#include "topo.h"

#define WORLD MPI_COMM_WORLD

/* The tags, counted down from the largest one. */
enum { ARRIVED, CALL, ANSWER, NTAGS };

#define SECOND INT64_C(1000000000)

/* The silent ranks are named within so many seconds. */
enum { PATIENCE = 10 };

static struct {
    int rank, size, tag_ub;
    int64_t seen, waited;                   /* see count_time */
    int64_t unit, ends_at;                  /* of `waited`; the line is printed after ten units */
    bool heard, called, told, told_of_stop; /* heard: from the rank before this one */
    int64_t called_at;                      /* of `waited` */
    int ncalls, nanswers;                   /* received */
    struct nbc_rank *ranks; /* on the caller; those that have answered have the value 1 */
} here;

/* --- calls and answers ------------------------------------------------------------------------ */

/* Sends a message that this rank need not wait for. `data` remains unchanged. */
static int send_off(const void *data, int bytes, int rank, int kind)
{
    MPI_Request request;
    int error = NEXT(Isend)((void *)(uintptr_t)data, bytes, MPI_BYTE, rank, here.tag_ub - kind,
                            WORLD, &request);
    return error ? error : NEXT(Request_free)(&request);
}

static int answer_call(int caller)
{
    static char host[NBC_HOST_LENGTH];
    nbc_host_own(host);
    int error = NEXT(Recv)(NULL, 0, MPI_BYTE, caller, here.tag_ub - CALL, WORLD, MPI_STATUS_IGNORE);
    here.ncalls++;
    return error ? error : send_off(host, sizeof host, caller, ANSWER);
}

static int take_answer(int rank)
{
    struct nbc_rank *r = &here.ranks[rank];
    here.nanswers++;
    r->value = 1;
    return NEXT(Recv)(r->host, sizeof r->host, MPI_BYTE, rank, here.tag_ub - ANSWER, WORLD,
                      MPI_STATUS_IGNORE);
}

/* Handles the messages of one kind that have come. */
static int take_all(int kind, int (*take)(int rank))
{
    int error, is_there = true;
    do {
        MPI_Status status;
        error = NEXT(Iprobe)(MPI_ANY_SOURCE, here.tag_ub - kind, WORLD, &is_there, &status);
        if (!error && is_there)
            error = take(status.MPI_SOURCE);
    } while (!error && is_there);
    return error;
}

/* Without memory this rank calls nobody. */
static int call_all(void)
{
    int error = MPI_SUCCESS;
    here.ranks = calloc((size_t)here.size, sizeof *here.ranks);
    if (!here.ranks)
        return MPI_SUCCESS; /* unreached: no memory */
    here.called = true;
    here.called_at = here.waited;
    here.ranks[here.rank].value = 1;
    nbc_host_own(here.ranks[here.rank].host);
    for (int rank = 0; rank < here.size && !error; rank++)
        if (rank != here.rank)
            error = send_off(NULL, 0, rank, CALL);
    return error;
}

/* --- processes that are stopped --------------------------------------------------------------- */

/* Whether a process runs the same program as this one; false for processes of other users. */
static bool is_of_program(const char *process)
{
    struct stat own, other;
    char link[64];
    snprintf(link, sizeof link, "/proc/%.20s/exe", process);
    return !stat("/proc/self/exe", &own) && !stat(link, &other) && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

static bool is_stopped(const char *process)
{
    char path[64], text[1024], state = '\0';
    int tracer = 0;
    snprintf(path, sizeof path, "/proc/%.20s/status", process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false; /* unreached: a moment between two threads */
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *state_line = strstr(text, "\nState:"), *tracer_line = strstr(text, "\nTracerPid:");
    if (state_line)
        sscanf(state_line, "\nState: %c", &state);
    if (tracer_line)
        sscanf(tracer_line, "\nTracerPid: %d", &tracer);
    return state == 'T' || state == 't' || tracer;
}

/* Whether a process on this host that runs the same program as this one, this one included, is
 * stopped by a signal or traced by a debugger. False where there is no /proc. */
static bool any_is_stopped(void)
{
    bool found = false;
    DIR *processes = opendir("/proc");
    if (!processes)
        return false; /* unreached: a moment between two threads */
    for (struct dirent *d; !found && (d = readdir(processes)) != NULL;)
        found = *d->d_name >= '1' && *d->d_name <= '9' && is_of_program(d->d_name) &&
                is_stopped(d->d_name);
    closedir(processes);
    return found;
}

/* --- what the caller says --------------------------------------------------------------------- */

static void put_silence(struct nbc_line *l)
{
    nbc_line_put(l, "nbcshim: no answer from ");
    nbc_line_put_ranks(l, here.size, here.ranks, 0, false);
    nbc_line_put(l, " of %d at MPI_Init for %d s", here.size,
                 (int)((here.waited + SECOND / 2) / SECOND));
}

static void put_presence(struct nbc_line *l)
{
    nbc_line_put(l, "nbcshim runs on ");
    nbc_line_put_ranks(l, here.size, here.ranks, 1, true);
}

static bool all_have_answered(void)
{
    return here.nanswers == here.size - 1;
}

static void tell(void)
{
    struct nbc_line l = {.n = 0};
    here.told = true;
    if (all_have_answered() || here.ends_at <= PATIENCE * SECOND) /* it ends now */
        return;
    put_silence(&l);
    nbc_line_put(&l, ": without libnbcshim.so, or late? ");
    put_presence(&l);
    nbc_line_put(&l,
                 nbc_settings.init_timeout ? "; they wait for %d s (NBCSHIM_INIT_TIMEOUT)"
                                           : "; they wait, since NBCSHIM_INIT_TIMEOUT=%d",
                 (int)nbc_settings.init_timeout);
    nbc_line_print(&l);
}

static void end_job(struct nbc_line *l)
{
    nbc_line_put(l, "; ");
    put_presence(l);
    nbc_line_put(l, ". The job ends: all its ranks need the library");
    nbc_line_print(l);
    nbc_line_abort(WORLD);
} /* unreached: in a process that writes no counts */

/* Not while a debugger keeps a rank from arriving, as far as it can be seen from here. */
static void end_after_silence(void)
{
    struct nbc_line l = {.n = 0};
    put_silence(&l);
    if (!any_is_stopped())
        end_job(&l);
    here.ends_at = here.waited + PATIENCE * SECOND;
    nbc_line_put(&l, "; the others wait, since a process of the program is stopped or traced");
    if (!here.told_of_stop)
        nbc_line_print(&l);
    here.told_of_stop = true;
}

/* Ends the job if a silent rank has sent a message of the program. */
static int look_for_the_program(void)
{
    struct nbc_line l = {.n = 0};
    for (int rank = 0; rank < here.size; rank++) {
        MPI_Status status;
        int is_there = false;
        if (here.ranks[rank].value)
            continue;
        int error = NEXT(Iprobe)(rank, MPI_ANY_TAG, WORLD, &is_there, &status);
        if (error)
            return error; /* unreached: the MPI fails */
        if (!is_there || status.MPI_TAG > here.tag_ub - NTAGS)
            continue;
        nbc_line_put(&l, "nbcshim: rank %d of %d runs without nbcshim: it has sent a message", rank,
                     here.size);
        end_job(&l);
    }
    return MPI_SUCCESS;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Counts the time that this process has waited. When it has been stopped, by a debugger or a
 * scheduler that suspends jobs, that time is left out: the other ranks may have been stopped too.
 */
static void count_time(void)
{
    int64_t now = nbc_now(), step = now - here.seen;
    here.waited += step < SECOND ? step : SECOND;
    here.seen = now;
}

/* When this rank calls the others, unless it has heard a call; INT64_MAX: never. */
static int64_t turn(void)
{
    if (here.rank == 0)
        return 8 * here.unit;
    return here.heard ? INT64_MAX
                      : 9 * here.unit - here.unit / 2 * (here.size - here.rank) / here.size;
}

static int attend_as_caller(void)
{
    int error = take_all(ANSWER, take_answer);
    if (error || here.waited < here.called_at + here.unit)
        return error;
    if (here.waited >= here.ends_at && !all_have_answered())
        end_after_silence();
    if (!here.told)
        tell();
    return look_for_the_program();
}

static int attend(void)
{
    int error = take_all(CALL, answer_call);
    if (error)
        return error; /* unreached: the MPI fails */
    if (here.called)
        return attend_as_caller();
    return here.ncalls || here.waited < turn() ? MPI_SUCCESS : call_all();
}

/* Tells one rank that this one has arrived, and waits until another one tells the same. After some
 * time it leaves the processor to ranks that are starting. */
static int exchange(int to, int from, void *unused)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    const int tag = here.tag_ub - ARRIVED;
    int error = send_off(NULL, 0, to, ARRIVED), is_there = false;
    (void)unused;
    while (!error && !(error = NEXT(Iprobe)(from, tag, WORLD, &is_there, MPI_STATUS_IGNORE)) &&
           !is_there) {
        count_time();
        if (here.waited < SECOND / 10)
            sched_yield();
        else if (!(error = attend()))
            nanosleep(&millisecond, NULL);
    }
    here.heard = true;
    return error ? error : NEXT(Recv)(NULL, 0, MPI_BYTE, from, tag, WORLD, MPI_STATUS_IGNORE);
}

/* --- arriving --------------------------------------------------------------------------------- */

static void begin(void)
{
    int *attribute, flag;
    here.seen = nbc_now();
    here.ends_at = nbc_settings.init_timeout ? nbc_settings.init_timeout * SECOND : INT64_MAX;
    here.unit = (here.ends_at < PATIENCE * SECOND ? here.ends_at : PATIENCE * SECOND) / 10;
    here.tag_ub = 32767; /* the least that the standard allows */
    NEXT(Comm_get_attr)(WORLD, MPI_TAG_UB, &attribute, &flag);
    if (flag)
        here.tag_ub = *attribute;
}

int nbc_init_handshake(bool *called)
{
    int error = MPI_SUCCESS;
    NEXT(Comm_rank)(WORLD, &here.rank);
    NEXT(Comm_size)(WORLD, &here.size);
    if (here.size > 1 && !NBC_RANKS_ARE_ALIKE) {
        begin();
        error = nbc_disseminate(here.rank, here.size, exchange, NULL);
    }
    *called = here.called;
    return error;
}

int nbc_init_handshake_clear(void)
{
    int mine = here.called, callers = 0;
    int error = NEXT(Allreduce)(&mine, &callers, 1, MPI_INT, MPI_SUM, WORLD);
    while (!error && here.ncalls < callers - mine)
        error = take_all(CALL, answer_call);
    while (!error && here.called && !all_have_answered())
        error = take_all(ANSWER, take_answer);
    free(here.ranks);
    here.ranks = NULL;
    return error;
}
