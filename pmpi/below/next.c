/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/next.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef PIC
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "nbcshim.h"

#include "below/detect.h"
#include "below/export.h"

struct nbc_next nbc_next;

typedef void function(void);

static function *find(const char *prefix, const char *name)
{
    char symbol[64];
    void *object;
    function *found;
    snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    object = dlsym(RTLD_NEXT, symbol);
    memcpy(&found, &object, sizeof found); /* POSIX lets a function pointer travel as an object's */
    return found;
}

function *nbc_next_find(const char *name)
{
    return find("PMPI_", name);
}

static const void *data_address(function *f)
{
    const void *address;
    memcpy(&address, &f, sizeof address);
    return address;
}

/* Where the object begins that holds an address; NULL for none. */
static const void *object_of(const void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* A tool behind us: MPI_X and PMPI_X of the next object are in different objects. (Most often they
 * are the same function: dladdr takes its time.) */
static bool is_tool(function *below, function *pmpi)
{
    if (below == pmpi)
        return false;
    const void *object = object_of(data_address(below));
    return object && object != object_of(data_address(pmpi));
}

/* A tool in front of us: the program's calls go there. */
static bool has_front(const char *name)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "MPI_%s", name);
    const void *object = object_of(dlsym(RTLD_DEFAULT, symbol));
    return object && object != object_of(&nbc_next);
}

extern const struct nbc_tool *const __start_nbc_tools[], *const __stop_nbc_tools[];

static void find_tools(void)
{
    for (const struct nbc_tool *const *p = __start_nbc_tools; p < __stop_nbc_tools; p++) {
        const struct nbc_tool *t = *p;
        function *below = find("MPI_", t->name);
        if (!is_tool(below, find("PMPI_", t->name)))
            continue;
        *t->behind = below;
        *t->between = has_front(t->name);
    }
}

/* A tool that ends with the call may have left its caller's address, so the tool in front cannot be
 * told by its own: whoever is neither the tool behind, nor us calling that one, nor the MPI. */
bool nbc_next_passed_on(function *behind, const void *caller)
{
    Dl_info info;
    if (!dladdr(caller, &info))
        return false;
    return info.dli_fbase != object_of(&nbc_next) &&
           info.dli_fbase != object_of(data_address(behind)) && !nbc_is_mpi(info.dli_fname);
}

const char *nbcshim_function(int index, int *below)
{
    if (index < 0 || index >= __stop_nbc_tools - __start_nbc_tools)
        return NULL;
    const char *name = __start_nbc_tools[index]->name;
    *below = nbc_next_find(name) != NULL;
    return name;
}

static void resolve(void)
{
#define FN(name) nbc_next.name = (__typeof__(nbc_next.name))nbc_next_find(#name);
#include "below/next.def"
#undef FN
    find_tools();
}

/* As soon as we are loaded: a tool behind us is to see MPI_Init too. And a program may initialize
 * the MPI past us (MPI_Init by dlsym from the MPI's library, or in an object with RTLD_DEEPBIND)
 * and call us afterwards. */
__attribute__((constructor)) void nbc_next_resolve(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, resolve);
}
#else

const char *nbcshim_function(int index, int *below)
{
    (void)index;
    (void)below;
    return NULL;
}

void (*nbc_next_find(const char *name))(void)
{
    (void)name;
    return NULL;
}

void nbc_next_resolve(void)
{
}
#endif
