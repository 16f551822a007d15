/* SPDX-License-Identifier: MIT */
/* MPI_Init, MPI_Finalize and their kin: the beginning and the end of nbcshim. */

#include "nbcshim.h"

#include "engine/calls.h"
#include "api/setup.h"
#include "base/errors.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "below/detect.h"
#include "below/export.h"
#include "below/hook.h"
#include "below/quirks.h"
#include "comm/context.h"
#include "comm/handshake.h"
#include "diag/diag.h"
#include "engine/progress.h"
#include "op/call.h"
#include "op/nodemap.h"
#include "op/types.h"

#include "coll.h"

NBC_ARCHIVE_MEMBER(init)

int nbcshim_version(void)
{
    return NBCSHIM_VERSION;
}

const char *nbcshim_hook(int *hooked)
{
    *hooked = nbc_enabled ? nbc_hooked : nbc_hook_available();
    return nbc_hook_state();
}

/* All ranks agree on whether nbcshim is active, and take the same settings. */
static int agree_on_settings(bool *on, uint32_t *large)
{
    struct nbc_comparison all;
    uint32_t says = (nbc_enabled || nbc_wanted() ? NBC_WANTS : 0) |
                    (nbc_settings.stats ? 0 : NBC_WITHOUT_STATS) |
                    (nbc_is_set_up() ? NBC_IN_USE : 0);
    int error = nbc_compare_ranks(MPI_COMM_WORLD, says, nbc_program_large(),
                                  nbc_offload_find(&nbc_offload_name), &all);
    if (error)
        return error;
    nbc_statistics_begin(!(all.said & NBC_WITHOUT_STATS));
    *on = all.said & NBC_WANTS;
    *large = all.large;
    error = *on ? nbc_compare_ranks_report(MPI_COMM_WORLD, &all, true) : MPI_SUCCESS;
    nbc_offloaded = nbc_settings.blocking == NBC_BLOCKING_OWN ? 0 : all.offloaded;
    return error;
}

/* The MPI calls nbcshim in its progress loop on all ranks in the same way, or on none. If it does,
 * calls of the program can block in the MPI. */
static int agree_on_hook(void)
{
    int level, mine = 0;
    NEXT(Query_thread)(&level);
    if (nbc_settings.hook != NBC_HOOK_OFF)
        mine = nbc_callback_start(level, nbc_settings.hook == NBC_HOOK_ON);
    int bounds[2] = {mine, -mine};
    int error = NEXT(Allreduce)(MPI_IN_PLACE, bounds, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (error)
        return error;
    bool works = bounds[0] > 0 && bounds[0] == -bounds[1];
    if (works)
        error = nbc_hook_try_together(MPI_COMM_WORLD, &works);
    nbc_hooked = nbc_was_hooked = works && !error;
    if (mine && !nbc_hooked)
        nbc_hook_remove();
    return error;
}

/* NBCSHIM_CHECK compares the blocking calls that nbcshim carries out, and NBCSHIM_REDUCTION_ORDER
 * holds for them. Returns the collectives that nbcshim carries out in any case. */
static uint32_t settle_blocking(void)
{
    bool wants_own = nbc_settings.check || nbc_settings.order != NBC_ORDER_ANY;
    if (nbc_settings.blocking != NBC_BLOCKING_AUTO)
        return 0;
    nbc_settings.blocking = nbc_hooked && !wants_own ? NBC_BLOCKING_NATIVE : NBC_BLOCKING_OWN;
    return nbc_quirks_own_blocking();
}

/* MPI_Finalize is deleting the attributes of MPI_COMM_SELF, in reverse order: those of the program
 * and that of the context are deleted already. */
static int on_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    nbc_statistics_collect();
    nbc_self_comm = MPI_COMM_NULL; /* the hidden duplicate of MPI_COMM_SELF is freed */
    nbc_sessions_end_world();
    return MPI_SUCCESS;
}

static int catch_finalize(void)
{
    int keyval;
    int error = NEXT(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, on_finalize, &keyval, NULL);
    if (error)
        return error;
    error = NEXT(Comm_set_attr)(MPI_COMM_SELF, keyval, NULL);
    NEXT(Comm_free_keyval)(&keyval);
    return error;
}

static int attach_world(int rank, uint32_t large)
{
    int error = agree_on_hook();
    uint32_t own = large | settle_blocking();
    if (!error)
        error = nbc_set_up(MPI_COMM_WORLD, MPI_COMM_SELF, rank);
    nbc_set_native_blocking(own);
    nbc_referenced_large = large;
    if (!error)
        error = nbc_nodemap_setup();
    if (!error)
        error = catch_finalize();
    if (!error)
        error = nbc_context_attach_world();
    if (!error)
        nbc_self_comm = nbc_context_of(MPI_COMM_SELF)->hidden;
    return error;
}

static void introduce(void)
{
    sigset_t before;
    int size;
    NEXT(Comm_size)(MPI_COMM_WORLD, &size);
    nbc_broken_pipe_ignore(&before);
    nbc_statistics_introduce();
    if (nbc_enabled && !nbc_settings.spawned)
        nbc_launcher_check(size);
    nbc_broken_pipe_heed(&before);
}

static int after_init(void)
{
    int rank;
    uint32_t large = 0;
    MPI_Comm parent;
    nbc_hook_after_init();
    nbc_hang_report_after_init();
    nbc_world_initialized = true;
    nbc_settings.spawned = !nbc_quirks_parent(&parent) && parent != MPI_COMM_NULL;
    NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    int error = nbc_handshake(); /* before files are read, which may take long */
    if (rank == 0)
        nbc_settings_read(true); /* a second time, in which one rank reports errors */
    nbc_tuning_read(rank == 0);
    if (!error)
        error = agree_on_settings(&nbc_enabled, &large);
    if (!error && nbc_enabled)
        error = attach_world(rank, large);
    if (!error && rank == 0)
        introduce();
    nbc_hang_report_init_ends();
    return error ? nbc_raise(MPI_COMM_WORLD, error) : nbc_dynamic_meet_parent();
}

/* Called before the native MPI_Init. */
static void before_init(void)
{
    nbc_init_was_called = true;
    nbc_next_resolve();
    nbc_require_its_mpi();
    nbc_settings_read(false);
    bool wanted = nbc_wanted();
    nbc_hang_report_before_init(wanted);
    if (!wanted)
        return;
    nbc_quirks_before_init();
    nbc_hook_before_init();
}

/* The thread level that the program was given. */
static int provided_level;
static bool has_provided;

/* A progress thread needs MPI_THREAD_MULTIPLE, so nbcshim requires that level of the MPI. The
 * program is then given at most the level that it requires itself. */
static int init_thread(int *argc, char ***argv, int required, int *provided)
{
    int raised = required;
    if (nbc_settings.progress == NBC_PROGRESS_THREAD)
        raised = MPI_THREAD_MULTIPLE;
    int error = NEXT(Init_thread)(argc, argv, raised, provided);
    if (error)
        return error; /* unreached: the MPI fails */
    if (raised != required && *provided > required)
        *provided = required;
    provided_level = *provided;
    has_provided = true;
    return after_init();
}

EXPORT(int, Init, (int *argc, char ***argv), (argc, argv))
{
    int provided;
    before_init();
    if (nbc_settings.progress == NBC_PROGRESS_THREAD)
        return init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
    int error = NEXT(Init)(argc, argv);
    return error ? error : after_init();
}

EXPORT(int, Init_thread, (int *argc, char ***argv, int required, int *provided),
       (argc, argv, required, provided))
{
    before_init();
    return init_thread(argc, argv, required, provided);
}

/* The MPI may have been raised to a higher level for the progress thread. */
EXPORT(int, Query_thread, (int *provided), (provided))
{
    nbc_next_resolve(); /* programs may call it before MPI_Init and after MPI_Finalize */
    int error = NEXT(Query_thread)(provided);
    if (!error && has_provided)
        *provided = provided_level;
    return error;
}

/* NBCSHIM_CHECK: a rank that left calls out is in MPI_Finalize while other ranks wait for it in a
 * collective. Each barrier makes one of their calls fail, until they call MPI_Finalize too; or
 * until no operation can be started any more. */
static void check_finalize(void)
{
    bool again = nbc_enabled && nbc_world_initialized && nbc_settings.check;
    const struct nbc_call barrier = {
        .coll = NBC_BARRIER,
        .purpose = NBC_FOR_FINALIZE,
        .comm = MPI_COMM_WORLD,
    };
    while (again) {
        int error = nbc_call_forced(&barrier);
        nbc_lock();
        const struct nbc_context *world = nbc_context_find(MPI_COMM_WORLD);
        again = nbc_error_is(NBC_ERROR_MISMATCH, error) && world && nbc_context_usable(world);
        nbc_unlock();
    }
}

EXPORT(int, Finalize, (void), ())
{
    nbc_hang_report_finalize_begins();
    check_finalize();
    nbc_hang_report_stop();
    nbc_thread_stop(); /* or it could call the MPI while that is shut down */
    nbc_types_reclaim();
    if (nbc_hook_has(NBC_HOOK_ENDS_EARLY)) {
        /* unreached below: the MPI fails */
        nbc_hooked = false;
        nbc_hook_remove();
    }
    nbc_sessions_finalize_begins();
    int error = NEXT(Finalize)();
    nbc_sessions_finalize_ends();
    nbc_hang_report_finalize_ends();
    return error;
}
