/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/hook.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "below/detect.h"
#include "below/next.h"
#include "below/ofi.h"
#include "below/quirks.h"
#include "below/slot.h"

#include "hash.h"

/* A constant. Threads that write it at the same time write the same. */
static const char *description;

static bool refuse(const char *why)
{
    description = why;
    return false;
}

/* How an MPI can be made to call `wanted` in its progress loop. */
struct way {
    const char *name; /* the function of the MPI by which it is done */
    const char *without_effect;
    void (*enter_loop)(void); /* a call that enters the loop and does not wait */
    unsigned *turns;          /* NULL: a process alone can try it, by enter_loop */

    struct nbc_slot *slot;      /* the MPI calls the function of that name by this slot, */
    nbc_slot_function *in_slot; /* and then this one in its place; or, without a slot: */
    bool (*look_for)(void);     /* whether the MPI has it; before init too */
    bool (*start)(void);
    void (*end)(void);

    /* MPICH holds locks of its own during the call, which are not recursive, and nbcshim makes
     * calls that take them: in each turn those that start messages, in rare cases those that enter
     * the loop again (errors, elements larger than 2 GiB). */
    bool below_multiple;
    unsigned traits; /* of enum nbc_hook_trait */
};

#define NAMED(function) \
    .name = (function), .without_effect = function " does not have the expected effect"

static int (*wanted)(void); /* stays after the end: other threads may be about to call it */
static bool any_version;    /* accept versions of Open MPI that nbcshim does not know */

#if (defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION) || defined NBC_ABI
#define HAS_REGISTER
typedef int registers(int (*function)(void));

static registers *add, *drop;

static void probe_self(void)
{
    int flag;
    NEXT(Iprobe)(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* The versions that are known to call such functions in all of their waits. */
enum { FIRST_VERSION = 1, LAST_VERSION = 6 };

/* Finds a function in a library of Open MPI. Another library may have a function of this name that
 * does something else. Returns NULL if there is none. */
static registers *find_in_open_mpi(const char *name)
{
    static const char *const libraries[] = {"libopen-pal", "libopal", "libopen_mpi", "libmpi",
                                            NULL};
    Dl_info info;
    const void *object = nbc_next_object(name);
    if (!object || !dladdr(object, &info) || !info.dli_fname)
        return NULL; /* unreached: other versions of Open MPI */
    const char *file = nbc_base_name(info.dli_fname);
    for (int i = 0; libraries[i]; i++)
        if (strncmp(file, libraries[i], strlen(libraries[i])) == 0)
            return (registers *)nbc_next_function(name);
    return NULL; /* unreached: other versions of Open MPI */
}

static bool open_mpi_look_for(void)
{
    int major = nbc_quirks_open_mpi_version();
    if (!major)
        return false; /* unreached: another MPI with the ABI of MPI-5 */
    add = find_in_open_mpi("opal_progress_register");
    drop = find_in_open_mpi("opal_progress_unregister");
    if (!add || !drop)
        return refuse("no opal_progress_register in Open MPI");
    if (!any_version && (major < FIRST_VERSION || major > LAST_VERSION))
        /* unreached: other versions of Open MPI */
        return refuse("a version of Open MPI that nbcshim does not know");
    return true;
}

static bool open_mpi_start(void)
{
    return add(wanted) == 0;
}

static void open_mpi_end(void)
{
    drop(wanted);
}

static const struct way open_mpi = {
    NAMED("opal_progress_register"), .enter_loop = probe_self, .look_for = open_mpi_look_for,
    .start = open_mpi_start,         .end = open_mpi_end,
};
#endif

#if defined HAVE_MPIX_ASYNC_START && defined HAVE_MPIX_REQUEST_IS_COMPLETE
typedef __typeof__(MPIX_Async_start) starts;
typedef __typeof__(MPIX_Request_is_complete) asks;
typedef __typeof__(MPIX_Stream_progress) enters;

static starts *start;
static asks *is_complete;
static enters *enter;

static bool async_look_for(void)
{
    start = (starts *)nbc_next_function("MPIX_Async_start");
    is_complete = (asks *)nbc_next_function("MPIX_Request_is_complete");
    enter = (enters *)nbc_next_function("MPIX_Stream_progress");
    if (nbc_quirks_version("ch3:") >=
        0) /* it waits for messages in a loop that calls no function */
        return refuse("MPICH with the device ch3");
    return (start && is_complete && enter) || refuse("an MPICH without MPIX_Async_start");
}

static void async_enter_loop(void)
{
    enter(MPIX_STREAM_NULL);
}

/* MPICH calls the function until that has returned MPIX_ASYNC_DONE; in MPI_Finalize it waits for
 * that. */
static int on_turn(MPIX_Async_thing thing)
{
    (void)thing;
    if (!wanted)
        return MPIX_ASYNC_DONE;
    wanted();
    return MPIX_ASYNC_NOPROGRESS;
}

static bool async_start(void)
{
    return start(on_turn, NULL, MPIX_STREAM_NULL) == MPI_SUCCESS;
}

static void async_end(void)
{
    wanted = NULL;
    async_enter_loop();
}

static const struct way async = {
    NAMED("MPIX_Async_start"),
    .enter_loop = async_enter_loop,
    .look_for = async_look_for,
    .start = async_start,
    .end = async_end,
    .below_multiple = true,
    .traits = NBC_HOOK_LOOKS | NBC_HOOK_ENDS_EARLY | NBC_HOOK_MISSES_EPOCHS,
};
#define HAS_ASYNC
#endif

#if defined MPICH_NUMVERSION && !defined NBC_ABI
/* MPICH's device ch4:ucx calls this function of UCX in each turn of all of its loops. Other users
 * of UCX in the process keep the original. */
typedef unsigned progresses(void *worker);

static struct nbc_slot ucx_slot;

/* The MPI handles what has arrived within the call, so that comes first. */
static unsigned ucx_turn(void *worker)
{
    unsigned events = ((progresses *)ucx_slot.original)(worker);
    wanted();
    return events;
}

/* MPI_Iprobe of MPICH does not enter the loop for a message of the process to itself. */
static void receive_nothing(void)
{
    MPI_Request request;
    int flag;
    if (NEXT(Irecv)(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request))
        return;
    NEXT(Request_get_status)(request, &flag, MPI_STATUS_IGNORE);
    NEXT(Cancel)(&request);
    NEXT(Wait)(&request, MPI_STATUS_IGNORE);
}

static const struct way ucx = {
    NAMED("ucp_worker_progress"),
    .enter_loop = receive_nothing,
    .slot = &ucx_slot,
    .in_slot = (nbc_slot_function *)ucx_turn,
    .below_multiple = true,
};

/* The device ch4:ofi: the MPI reads its queue in each turn, and handles afterwards what has
 * arrived. */
static bool ofi_look_for(void)
{
    int initialized = false;
    NEXT(Initialized)(&initialized);
    return initialized ? nbc_ofi_has_queue() : nbc_ofi_may_open();
}

static bool ofi_start(void)
{
    nbc_ofi_call(wanted);
    return true;
}

static void ofi_end(void)
{
    nbc_ofi_call(NULL);
}

/* The lock that the MPI holds during the read is recursive in Intel MPI. */
static const struct way ofi = {
    NAMED("fi_cq_read"),      .enter_loop = receive_nothing,
    .look_for = ofi_look_for, .start = ofi_start,
    .end = ofi_end,
#ifndef I_MPI_VERSION
    .below_multiple = true,
#endif
};
#define HAS_SLOTS
#endif

#if defined HAS_SLOTS && defined I_MPI_VERSION
/* Intel MPI within a node uses neither UCX nor libfabric. It asks the time by this function between
 * some turns of its loop, outside the code that makes progress; not while it probes. */
typedef void accumulates(void *from, void *to, double *sum);

static struct nbc_slot clock_slot;
static unsigned clock_turns; /* by several threads: not all are counted */

static void clock_turn(void *from, void *to, double *sum)
{
    ((accumulates *)clock_slot.original)(from, to, sum);
    __atomic_store_n(&clock_turns, clock_turns + 1, __ATOMIC_RELAXED);
    wanted();
}

static const struct way intel_clock = {
    NAMED("MPL_wtime_acc"),
    .turns = &clock_turns,
    .slot = &clock_slot,
    .in_slot = (nbc_slot_function *)clock_turn,
    .traits = NBC_HOOK_MISSES_PROBES,
};
#endif

/* In the order of preference. */
static const struct way *const ways[] = {
#ifdef HAS_REGISTER
    &open_mpi,
#endif
#ifdef HAS_ASYNC
    &async,
#endif
#ifdef HAS_SLOTS
    &ofi,         &ucx,
#endif
#if defined HAS_SLOTS && defined I_MPI_VERSION
    &intel_clock,
#endif
    NULL,
};

static const struct way *way; /* the last one that was installed */
static bool installed;
static bool failed;     /* none may be used here, or has an effect */
static unsigned ncalls; /* of count_call */

static int count_call(void)
{
    ncalls++;
    return 0;
}

static bool way_exists(const struct way *w)
{
    return w->slot ? nbc_slot_find(w->name, w->slot) : w->look_for();
}

static bool way_start(const struct way *w, int (*function)(void))
{
    wanted = function;
    return w->slot ? nbc_slot_set(w->slot, w->in_slot) : w->start();
}

static void way_end(const struct way *w)
{
    if (w->slot)
        nbc_slot_set(w->slot, w->slot->original);
    else
        w->end();
}

/* Whether the progress loop calls what is hooked into it. */
static bool try_way(const struct way *w)
{
    enum { MOST = 1000 };
    if (w->turns)
        return true;
    ncalls = 0;
    if (!way_start(w, count_call))
        return false;
    for (int i = 0; i < MOST && !ncalls; i++)
        w->enter_loop();
    way_end(w);
    return ncalls > 0;
}

static bool install(const struct way *w, int (*function)(void), int level)
{
    if (!way_exists(w))
        return false;
    if (w->below_multiple && level == MPI_THREAD_MULTIPLE)
        return refuse("MPICH with MPI_THREAD_MULTIPLE");
    if (!try_way(w) || !way_start(w, function))
        return refuse(w->without_effect);
    description = w->name;
    installed = true;
    way = w;
    return true;
}

void nbc_hook_before_init(void)
{
#ifdef HAS_SLOTS
    nbc_ofi_watch();
#endif
}

void nbc_hook_after_init(void)
{
#ifdef HAS_SLOTS
    nbc_ofi_unwatch();
#endif
}

int nbc_hook_install(int (*function)(void), int level, bool any)
{
    any_version = any;
    failed = false;
    for (int i = 0; ways[i]; i++)
        if (install(ways[i], function, level))
            return i + 1;
    failed = true;
    return 0;
}

/* --- a trial by several ranks ------------------------------------------------------------------*/

static int hash_of_host(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    NEXT(Get_processor_name)(name, &length);
    return (int)(nbc_hash_bytes(name, strlen(name)) & INT_MAX);
}

static void wait_for(int64_t nanoseconds)
{
    struct timespec nap = {.tv_nsec = (long)nanoseconds};
    nanosleep(&nap, NULL);
}

/* This rank waits in a receive, which takes the sender so long. Returns whether the MPI has called
 * the function meanwhile. */
static bool is_called_in_receive(int source, MPI_Comm comm)
{
    unsigned before = *way->turns;
    NEXT(Recv)(NULL, 0, MPI_BYTE, source, 0, comm, MPI_STATUS_IGNORE);
    return *way->turns != before;
}

/* Rank 0 lets all others wait, then rank 1 lets rank 0 wait. */
static bool is_called_here(MPI_Comm comm, int rank, int size, int64_t nanoseconds)
{
    bool called = rank == 0 || is_called_in_receive(0, comm);
    if (rank <= 1)
        wait_for(nanoseconds);
    for (int i = 1; i < size && rank == 0; i++)
        NEXT(Send)(NULL, 0, MPI_BYTE, i, 0, comm);
    if (rank == 1)
        NEXT(Send)(NULL, 0, MPI_BYTE, 0, 0, comm);
    return rank == 0 ? is_called_in_receive(1, comm) : called;
}

int nbc_hook_try_together(MPI_Comm comm, bool *works)
{
    enum { FIRST = 200000, TRIALS = 4, LONGER = 4 };
    int rank, size, error = MPI_SUCCESS, all = false;
    *works = true;
    if (!way->turns)
        return MPI_SUCCESS;
    NEXT(Comm_rank)(comm, &rank);
    NEXT(Comm_size)(comm, &size);
    if (size == 1)
        return MPI_SUCCESS;
    int host = hash_of_host(), bounds[2] = {host, -host};
    error = NEXT(Allreduce)(MPI_IN_PLACE, bounds, 2, MPI_INT, MPI_MIN, comm);
    bool together = bounds[0] == -bounds[1];
    int64_t length = FIRST;
    for (int i = 0; i < TRIALS && !error && !all && together; i++, length *= LONGER) {
        int mine = is_called_here(comm, rank, size, length);
        error = NEXT(Allreduce)(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    }
    failed = !all;
    *works = all || refuse(together ? way->without_effect : "Intel MPI on several hosts");
    return error;
}

/* The first way that the MPI has, NULL if there is none. */
static const struct way *look_for(void)
{
    int i = 0;
    while (ways[i] && !way_exists(ways[i]))
        i++;
    return ways[i];
}

bool nbc_hook_available(void)
{
    return installed || (!failed && look_for());
}

void nbc_hook_remove(void)
{
    if (installed)
        way_end(way);
    installed = false;
}

const char *nbc_hook_description(void)
{
    const struct way *found = installed ? way : failed ? NULL : look_for();
    if (found)
        return found->name;
    return description ? description
                       : "this MPI does not call registered functions in its progress loop";
}

bool nbc_hook_has(enum nbc_hook_trait trait)
{
    return way && way->traits & trait;
}

bool nbc_hook_is_complete(MPI_Request request)
{
#ifdef HAS_ASYNC
    return !is_complete || is_complete(request);
#else
    (void)request;
    return true;
#endif
}
