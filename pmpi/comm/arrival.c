/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "comm/arrival.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/roster.h"
#include "base/settings.h"
#include "base/stopped.h"
#include "below/next.h"
#include "below/simulated.h"

#define WORLD MPI_COMM_WORLD

/* The tags, counted down from the largest one. */
enum { ARRIVED, CALL, ANSWER, NTAGS };

#define SECOND INT64_C(1000000000)

/* The silent ranks are named within so many seconds. */
enum { PATIENCE = 10 };

static struct {
    int rank, size, tag_ub;
    int64_t seen, waited;  /* see count_time */
    int64_t unit, ends_at; /* of `waited`; the line is printed after ten units */
    struct nbc_host own;   /* sent in answers */
    bool called, told, told_of_stop;
    int64_t called_at;      /* of `waited` */
    int ncalls, nanswers;   /* received */
    int *answered;          /* by rank, on the caller */
    struct nbc_host *hosts; /* of the ranks that have answered */
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
    int error = NEXT(Recv)(NULL, 0, MPI_BYTE, caller, here.tag_ub - CALL, WORLD, MPI_STATUS_IGNORE);
    here.ncalls++;
    return error ? error : send_off(&here.own, sizeof here.own, caller, ANSWER);
}

static int take_answer(int rank)
{
    here.nanswers++;
    here.answered[rank] = true;
    return NEXT(Recv)(&here.hosts[rank], sizeof *here.hosts, MPI_BYTE, rank, here.tag_ub - ANSWER,
                      WORLD, MPI_STATUS_IGNORE);
}

/* Handles the messages of one kind that have come. */
static int take_all(int kind, int (*take)(int rank))
{
    int error = MPI_SUCCESS;
    for (int is_there = true; !error;) {
        MPI_Status status;
        error = NEXT(Iprobe)(MPI_ANY_SOURCE, here.tag_ub - kind, WORLD, &is_there, &status);
        if (error || !is_there)
            break;
        error = take(status.MPI_SOURCE);
    }
    return error;
}

/* Without memory this rank calls nobody. */
static int call_all(void)
{
    int error = MPI_SUCCESS;
    here.answered = calloc((size_t)here.size, sizeof *here.answered);
    here.hosts = calloc((size_t)here.size, sizeof *here.hosts);
    if (!here.answered || !here.hosts)
        /* unreached: no memory */
        return MPI_SUCCESS;
    here.called = true;
    here.called_at = here.waited;
    here.answered[here.rank] = true;
    here.hosts[here.rank] = here.own;
    for (int rank = 0; rank < here.size && !error; rank++)
        if (rank != here.rank)
            error = send_off(NULL, 0, rank, CALL);
    return error;
}

/* --- what the caller says --------------------------------------------------------------------- */

static void put_silence(struct nbc_line *l)
{
    nbc_line_put(l, "no answer from ");
    nbc_line_put_ranks(l, here.size, here.answered, false, NULL);
    nbc_line_put(l, " of %d at MPI_Init for %d s", here.size,
                 (int)((here.waited + SECOND / 2) / SECOND));
}

static void put_presence(struct nbc_line *l)
{
    nbc_line_put(l, "nbcshim runs on ");
    nbc_line_put_ranks(l, here.size, here.answered, true, here.hosts);
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
    nbc_line_put(&l, "nbcshim: ");
    put_silence(&l);
    nbc_line_put(&l, ": without libnbcshim.so, or late? ");
    put_presence(&l);
    if (nbc_settings.init_timeout)
        nbc_line_put(&l, "; they wait for %d s (NBCSHIM_INIT_TIMEOUT)",
                     (int)nbc_settings.init_timeout);
    else
        nbc_line_put(&l, "; they wait, since NBCSHIM_INIT_TIMEOUT=0");
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

static void tell_of_stop(void)
{
    struct nbc_line l = {.n = 0};
    if (here.told_of_stop)
        /* unreached: a rank that is stopped for long */
        return;
    here.told_of_stop = true;
    nbc_line_put(&l, "nbcshim: ");
    put_silence(&l);
    nbc_line_put(&l, "; the others wait, since a process of the program is stopped or traced");
    nbc_line_print(&l);
}

/* Not while a debugger keeps a rank from arriving, as far as it can be seen from here. */
static void end_after_silence(void)
{
    struct nbc_line l = {.n = 0};
    if (nbc_any_is_stopped()) {
        here.ends_at = here.waited + PATIENCE * SECOND;
        tell_of_stop();
        return;
    }
    nbc_line_put(&l, "nbcshim: ");
    put_silence(&l);
    end_job(&l);
}

/* Ends the job if a silent rank has sent a message of the program. */
static int look_for_the_program(void)
{
    struct nbc_line l = {.n = 0};
    for (int rank = 0; rank < here.size; rank++) {
        MPI_Status status;
        int is_there = false;
        if (here.answered[rank])
            continue;
        int error = NEXT(Iprobe)(rank, MPI_ANY_TAG, WORLD, &is_there, &status);
        if (error)
            /* unreached: the MPI fails */
            return error;
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
static int64_t turn(bool first_round)
{
    if (here.rank == 0)
        return 8 * here.unit;
    return first_round ? 9 * here.unit - here.unit / 2 * (here.size - here.rank) / here.size
                       : INT64_MAX;
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

static int attend(bool first_round)
{
    int error = take_all(CALL, answer_call);
    if (error)
        /* unreached: the MPI fails */
        return error;
    if (here.called)
        return attend_as_caller();
    return here.ncalls || here.waited < turn(first_round) ? MPI_SUCCESS : call_all();
}

/* Leaves the processor to ranks that are starting. */
static void rest(void)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    nanosleep(&millisecond, NULL);
}

static int await(int rank, bool first_round)
{
    for (;;) {
        int is_there, error;
        error = NEXT(Iprobe)(rank, here.tag_ub - ARRIVED, WORLD, &is_there, MPI_STATUS_IGNORE);
        if (error)
            return error;
        if (is_there)
            return NEXT(Recv)(NULL, 0, MPI_BYTE, rank, here.tag_ub - ARRIVED, WORLD,
                              MPI_STATUS_IGNORE);
        count_time();
        if (here.waited < SECOND / 10) {
            sched_yield();
            continue;
        }
        error = attend(first_round);
        if (error)
            /* unreached: the MPI fails */
            return error;
        rest();
    }
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
    nbc_host_own(&here.own);
}

int nbc_arrive(void)
{
    MPI_Request sent[32];
    int n = 0, error = MPI_SUCCESS;
    NEXT(Comm_rank)(WORLD, &here.rank);
    NEXT(Comm_size)(WORLD, &here.size);
    if (here.size == 1 || NBC_IS_SIMULATED) /* all simulated ranks are this program */
        return MPI_SUCCESS;
    begin();
    for (int64_t distance = 1; distance < here.size && !error; distance *= 2) {
        int to = (int)((here.rank + distance) % here.size);
        int from = (int)((here.rank + here.size - distance) % here.size);
        error = NEXT(Isend)(NULL, 0, MPI_BYTE, to, here.tag_ub - ARRIVED, WORLD, &sent[n]);
        n += !error;
        if (!error)
            error = await(from, distance == 1);
    }
    for (int i = 0; i < n && !error; i++)
        error = NEXT(Wait)(&sent[i], MPI_STATUS_IGNORE);
    return error;
}

bool nbc_arrival_called(void)
{
    return here.called;
}

/* Waits for a message of one kind from any rank. */
static int take_one(int kind, int (*take)(int rank))
{
    MPI_Status status;
    int error = NEXT(Probe)(MPI_ANY_SOURCE, here.tag_ub - kind, WORLD, &status);
    return error ? error : take(status.MPI_SOURCE);
}

int nbc_arrival_clear(void)
{
    int mine = here.called, callers;
    int error = NEXT(Allreduce)(&mine, &callers, 1, MPI_INT, MPI_SUM, WORLD);
    while (!error && here.ncalls < callers - mine)
        error = take_one(CALL, answer_call);
    while (!error && here.called && here.nanswers < here.size - 1)
        error = take_one(ANSWER, take_answer);
    free(here.answered);
    free(here.hosts);
    here.answered = NULL;
    here.hosts = NULL;
    return error;
}
