/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/hook.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "below/next.h"
#include "below/ofi.h"
#include "below/quirks.h"
#include "below/simulated.h"
#include "below/slot.h"

#include "hash.h"

/* A constant. Threads that write it at the same time write the same. */
static const char *description;

static bool refuse(const char *why)
{
    description = why;
    return false;
}

/* How an MPI can be made to call a function in its progress loop. */
struct way {
    const char *name; /* the function of the MPI by which it is done */
    const char *without_effect;
    bool (*look_for)(bool any);           /* whether the MPI has it; before init too */
    bool (*allows)(int level);            /* whether it may be used at this thread level */
    void (*enter_loop)(void);             /* a call that enters the loop and does not wait */
    bool (*start)(int (*function)(void)); /* from now on the MPI calls the function */
    void (*end)(void);
    bool (*may_poll)(void), (*may_start)(void); /* hook.h; NULL: always */
    unsigned least;   /* calls that a blocking receive makes; 0: a process alone can try it */
    bool one_host;    /* only where all ranks are on one host */
    bool calls_alone; /* not beside the progress thread */
    bool looks, ends_early, misses_epochs, misses_probes; /* hook.h */
};

#define NAMED(function) \
    .name = (function), .without_effect = function " does not have the expected effect"

static int (*installed)(void); /* NULL: none */

/* In a program that is linked statically, RTLD_NEXT finds nothing. */
static __attribute__((unused)) void *find(const char *name)
{
    void *object = dlsym(RTLD_NEXT, name);
    return object ? object : dlsym(RTLD_DEFAULT, name);
}

static __attribute__((unused)) bool allows_any(int level)
{
    (void)level;
    return true;
}

/* MPICH holds locks of its own during the call, which are not recursive, and nbcshim makes calls
 * that take them: in each turn those that start messages, in rare cases those that enter the loop
 * again (errors, elements larger than 2 GiB). */
static __attribute__((unused)) bool below_multiple(int level)
{
    return level < MPI_THREAD_MULTIPLE || refuse("MPICH with MPI_THREAD_MULTIPLE");
}

static __attribute__((unused)) void probe_self(void)
{
    int flag;
    NEXT(Iprobe)(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

#if defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION
typedef int registers(int (*function)(void));

static registers *add, *drop;

/* The versions that are known to call such functions in all of their waits. */
enum { FIRST_VERSION = 1, LAST_VERSION = 5 };

/* Finds a function in a library of Open MPI. Another library may have a function of this name that
 * does something else. Returns NULL if there is none. */
static registers *find_in_open_mpi(const char *name)
{
    static const char *const libraries[] = {"libopen-pal", "libopal", "libmpi", NULL};
    Dl_info info;
    registers *function;
    void *object = find(name);
    if (!object || !dladdr(object, &info) || !info.dli_fname)
        /* unreached: other versions of Open MPI */
        return NULL;
    memcpy(&function, &object, sizeof function); /* POSIX permits the conversion */
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    for (int i = 0; libraries[i]; i++)
        if (strncmp(file, libraries[i], strlen(libraries[i])) == 0)
            return function;
    /* unreached: other versions of Open MPI */
    return NULL;
}

static bool open_mpi_look_for(bool any)
{
    int major = nbc_quirks_open_mpi_version();
    add = find_in_open_mpi("opal_progress_register");
    drop = find_in_open_mpi("opal_progress_unregister");
    if (!add || !drop)
        return refuse("no opal_progress_register in Open MPI");
    if (!any && (major < FIRST_VERSION || major > LAST_VERSION))
        /* unreached: other versions of Open MPI */
        return refuse("a version of Open MPI that nbcshim does not know");
    return true;
}

static bool open_mpi_start(int (*function)(void))
{
    return add(function) == 0;
}

static void open_mpi_end(void)
{
    drop(installed);
}

static const struct way open_mpi = {
    NAMED("opal_progress_register"), .look_for = open_mpi_look_for, .allows = allows_any,
    .enter_loop = probe_self,        .start = open_mpi_start,       .end = open_mpi_end,
};
#endif

#if defined HAVE_MPIX_ASYNC_START && defined HAVE_MPIX_REQUEST_IS_COMPLETE
typedef __typeof__(MPIX_Async_start) starts;
typedef __typeof__(MPIX_Request_is_complete) asks;
typedef __typeof__(MPIX_Stream_progress) enters;

static starts *start;
static asks *is_complete;
static enters *enter;

/* MPICH calls the function until that has returned MPIX_ASYNC_DONE; in MPI_Finalize it waits for
 * that. */
static int (*async_wanted)(void);

/* MPICH's device ch3 waits for a message in a loop of its own, in which it calls no registered
 * function. */
static bool is_ch3(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    return !NEXT(Get_library_version)(version, &length) && strstr(version, "ch3:");
}

static bool async_look_for(bool any)
{
    void *found[] = {find("MPIX_Async_start"), find("MPIX_Request_is_complete"),
                     find("MPIX_Stream_progress")};
    (void)any;
    if (is_ch3())
        return refuse("MPICH with the device ch3");
    memcpy(&start, &found[0], sizeof start); /* POSIX permits the conversion */
    memcpy(&is_complete, &found[1], sizeof is_complete);
    memcpy(&enter, &found[2], sizeof enter);
    return (found[0] && found[1] && found[2]) || refuse("an MPICH without MPIX_Async_start");
}

static void async_enter_loop(void)
{
    enter(MPIX_STREAM_NULL);
}

static int on_turn(MPIX_Async_thing thing)
{
    (void)thing;
    if (!async_wanted)
        return MPIX_ASYNC_DONE;
    async_wanted();
    return MPIX_ASYNC_NOPROGRESS;
}

static bool async_start(int (*function)(void))
{
    async_wanted = function;
    return start(on_turn, NULL, MPIX_STREAM_NULL) == MPI_SUCCESS;
}

static void async_end(void)
{
    async_wanted = NULL;
    async_enter_loop();
}

static const struct way async = {
    NAMED("MPIX_Async_start"),
    .look_for = async_look_for,
    .allows = below_multiple,
    .enter_loop = async_enter_loop,
    .start = async_start,
    .end = async_end,
    .looks = true,
    .ends_early = true,
    .misses_epochs = true,
};
#define HAS_ASYNC
#endif

#if defined MPICH_NUMVERSION && !defined NBC_ABI
/* MPICH's device ch4:ucx calls this function of UCX in each turn of all of its loops. Other users
 * of UCX in the process keep the original. */
typedef unsigned progresses(void *worker);

static struct nbc_slot ucx_slot;
static progresses *ucx_progress;
static int (*ucx_wanted)(void);

/* The MPI handles what has arrived within the call, so that comes first. */
static unsigned ucx_turn(void *worker)
{
    unsigned events = ucx_progress(worker);
    ucx_wanted();
    return events;
}

static bool ucx_look_for(bool any)
{
    (void)any;
    if (!ucx_progress && nbc_slot_find("ucp_worker_progress", &ucx_slot))
        ucx_progress = (progresses *)ucx_slot.original;
    return ucx_progress != NULL;
}

static bool ucx_start(int (*function)(void))
{
    ucx_wanted = function;
    return nbc_slot_set(&ucx_slot, (nbc_slot_function *)ucx_turn);
}

static void ucx_end(void)
{
    nbc_slot_set(&ucx_slot, ucx_slot.original);
}

/* MPI_Iprobe of MPICH does not enter the loop for a message of the process to itself. */
static __attribute__((unused)) void receive_nothing(void)
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
    NAMED("ucp_worker_progress"),  .look_for = ucx_look_for, .allows = below_multiple,
    .enter_loop = receive_nothing, .start = ucx_start,       .end = ucx_end,
};

/* The device ch4:ofi: the MPI reads its queue in each turn, and handles afterwards what has
 * arrived. */
static bool ofi_look_for(bool any)
{
    int initialized = false;
    (void)any;
    NEXT(Initialized)(&initialized);
    return initialized ? nbc_ofi_has_queue() : nbc_ofi_may_open();
}

static bool ofi_start(int (*function)(void))
{
    nbc_ofi_call(function);
    return true;
}

static void ofi_end(void)
{
    nbc_ofi_call(NULL);
}

/* The lock that the MPI holds during the read is recursive in Intel MPI. */
static const struct way ofi = {
    NAMED("fi_cq_read"),           .look_for = ofi_look_for,
#ifdef I_MPI_VERSION
    .allows = allows_any,
#else
    .allows = below_multiple,
#endif
    .enter_loop = receive_nothing, .start = ofi_start,       .end = ofi_end,
};
#define HAS_SLOTS
#endif

#if defined HAS_SLOTS && defined I_MPI_VERSION
/* Intel MPI within a node uses neither UCX nor libfabric. It asks the time by this function between
 * some turns of its loop, outside the code that makes progress; not while it probes. */
typedef void accumulates(void *from, void *to, double *sum);

static struct nbc_slot clock_slot;
static accumulates *clock_accumulate;
static int (*clock_wanted)(void);

static void clock_turn(void *from, void *to, double *sum)
{
    clock_accumulate(from, to, sum);
    clock_wanted();
}

static bool clock_look_for(bool any)
{
    (void)any;
    if (!clock_accumulate && nbc_slot_find("MPL_wtime_acc", &clock_slot))
        clock_accumulate = (accumulates *)clock_slot.original;
    return clock_accumulate != NULL;
}

static bool clock_start(int (*function)(void))
{
    clock_wanted = function;
    return nbc_slot_set(&clock_slot, (nbc_slot_function *)clock_turn);
}

static void clock_end(void)
{
    nbc_slot_set(&clock_slot, clock_slot.original);
}

static const struct way intel_clock = {
    NAMED("MPL_wtime_acc"), .look_for = clock_look_for, .allows = allows_any,
    .start = clock_start,   .end = clock_end,           .least = 1,
    .one_host = true,       .misses_probes = true,
};
#endif

#if defined HAS_SLOTS && defined HAVE_MPI_GET_LIBRARY_VERSION && !defined I_MPI_VERSION
/* With MPI_THREAD_MULTIPLE, MPICH's device ch4 holds a lock in each call for messages, and releases
 * it in each turn of its loops, so that other threads get it, and at the end of the call. nbcshim's
 * function is called when this lock, the message lock, has been released:
 *
 * - The thread does not hold the message lock then, which is not recursive, so the function may
 *   make the calls for messages that any other thread could make at this moment.
 * - From 4.1 on MPICH has more locks, and releases the message lock while it holds some of them.
 *   Where that is the lock for messages to oneself, nothing is polled (nbc_hook_may_poll). Under
 *   others, those of its nonblocking collectives among them, messages are, but no such collective
 *   is started (nbc_hook_may_start): MPI_Buffer_detach waits under one. Files have a lock of their
 *   own, which MPI_File_open holds while it waits; no call for messages takes it.
 * - nbcshim's lock precedes the message lock: whoever holds the latter never waits for the former.
 *   So the function takes nbcshim's lock only if that is free. If a thread has nbcshim's lock and
 *   waits for the message lock, the holder of that releases it without waiting.
 * - The calls that the function makes release the message lock too. The thread has nbcshim's lock
 *   then, by which the function knows that it is inside itself.
 * - MPI_Finalize ends it before the MPI shuts down. A thread of the MPI may be between the release
 *   and the call then: the function stays in memory, and finds no operation.
 *
 * All of this is said of the slots of the MPI's library, so locks of others are not concerned. */
typedef int locks(pthread_mutex_t *mutex); /* or unlocks */

static struct nbc_slot take_slot, release_slot;
static locks *lock_take, *lock_release;
static pthread_mutex_t *message_lock, *self_lock, *file_lock; /* the first two may be one */
static int (*lock_wanted)(void);
static NBC_PER_THREAD pthread_mutex_t *released; /* the last one, while locks are searched */
static NBC_PER_THREAD int held;                  /* locks, without that of files */

static int lock_taken(pthread_mutex_t *mutex)
{
    held += mutex != file_lock;
    return lock_take(mutex);
}

static int lock_released(pthread_mutex_t *mutex)
{
    int error = lock_release(mutex);
    held -= held > 0 && mutex != file_lock; /* 0: it was taken before the slots were set */
    if (mutex == message_lock)
        __atomic_load_n(&lock_wanted, __ATOMIC_RELAXED)();
    return error;
}

static int lock_noted(pthread_mutex_t *mutex)
{
    released = mutex;
    return lock_release(mutex);
}

static bool lock_set(locks *take, locks *release)
{
    return nbc_slot_set(&take_slot, (nbc_slot_function *)take) &&
           nbc_slot_set(&release_slot, (nbc_slot_function *)release);
}

/* A local call on files. */
static void ask_file(void)
{
#ifdef HAVE_MPI_FILE_OPEN
    MPI_Errhandler handler;
    __typeof__(MPI_File_get_errhandler) *ask;
    void *object = find("PMPI_File_get_errhandler");
    memcpy(&ask, &object, sizeof ask); /* POSIX permits the conversion */
    if (ask)
        ask(MPI_FILE_NULL, &handler);
#endif
}

/* The lock that each of these calls releases last. */
static bool lock_find(void)
{
    if (!lock_set(lock_take, lock_noted))
        return false; /* unreached: the system refuses it */
    ask_file();
    file_lock = released;
    probe_self();
    self_lock = released;
    receive_nothing();
    message_lock = released;
    if (file_lock == message_lock)
        file_lock = NULL; /* unreached: MPICH without ROMIO */
    return message_lock != NULL;
}

static bool lock_may_poll(void)
{
    if (self_lock == message_lock)
        return true;
    /* unreached: MPICH from 4.1 on */
    return pthread_mutex_trylock(self_lock) == 0 && pthread_mutex_unlock(self_lock) == 0;
}

static bool lock_may_start(void)
{
    return held == 0;
}

/* The trial sees no other loop than that of a receive, so the versions are those that were seen. */
static bool lock_look_for(bool any)
{
    enum { FIRST_MPICH = 4, LAST_MPICH = 5 };
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length, major = 0;
    NEXT(Get_library_version)(version, &length);
    bool known = sscanf(version, "MPICH Version: %d", &major) == 1 && major >= FIRST_MPICH &&
                 major <= LAST_MPICH;
    if (!strstr(version, "ch4:") || !(known || any))
        return false; /* unreached: other versions of MPICH */
    if (!lock_release && nbc_slot_find("pthread_mutex_lock", &take_slot) &&
        nbc_slot_find("pthread_mutex_unlock", &release_slot)) {
        lock_take = (locks *)take_slot.original;
        lock_release = (locks *)release_slot.original;
    }
    return lock_release != NULL;
}

static bool lock_allows(int level)
{
    return level == MPI_THREAD_MULTIPLE;
}

static bool lock_start(int (*function)(void))
{
    __atomic_store_n(&lock_wanted, function, __ATOMIC_RELAXED);
    return (message_lock || lock_find()) && lock_set(lock_taken, lock_released);
}

static void lock_end(void)
{
    lock_set(lock_take, lock_release);
}

static const struct way lock = {
    NAMED("pthread_mutex_unlock"), .look_for = lock_look_for, .allows = lock_allows,
    .start = lock_start,           .end = lock_end,           .least = 16,
    .calls_alone = true,           .ends_early = true,        .may_poll = lock_may_poll,
    .may_start = lock_may_start,
};
#define HAS_LOCK
#endif

/* In the order of preference. */
static const struct way *const ways[] = {
#if defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION
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
#ifdef HAS_LOCK
    &lock,
#endif
    NULL,
};

static const struct way *way; /* the last one that was installed */
static bool failed;           /* none may be used here, or has an effect */
static unsigned ncalls;       /* of count_call */

static int count_call(void)
{
    __atomic_fetch_add(&ncalls, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Whether the progress loop calls what is hooked into it. */
static bool try_way(const struct way *w)
{
    enum { MOST = 1000 };
    if (w->least)
        return true;
    ncalls = 0;
    if (!w->start(count_call))
        return false;
    installed = count_call;
    for (int i = 0; i < MOST && !ncalls; i++)
        w->enter_loop();
    w->end();
    installed = NULL;
    return ncalls > 0;
}

static bool install(const struct way *w, int (*function)(void), int level, bool any, bool thread)
{
    if (!w->look_for(any) || !w->allows(level))
        return false;
    if (w->calls_alone && thread)
        return refuse("MPICH with NBCSHIM_PROGRESS=thread");
    if (!try_way(w) || !w->start(function))
        return refuse(w->without_effect);
    description = w->name;
    installed = function;
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

int nbc_hook_install(int (*function)(void), int level, bool any, bool thread)
{
    failed = false;
    for (int i = 0; ways[i]; i++)
        if (install(ways[i], function, level, any, thread))
            return i + 1;
    failed = true;
    return 0;
}

/* --- a trial by several ranks ------------------------------------------------------------------*/

static int hash_of_host(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    uint64_t hash = NBC_HASH_START;
    int length;
    NEXT(Get_processor_name)(name, &length);
    for (const char *at = name; *at; at++)
        hash = nbc_hash(hash, (unsigned char)*at);
    return (int)(hash & INT_MAX);
}

static void wait_for(int64_t nanoseconds)
{
    struct timespec nap = {.tv_nsec = (long)nanoseconds};
    nanosleep(&nap, NULL);
}

/* This rank waits in a receive, which takes the sender so long. Returns whether the MPI calls the
 * function meanwhile. */
static bool is_called_in_receive(int source, MPI_Comm comm)
{
    unsigned before = __atomic_load_n(&ncalls, __ATOMIC_RELAXED);
    NEXT(Recv)(NULL, 0, MPI_BYTE, source, 0, comm, MPI_STATUS_IGNORE);
    return __atomic_load_n(&ncalls, __ATOMIC_RELAXED) - before >= way->least;
}

/* A message goes around: a rank either lets the next one wait before it receives, or after that.
 * Rank 0 does the former, the last one the latter. */
static bool is_called_here(MPI_Comm comm, int rank, int size, int64_t nanoseconds)
{
    bool receives_first = rank % 2 || rank == size - 1;
    int source = (rank + size - 1) % size;
    bool called = receives_first && is_called_in_receive(source, comm);
    wait_for(nanoseconds);
    NEXT(Send)(NULL, 0, MPI_BYTE, (rank + 1) % size, 0, comm);
    return receives_first ? called : is_called_in_receive(source, comm);
}

int nbc_hook_try_together(MPI_Comm comm, bool *works)
{
    enum { FIRST = 200000, TRIALS = 4, LONGER = 4 };
    int rank, size, error = MPI_SUCCESS, all = false;
    *works = true;
    if (!way->least)
        return MPI_SUCCESS;
    NEXT(Comm_rank)(comm, &rank);
    NEXT(Comm_size)(comm, &size);
    if (size == 1)
        return MPI_SUCCESS;
    int host = way->one_host ? hash_of_host() : 0, bounds[2] = {host, -host};
    error = NEXT(Allreduce)(MPI_IN_PLACE, bounds, 2, MPI_INT, MPI_MIN, comm);
    bool together = bounds[0] == -bounds[1];
    int64_t length = FIRST;
    way->start(count_call);
    for (int i = 0; i < TRIALS && !error && !all && together; i++, length *= LONGER) {
        int mine = is_called_here(comm, rank, size, length);
        error = NEXT(Allreduce)(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    }
    way->start(installed);
    failed = !all;
    *works = all || refuse(together ? way->without_effect : "Intel MPI on several hosts");
    return error;
}

/* The first way that the MPI has, NULL if there is none. */
static const struct way *look_for(void)
{
    int i = 0;
    while (ways[i] && !ways[i]->look_for(false))
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
        way->end();
    installed = NULL;
}

const char *nbc_hook_description(void)
{
    const struct way *found = failed ? NULL : way ? way : look_for();
    if (found)
        return found->name;
    return description ? description
                       : "this MPI does not call registered functions in its progress loop";
}

bool nbc_hook_looks(void)
{
    return way && way->looks;
}

bool nbc_hook_ends_early(void)
{
    return way && way->ends_early;
}

bool nbc_hook_misses_epochs(void)
{
    return way && way->misses_epochs;
}

bool nbc_hook_misses_probes(void)
{
    return way && way->misses_probes;
}

bool nbc_hook_may_poll(void)
{
    return !way->may_poll || way->may_poll();
}

bool nbc_hook_may_start(void)
{
    return !way->may_start || way->may_start();
}

bool nbc_hook_is_complete(MPI_Request request)
{
#ifdef HAS_ASYNC
    return is_complete(request);
#else
    (void)request;
    return true;
#endif
}
