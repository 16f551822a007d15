/* SPDX-License-Identifier: MIT */
/* Preloaded into the ranks of MPICH when there are more of them than cores: makes an idle rank give
 * up its core. MPICH's ch4:ucx never does, whatever its variables say, so that ranks wait for each
 * other's time slices and a test suite takes hours.
 *
 * With NBC_NAP=NANOSECONDS in the environment, for ranks of any MPI: an idle rank sleeps where it
 * would yield. Ranks that wait for seconds then use no processor; and a rank that sleeps is woken
 * in time, while one that yields waits until all others have had a time slice of some milliseconds,
 * also those of other programs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef unsigned progress(void *worker);

unsigned ucp_worker_progress(void *worker);

static long nap; /* nanoseconds, or 0 */

static __attribute__((constructor)) void read_environment(void)
{
    const char *setting = getenv("NBC_NAP");
    nap = setting ? atol(setting) : 0;
}

int sched_yield(void)
{
    static _Thread_local int exact;
    int kept = errno;
    if (!nap)
        return (int)syscall(SYS_sched_yield);
    if (!exact)
        exact = !prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    nanosleep(&(struct timespec){0, nap}, NULL);
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
