/* SPDX-License-Identifier: MIT */
/* Preloaded into the ranks of MPICH when there are more of them than cores: makes an idle rank give
 * up its core. MPICH's ch4:ucx never does, whatever its variables say, so that ranks wait for each
 * other's time slices and a test suite takes hours. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <string.h>

typedef unsigned progress(void *worker);

unsigned ucp_worker_progress(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static progress *below;
    unsigned events;
    if (!below) {
        void *address = dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (!address) /* the MPI was loaded for somebody alone */
            address = dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), "ucp_worker_progress");
        memcpy(&below, &address, sizeof below);
    }
    events = below(worker);
    if (!events)
        sched_yield();
    return events;
}
