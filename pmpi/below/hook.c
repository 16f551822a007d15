/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/hook.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "below/next.h"
#include "below/quirks.h"

/* A constant. Threads that write it at the same time write the same. */
static const char *description;

static bool refuse(const char *why)
{
    description = why;
    return false;
}

#if defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION
#define NBC_HOOK_FUNCTION "opal_progress_register"
#elif defined HAVE_MPIX_ASYNC_START && defined HAVE_MPIX_REQUEST_IS_COMPLETE
#define NBC_HOOK_FUNCTION "MPIX_Async_start"
#define NBC_HOOK_OF_MPICH
#endif

#ifdef NBC_HOOK_OF_MPICH
enum { LOOKS = true, ENDS_EARLY = true, MISSES_EPOCHS = true };
#else
enum { LOOKS = false, ENDS_EARLY = false, MISSES_EPOCHS = false };
#endif

bool nbc_hook_looks(void)
{
    return LOOKS;
}

bool nbc_hook_ends_early(void)
{
    return ENDS_EARLY;
}

bool nbc_hook_misses_epochs(void)
{
    return MISSES_EPOCHS;
}

#ifndef NBC_HOOK_OF_MPICH
/* unreached: asked only with the hook of MPICH */
bool nbc_hook_is_complete(MPI_Request request)
{
    (void)request;
    return true;
}
#endif

#ifdef NBC_HOOK_FUNCTION
static int (*installed)(void); /* NULL: none */
static unsigned ncalls;        /* of count_call */
static bool failed;            /* it may not be used here, or has no effect */

/* In a program that is linked statically, RTLD_NEXT finds nothing. */
static void *find(const char *name)
{
    void *object = dlsym(RTLD_NEXT, name);
    return object ? object : dlsym(RTLD_DEFAULT, name);
}

static int count_call(void)
{
    ncalls++;
    return 0;
}
#endif

#if defined OPEN_MPI && defined NBC_HOOK_FUNCTION
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

static bool look_for(bool any)
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

static bool allows(int level)
{
    (void)level;
    return true;
}

static void enter_loop(void)
{
    int flag;
    NEXT(Iprobe)(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static bool hook_start(int (*function)(void))
{
    return add(function) == 0;
}

static void hook_end(void)
{
    drop(installed);
}
#elif defined NBC_HOOK_OF_MPICH
typedef __typeof__(MPIX_Async_start) starts;
typedef __typeof__(MPIX_Request_is_complete) asks;
typedef __typeof__(MPIX_Stream_progress) enters;

static starts *start;
static asks *is_complete;
static enters *enter;

/* MPICH calls the function until that has returned MPIX_ASYNC_DONE; in MPI_Finalize it waits for
 * that. */
static int (*wanted)(void);

bool nbc_hook_is_complete(MPI_Request request)
{
    return is_complete(request);
}

/* MPICH's device ch3 waits for a message in a loop of its own, in which it calls no registered
 * function. */
static bool is_ch3(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    return !NEXT(Get_library_version)(version, &length) && strstr(version, "ch3:");
}

static bool look_for(bool any)
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
static bool allows(int level)
{
    return level < MPI_THREAD_MULTIPLE || refuse("MPICH with MPI_THREAD_MULTIPLE");
}

static void enter_loop(void)
{
    enter(MPIX_STREAM_NULL);
}

static int on_turn(MPIX_Async_thing thing)
{
    (void)thing;
    if (!wanted)
        return MPIX_ASYNC_DONE;
    wanted();
    return MPIX_ASYNC_NOPROGRESS;
}

static bool hook_start(int (*function)(void))
{
    wanted = function;
    return start(on_turn, NULL, MPIX_STREAM_NULL) == MPI_SUCCESS;
}

static void hook_end(void)
{
    wanted = NULL;
    enter_loop();
}
#endif

#ifdef NBC_HOOK_FUNCTION
/* Whether the progress loop calls what is hooked into it. */
static bool try_hook(void)
{
    enum { MOST = 1000 };
    ncalls = 0;
    if (!hook_start(count_call))
        /* unreached: other versions of Open MPI */
        return false;
    installed = count_call;
    for (int i = 0; i < MOST && !ncalls; i++)
        enter_loop();
    hook_end();
    installed = NULL;
    return ncalls > 0;
}

bool nbc_hook_install(int (*function)(void), int level, bool any)
{
    if (!look_for(any))
        /* unreached: other versions of Open MPI */
        return false;
    failed = !allows(level);
    if (failed)
        /* unreached: other versions of Open MPI */
        return false;
    failed = !try_hook() || !hook_start(function);
    if (failed)
        return refuse(NBC_HOOK_FUNCTION " does not have the expected effect");
    description = NBC_HOOK_FUNCTION;
    installed = function;
    return true;
}

bool nbc_hook_available(void)
{
    return installed || (!failed && look_for(false));
}

void nbc_hook_remove(void)
{
    if (installed)
        hook_end();
    installed = NULL;
}

const char *nbc_hook_description(void)
{
    if (!description && look_for(false))
        return NBC_HOOK_FUNCTION;
    return description;
}
#else
bool nbc_hook_install(int (*function)(void), int level, bool any)
{
    (void)function, (void)level, (void)any;
    return false;
}

bool nbc_hook_available(void)
{
    return false;
}

void nbc_hook_remove(void)
{
}

const char *nbc_hook_description(void)
{
    refuse("this MPI does not call registered functions in its progress loop");
    return description;
}
#endif
