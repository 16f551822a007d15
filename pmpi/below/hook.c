/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/hook.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "below/next.h"

/* A constant. Threads that write it at the same time write the same. */
static const char *description;

static bool refuse(const char *why)
{
    description = why;
    return false;
}

#if defined OPEN_MPI && defined HAVE_MPI_GET_LIBRARY_VERSION
typedef int registers(int (*function)(void));

/* The versions that are known to call such functions in all of their waits. */
enum { FIRST_VERSION = 1, LAST_VERSION = 5 };

static registers *unregister; /* while the hook is installed */
static int (*installed)(void);
static unsigned ncalls; /* of the function, during the trial */
static bool failed;     /* the trial */

/* In the static library RTLD_NEXT finds nothing of a program that is linked statically. */
static registers *find(const char *name, const void **address)
{
    registers *found;
    void *object = dlsym(RTLD_NEXT, name);
    if (!object)
        object = dlsym(RTLD_DEFAULT, name);
    *address = object;
    memcpy(&found, &object, sizeof found); /* POSIX permits the conversion */
    return found;
}

/* Whether an address is in a library of Open MPI. Another library may have a function of this name
 * that does something else. */
static bool is_in_open_mpi(const void *address)
{
    static const char *const libraries[] = {"libopen-pal", "libopal", "libmpi", NULL};
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    for (int i = 0; libraries[i]; i++)
        if (strncmp(file, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

/* Returns the major version, 0 if the MPI is not Open MPI. */
static int version_major(void)
{
    static const char name[] = "Open MPI v";
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (NEXT(Get_library_version)(version, &length) || strncmp(version, name, sizeof name - 1) != 0)
        return 0;
    return atoi(version + sizeof name - 1);
}

static int count_call(void)
{
    ncalls++;
    return 0;
}

/* Whether the progress loop calls a function that is registered. */
static bool try_hook(registers *add, registers *drop)
{
    int flag;
    ncalls = 0;
    if (add(count_call) != 0)
        return false;
    for (int i = 0; i < 1000 && !ncalls; i++)
        NEXT(Iprobe)(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    bool called = ncalls > 0;
    return drop(count_call) == 0 && called;
}

/* Finds the two functions. Returns false, and says why, if they may not be used. */
static bool look_for(bool any, registers **add, registers **drop)
{
    const void *at_add, *at_drop;
    int major = version_major();
    *add = find("opal_progress_register", &at_add);
    *drop = find("opal_progress_unregister", &at_drop);
    if (!*add || !*drop)
        return refuse("this Open MPI has no opal_progress_register");
    if (!is_in_open_mpi(at_add) || !is_in_open_mpi(at_drop))
        return refuse("opal_progress_register is not a function of Open MPI");
    if (!any && (major < FIRST_VERSION || major > LAST_VERSION))
        return refuse("nbcshim does not know this version of Open MPI");
    description = "opal_progress_register";
    return true;
}

bool nbc_hook_install(int (*function)(void), bool any)
{
    registers *add, *drop;
    if (!look_for(any, &add, &drop))
        return false;
    failed = !try_hook(add, drop) || add(function) != 0;
    if (failed)
        return refuse("opal_progress_register does not have the expected effect");
    installed = function;
    unregister = drop;
    return true;
}

bool nbc_hook_available(void)
{
    registers *add, *drop;
    if (unregister)
        return true;
    return !failed && look_for(false, &add, &drop);
}

void nbc_hook_remove(void)
{
    if (unregister)
        unregister(installed);
    unregister = NULL;
}
#else
bool nbc_hook_install(int (*function)(void), bool any)
{
    (void)function, (void)any;
    return refuse("this MPI does not call functions of others in its progress loop");
}

bool nbc_hook_available(void)
{
    return nbc_hook_install(NULL, false);
}

void nbc_hook_remove(void)
{
}
#endif

const char *nbc_hook_description(void)
{
    if (!description)
        nbc_hook_available();
    return description;
}
