/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/hook.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "below/next.h"
#include "below/quirks.h"
#include "below/slot.h"

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
    bool looks, ends_early, misses_epochs; /* hook.h */
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

/* MPICH holds locks of its own during the call, which is why a function may not call what waits, or
 * enters the loop again. nbcshim does so in rare cases (errors, elements larger than 2 GiB). */
static bool async_allows(int level)
{
    return level < MPI_THREAD_MULTIPLE || refuse("MPICH with MPI_THREAD_MULTIPLE");
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
    .allows = async_allows,
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

/* MPICH holds its lock during the call, which is not recursive. */
static bool ucx_allows(int level)
{
    return level < MPI_THREAD_MULTIPLE || refuse("MPICH with MPI_THREAD_MULTIPLE");
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
    NAMED("ucp_worker_progress"),  .look_for = ucx_look_for, .allows = ucx_allows,
    .enter_loop = receive_nothing, .start = ucx_start,       .end = ucx_end,
};
#define HAS_SLOTS
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
    &ucx,
#endif
    NULL,
};

static const struct way *way; /* the last one that was installed */
static bool failed;           /* none may be used here, or has an effect */
static unsigned ncalls;       /* of count_call */

static int count_call(void)
{
    ncalls++;
    return 0;
}

/* Whether the progress loop calls what is hooked into it. */
static bool try_way(const struct way *w)
{
    enum { MOST = 1000 };
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

static bool install(const struct way *w, int (*function)(void), int level, bool any)
{
    if (!w->look_for(any) || !w->allows(level))
        return false;
    if (!try_way(w) || !w->start(function))
        return refuse(w->without_effect);
    description = w->name;
    installed = function;
    way = w;
    return true;
}

int nbc_hook_install(int (*function)(void), int level, bool any)
{
    failed = false;
    for (int i = 0; ways[i]; i++)
        if (install(ways[i], function, level, any))
            return i + 1;
    failed = true;
    return 0;
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
    const struct way *found = installed ? way : failed ? NULL : look_for();
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

bool nbc_hook_is_complete(MPI_Request request)
{
#ifdef HAS_ASYNC
    return is_complete(request);
#else
    (void)request;
    return true;
#endif
}
