/* SPDX-License-Identifier: MIT */
#include "base/in_mpi.h"

#include <time.h>

bool nbc_timing_on;

int64_t nbc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct thread {
    int64_t since; /* when the call began */
    int64_t total; /* of earlier calls */
    int32_t number, depth;
};

static NBC_PER_THREAD struct thread here;
static int32_t nthreads;

void nbc_in_mpi_enter(void)
{
    if (here.depth++ > 0)
        return;
    if (!here.number)
        here.number = __atomic_add_fetch(&nthreads, 1, __ATOMIC_RELAXED);
    here.since = nbc_now();
}

int64_t nbc_in_mpi_leave_at(int64_t now)
{
    if (here.depth == 0 || --here.depth > 0)
        return 0; /* 0: a call that began before the time was counted */
    int64_t took = now - here.since;
    here.total += took;
    return took;
}

int64_t nbc_in_mpi_leave(void)
{
    return nbc_in_mpi_leave_at(here.depth == 1 ? nbc_now() : 0);
}

bool nbc_in_mpi(void)
{
    return here.depth > 0;
}

struct nbc_moment nbc_in_mpi_moment(void)
{
    int64_t now = nbc_now();
    return (struct nbc_moment){now, here.total + (here.depth ? now - here.since : 0), here.number};
}

struct nbc_moment nbc_in_mpi_entered(void)
{
    return (struct nbc_moment){here.since, here.total, here.number};
}

int64_t nbc_in_mpi_between(const struct nbc_moment *before, const struct nbc_moment *after)
{
    int64_t own = here.depth ? after->now - here.since : 0;
    int64_t all = after->now - before->now;
    int64_t inside = before->thread == after->thread ? after->inside - before->inside : own;
    return inside < all ? inside : all;
}
