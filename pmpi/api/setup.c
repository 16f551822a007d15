/* SPDX-License-Identifier: MIT */
#include "api/setup.h"

#include <stdio.h>

#include "api/wait_test.h"
#include "base/lock.h"
#include "base/settings.h"
#include "base/state.h"
#include "base/tag_space.h"
#include "below/detect.h"
#include "below/device.h"
#include "below/hook.h"
#include "below/quirks.h"
#include "below/revoked.h"
#include "comm/context.h"
#include "diag/diag.h"
#include "engine/progress.h"
#include "op/message.h"
#include "op/nodemap.h"
#include "op/shared.h"
#include "op/stage.h"
#include "op/types.h"
#include "request/request.h"

#include "bytes.h"

static bool is_set_up;

bool nbc_wanted(void)
{
    if (nbc_settings.mode != NBC_MODE_AUTO)
        return nbc_settings.mode == NBC_MODE_ON;
    return nbc_settings.for_blocking || nbc_program_wants_us();
}

void nbc_set_native_blocking(uint32_t own)
{
    nbc_native_blocking = nbc_settings.blocking == NBC_BLOCKING_NATIVE ? ~own : 0;
}

/* The last tag for operations. The next one is for signals, two more for messages of a rank to
 * itself.
 */
static int tag_limit(MPI_Comm comm)
{
    int *attribute, flag, limit = 32767; /* the least that the standard allows */
    NEXT(Comm_get_attr)(comm, MPI_TAG_UB, &attribute, &flag);
    if (flag)
        limit = *attribute;
    limit -= 3;
    return limit < nbc_settings.test.tag_ub ? limit : (int)nbc_settings.test.tag_ub;
}

/* The progress thread calls the MPI at the same time as threads of the program. */
static void start_progress_thread(int level)
{
    const char *why = level < MPI_THREAD_MULTIPLE ? "this MPI does not provide MPI_THREAD_MULTIPLE"
                                                  : "the system cannot create a thread";
    if (nbc_settings.progress != NBC_PROGRESS_THREAD)
        return;
    if (level == MPI_THREAD_MULTIPLE && nbc_thread_start())
        return;
    nbc_settings.progress = NBC_PROGRESS_CALLS;
    fprintf(stderr, "nbcshim: NBCSHIM_PROGRESS=thread ignored: %s\n", why);
}

/* Whether a thread of the program may start an operation that nobody progresses while another one
 * is blocked in the MPI. */
static bool threads_may_start(int level)
{
    return level == MPI_THREAD_MULTIPLE && !nbc_hooked &&
           nbc_settings.progress != NBC_PROGRESS_THREAD;
}

/* Without MPI_Init there is no MPI_COMM_WORLD whose ranks could write a trace together. */
static void start_trace(bool lead)
{
    if (nbc_settings.trace && nbc_world_initialized)
        nbc_trace_setup();
    else if (nbc_settings.trace && lead)
        fprintf(stderr, "nbcshim: NBCSHIM_TRACE ignored: a session created a communicator before "
                        "MPI_Init\n");
}

bool nbc_is_set_up(void)
{
    return is_set_up;
}

int nbc_set_up(MPI_Comm comm, MPI_Comm home, int rank)
{
    int level;
    if (is_set_up)
        return MPI_SUCCESS;
    is_set_up = true;
    nbc_handle_comm = home;
    const bool leads = rank == 0; /* this process speaks for the job */
    nbc_device_set_up(nbc_settings.device == NBC_DEVICE_OFF, nbc_settings.level_zero);
    nbc_set_native_blocking(0);
    nbc_statistics_setup(leads);
    nbc_revoked_setup();
    nbc_quirks_setup(home);
    nbc_sockets_eager = NBC_SOCKETS_EAGER;
    NEXT(Query_thread)(&level);
    nbc_threaded = level == MPI_THREAD_MULTIPLE;
    nbc_hang_report_setup(rank, level);
    start_trace(leads);
    if (leads && nbc_settings.device == NBC_DEVICE_DIRECT && !nbc_device_mpi_takes(NULL))
        fprintf(stderr, "nbcshim: NBCSHIM_DEVICE=direct: this MPI does not say that it takes "
                        "buffers of GPUs: they are copied to memory of the host\n");
    start_progress_thread(level);
    nbc_request_let_waits_poll(threads_may_start(level));
    nbc_complete_setup();
    nbc_tag_space_divide(tag_limit(comm));
    int error = nbc_settings.check ? nbc_check_setup() : MPI_SUCCESS;
    return error ? error : nbc_context_setup();
}

void nbc_shutdown(void)
{
    sigset_t before;
    nbc_broken_pipe_ignore(&before);
    nbc_statistics_print();
    nbc_trace_write();
    nbc_broken_pipe_heed(&before);
    nbc_hook_remove();
    nbc_enabled = nbc_hooked = nbc_was_hooked = false;
    nbc_native_blocking = nbc_offloaded = 0;
    nbc_referenced_large = NBC_LARGE_UNKNOWN;
    nbc_dummy_cleanup();
    nbc_self_comm = MPI_COMM_NULL;
    nbc_context_cleanup();
    nbc_shared_cleanup();
    nbc_nodemap_cleanup();
    nbc_check_cleanup();
    nbc_request_let_waits_poll(false);
    nbc_request_cleanup();
    nbc_types_cleanup();
    nbc_stage_cleanup();
    is_set_up = false;
}
