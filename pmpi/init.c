/* SPDX-License-Identifier: MIT */
#include "init.h"

#include <stdio.h>
#include <stdlib.h>

#include "call.h"
#include "check.h"
#include "complete.h"
#include "context.h"
#include "detect.h"
#include "dynamic.h"
#include "env.h"
#include "export.h"
#include "lock.h"
#include "nbcshim.h"
#include "never.h"
#include "nodemap.h"
#include "quirks.h"
#include "request.h"
#include "state.h"
#include "stats.h"
#include "tag_space.h"
#include "thread.h"
#include "token.h"
#include "trace.h"
#include "tuning.h"
#include "watch.h"

static bool leads;     /* prints the statistics */
static bool is_set_up; /* what serves all communicators is set up */

int nbcshim_version(void)
{
    return NBCSHIM_VERSION;
}

int nbc_lacks(const struct nbc_call *call, const char *name)
{
    if (nbc_enabled) /* of no communicator we know */
        return nbc_raise(MPI_COMM_NULL, MPI_ERR_COMM);
    static bool told; /* a second line would do no harm */
    if (!told)
        fprintf(stderr,
                "nbcshim: MPI_%s: this MPI lacks it, and nbcshim stands aside because no loaded "
                "object referred to such a function at MPI_Init, or because of NBCSHIM=off; "
                "NBCSHIM=on turns it on\n",
                name);
    told = true;
    return nbc_raise(call->comm, MPI_ERR_OTHER);
}

bool nbc_wanted(void)
{
    return nbc_settings.mode == NBC_MODE_ON ||
           (nbc_settings.mode == NBC_MODE_AUTO && nbc_program_wants_us());
}

/* One answer for all ranks: whether the shim takes over, who does the blocking calls, whether calls
 * are checked, by which rules algorithms are chosen, and whether there is a trace. */
static int decide(bool first, bool *on)
{
    enum { ANSWERS = 6 };
    int rules = nbc_rules_hash(nbc_tuning), any[ANSWERS];
    int mine[ANSWERS] = {
        nbc_enabled || nbc_wanted(), nbc_settings.blocking, nbc_settings.check, rules, -rules,
        !nbc_settings.trace};
    int error = NEXT(Allreduce)(mine, any, ANSWERS, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (error)
        return error;
    *on = any[0];
    nbc_settings.blocking = any[1];
    nbc_settings.check = any[2];
    if (any[3] != -any[4]) /* the greatest and the smallest hash */
        nbc_tuning_drop(first);
    if (any[5])
        nbc_settings.trace = NULL;
    return MPI_SUCCESS;
}

/* The last tag for operations; one more is for tokens. */
static int tag_limit(MPI_Comm comm)
{
    int *attribute, flag, limit = 32767; /* what the standard promises */
    NEXT(Comm_get_attr)(comm, MPI_TAG_UB, &attribute, &flag);
    if (flag)
        limit = *attribute;
    limit--;
    if (nbc_settings.check)
        limit = nbc_check_tag_limit(limit + 1);
    if (nbc_settings.tag_ub && nbc_settings.tag_ub < limit)
        limit = (int)nbc_settings.tag_ub;
    return limit;
}

/* The thread calls the MPI besides those of the program. */
static void start_thread(int level)
{
    const char *why = level < MPI_THREAD_MULTIPLE ? "this MPI gives no MPI_THREAD_MULTIPLE"
                                                  : "the system gives no thread";
    if (nbc_settings.progress != NBC_PROGRESS_THREAD)
        return;
    if (level == MPI_THREAD_MULTIPLE && nbc_thread_start())
        return;
    nbc_settings.progress = NBC_PROGRESS_CALLS;
    fprintf(stderr, "nbcshim: NBCSHIM_PROGRESS=thread refused: %s\n", why);
}

/* Without MPI_Init there are no ranks to gather one from. */
static void start_trace(bool lead)
{
    if (nbc_settings.trace && nbc_world_initialized)
        nbc_trace_setup();
    else if (nbc_settings.trace && lead)
        fprintf(stderr, "nbcshim: NBCSHIM_TRACE ignored: a communicator of a session came before "
                        "MPI_Init\n");
}

int nbc_set_up(MPI_Comm comm, MPI_Comm home, bool lead)
{
    int level;
    if (is_set_up)
        return MPI_SUCCESS;
    is_set_up = true;
    nbc_home = home;
    leads = lead;
    NEXT(Query_thread)(&level);
    nbc_threaded = level == MPI_THREAD_MULTIPLE;
    nbc_watch_setup(level);
    start_trace(lead);
    start_thread(level);
    nbc_complete_setup();
    nbc_tag_space_divide(tag_limit(comm));
    int error = nbc_settings.check ? nbc_check_setup() : MPI_SUCCESS;
    return error ? error : nbc_context_setup();
}

static int take_world(bool lead)
{
    int error = nbc_set_up(MPI_COMM_WORLD, MPI_COMM_SELF, lead);
    if (!error)
        error = nbc_nodemap_setup();
    if (!error)
        error = nbc_context_attach(MPI_COMM_SELF);
    return error ? error : nbc_context_attach(MPI_COMM_WORLD);
}

static int start_up(void)
{
    int rank;
    nbc_watch_after();
    nbc_world_initialized = true;
    NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        nbc_env_read(true); /* read before; now that one rank can be chosen, it complains */
    nbc_tuning_read(rank == 0);
    int error = decide(rank == 0, &nbc_enabled);
    if (!error && nbc_enabled)
        error = take_world(rank == 0);
    return error ? nbc_raise(MPI_COMM_WORLD, error) : nbc_dynamic_meet_parent();
}

void nbc_shutdown(void)
{
    if (nbc_settings.stats && leads)
        nbc_stats_print();
    nbc_trace_write();
    nbc_enabled = false;
    nbc_never_cleanup();
    nbc_token_cleanup();
    nbc_context_cleanup();
    nbc_nodemap_cleanup();
    nbc_check_cleanup();
    nbc_request_cleanup();
    nbc_run_cleanup();
    is_set_up = false;
}

/* What comes before the MPI's own init. */
static void before_init(void)
{
    nbc_next_resolve();
    nbc_watch_before();
    nbc_env_read(false);
    if (nbc_wanted())
        nbc_quirks_before_init();
}

/* The thread level that the program knows of. */
static int told_level;
static bool has_told;

/* A progress thread needs MPI_THREAD_MULTIPLE. The program is told of no more than it asked for, or
 * would have had. */
static int init_thread(int *argc, char ***argv, int required, int *provided)
{
    int raised = required;
    if (nbc_settings.progress == NBC_PROGRESS_THREAD)
        raised = MPI_THREAD_MULTIPLE;
    int error = NEXT(Init_thread)(argc, argv, raised, provided);
    if (error)
        return error;
    if (raised != required && *provided > required)
        *provided = required;
    told_level = *provided;
    has_told = true;
    return start_up();
}

EXPORT(int, Init, (int *argc, char ***argv), (argc, argv))
{
    int provided;
    before_init();
    if (nbc_settings.progress == NBC_PROGRESS_THREAD)
        return init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
    int error = NEXT(Init)(argc, argv);
    return error ? error : start_up();
}

EXPORT(int, Init_thread, (int *argc, char ***argv, int required, int *provided),
       (argc, argv, required, provided))
{
    before_init();
    return init_thread(argc, argv, required, provided);
}

/* The MPI may have a higher level than it would have, for the progress thread. */
EXPORT(int, Query_thread, (int *provided), (provided))
{
    nbc_next_resolve(); /* programs may call it before MPI_Init and after MPI_Finalize */
    int error = NEXT(Query_thread)(provided);
    if (!error && has_told)
        *provided = told_level;
    return error;
}

/* A rank that has left calls out comes here while others wait for it. They get an error each time,
 * until they finalize too. Where no call can be made any more none of them comes. */
static void check_finalize(void)
{
    bool again = nbc_enabled && nbc_world_initialized && nbc_settings.check;
    const struct nbc_call barrier = {
        .coll = NBC_BARRIER,
        .purpose = NBC_FOR_FINALIZE,
        .comm = MPI_COMM_WORLD,
    };
    while (again) {
        int error = nbc_call_run(&barrier);
        nbc_lock();
        const struct nbc_context *world = nbc_context_find(MPI_COMM_WORLD);
        again = nbc_error_is(NBC_ERROR_MISMATCH, error) && world && nbc_context_good(world);
        nbc_unlock();
    }
}

EXPORT(int, Finalize, (void), ())
{
    check_finalize();
    nbc_watch_stop();
    nbc_thread_stop(); /* it could be inside the MPI while that is taken down */
    nbc_types_bury();
    return NEXT(Finalize)();
}
