/* SPDX-License-Identifier: MIT */
#include "base/state.h"

#include "base/lock.h"
#include "below/detect.h"
#include "below/hook.h"

bool nbc_threaded;
pthread_mutex_t nbc_mutex = PTHREAD_MUTEX_INITIALIZER;
volatile sig_atomic_t nbc_report_asked;
void (*nbc_report)(void);
NBC_PER_THREAD unsigned char nbc_inside;
uint32_t nbc_native_blocking, nbc_referenced_large = NBC_LARGE_UNKNOWN, nbc_offloaded;
const char *nbc_offload_name;
bool nbc_enabled, nbc_world_initialized, nbc_has_peers, nbc_hooked, nbc_was_hooked, nbc_by_thread;
MPI_Comm nbc_handle_comm;
MPI_Comm nbc_self_comm = MPI_COMM_NULL;

const char *nbc_hook_state(void)
{
    bool refused = nbc_enabled && !nbc_was_hooked && nbc_hook_available();
    return refused ? "NBCSHIM_HOOK=off, or a rank that has no hook" : nbc_hook_description();
}
