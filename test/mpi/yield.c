/* SPDX-License-Identifier: MIT */
/* Preloaded into the ranks of MPICH when there are more of them than cores: makes an idle rank give
 * up its core. MPICH's ch4:ucx never does, whatever its variables say, so that ranks wait for each
 * other's time slices and a test suite takes hours. With NBC_NAP in the environment, into ranks of
 * any MPI: an idle rank sleeps for a moment, so that ranks that wait for seconds use no processor.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef unsigned progress(void *worker);

unsigned ucp_worker_progress(void *worker);

static int naps;

static __attribute__((constructor)) void read_environment(void)
{
    const char *setting = getenv("NBC_NAP");
    naps = setting && *setting;
}

int sched_yield(void)
{
    const struct timespec nap = {.tv_nsec = 500000};
    int kept = errno;

    if (!naps)
        return (int)syscall(SYS_sched_yield);
    nanosleep(&nap, NULL);
    errno = kept;
    return 0;
}

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
