/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/next.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "below/detect.h"
#include "below/export.h"

typedef void function(void);

extern const struct nbc_tool *const __start_nbc_tools[], *const __stop_nbc_tools[];

void (*nbc_next_enter)(void), (*nbc_next_leave)(void);
NBC_PER_THREAD const void *nbc_next_site;
const char *nbc_next_mpi_in_front; /* written once, by resolve_all */

static const void *data_address(function *f)
{
    const void *address;
    memcpy(&address, &f, sizeof address);
    return address;
}

const char *nbc_next_wrapper(const void *start)
{
    for (const struct nbc_tool *const *p = __start_nbc_tools; p < __stop_nbc_tools; p++) {
        const struct nbc_tool *t = *p;
        bool found = data_address(t->shim) == start;
#ifndef PIC
        found = found || data_address(t->entry) == start;
#endif
        if (found)
            return t->name;
    }
    return NULL;
}

static function *as_function(void *object)
{
    function *f;
    memcpy(&f, &object, sizeof f); /* POSIX permits the conversion */
    return f;
}

/* Whether it is in the library of another MPI than ours. */
static bool is_of_another_mpi(const void *object)
{
    Dl_info info, ours;
    return dladdr(object, &info) && nbc_is_mpi(info.dli_fname) &&
           dladdr(data_address((function *)NEXT(Init)), &ours) && info.dli_fbase != ours.dli_fbase;
}

void *nbc_next_object(const char *symbol)
{
    void *object = dlsym(RTLD_NEXT, symbol);
    if (!object)
        object = dlsym(RTLD_DEFAULT, symbol);
    return object && is_of_another_mpi(object) ? NULL : object;
}

function *nbc_next_function(const char *symbol)
{
    return as_function(nbc_next_object(symbol));
}

void *nbc_next_in(const char *path, const char *symbol)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, symbol) : NULL;
    if (library)
        dlclose(library); /* it stays: its code is in use */
    return found;
}

void nbc_next_let_launcher_read(void)
{
    const struct timespec while_it_reads = {.tv_nsec = 300000000};
    nanosleep(&while_it_reads, NULL);
}

#ifdef PIC
#include <pthread.h>
#include <stdio.h>

#include "nbcshim.h"

struct nbc_next nbc_next;
bool nbc_next_resolved;

/* The base address of the object that contains an address, NULL if there is none. */
static const void *object_of(const void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Nothing comes after the shim if the MPI comes before it. */
static void *look_up(const char *symbol)
{
    if (!nbc_next_mpi_in_front)
        return dlsym(RTLD_NEXT, symbol);
    void *found = dlsym(RTLD_DEFAULT, symbol);
    return object_of(found) == object_of(&nbc_next) ? NULL : found;
}

function *nbc_next_symbol(const char *symbol, const void *caller)
{
    Dl_info info;
    void *found = dlsym(RTLD_NEXT, symbol);
    if (!found && dladdr(caller, &info))
        found = nbc_next_in(info.dli_fname, symbol);
    return as_function(found);
}

function *nbc_next_kept(function **kept, const char *symbol, const void *caller)
{
    function *next = __atomic_load_n(kept, __ATOMIC_RELAXED);
    if (!next) /* each thread finds the same */
        __atomic_store_n(kept, next = nbc_next_symbol(symbol, caller), __ATOMIC_RELAXED);
    return next;
}

static function *find_symbol(const char *prefix, const char *name)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    return as_function(look_up(symbol));
}

function *nbc_next_find(const char *name)
{
    return find_symbol("PMPI_", name);
}

/* Whether a tool is loaded after the shim: then MPI_X and PMPI_X of the next objects are in
 * different objects. Usually they are the same function, and the slow dladdr is not needed. An
 * object with both is the MPI, behind a library that has PMPI_X alone. */
static bool is_tool(const char *name, function *below)
{
    char symbol[64];
    Dl_info info;
    function *pmpi = find_symbol("PMPI_", name);
    if (below == pmpi || !dladdr(data_address(below), &info) ||
        info.dli_fbase == object_of(data_address(pmpi)))
        return false;
    snprintf(symbol, sizeof symbol, "PMPI_%s", name);
    return object_of(nbc_next_in(info.dli_fname, symbol)) != info.dli_fbase;
}

/* Whether a tool is loaded before the shim: then the program's calls go to that tool. */
static bool has_front_tool(const char *name)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "MPI_%s", name);
    const void *object = object_of(dlsym(RTLD_DEFAULT, symbol));
    return object && object != object_of(&nbc_next);
}

static void find_tools(void)
{
    for (const struct nbc_tool *const *p = __start_nbc_tools; p < __stop_nbc_tools; p++) {
        const struct nbc_tool *t = *p;
        function *below = find_symbol("MPI_", t->name);
        if (!is_tool(t->name, below))
            continue;
        *t->next_tool = below;
        *t->has_front = has_front_tool(t->name);
    }
}

static bool (*is_within)(void); /* whether this thread is in an observed call */

void nbc_next_observe(void (*enter)(void), void (*leave)(void), bool (*within)(void))
{
    nbc_next_enter = enter;
    nbc_next_leave = leave;
    is_within = within;
    for (const struct nbc_tool *const *p = __start_nbc_tools; p < __stop_nbc_tools; p++)
        if (!*(*p)->next_tool) {
            *(*p)->next_tool = (*p)->shim;
            *(*p)->has_front = true;
        }
}

/* A tool may reach the PMPI_ function by a tail call and leave its own caller's address, so the
 * tool loaded before the shim cannot be recognized by its object. Any caller is taken for it except
 * the tool loaded after the shim, the shim itself (in a call of that tool), and the MPI. */
bool nbc_next_passed_on(function *next_tool, const void *caller)
{
    Dl_info info;
    if (is_within && is_within())
        return false;
    if (object_of(data_address(next_tool)) == object_of(&nbc_next))
        return true; /* observed, without a tool */
    if (!dladdr(caller, &info))
        return false; /* unreached: no object at the address */
    return info.dli_fbase != object_of(&nbc_next) &&
           info.dli_fbase != object_of(data_address(next_tool)) && !nbc_is_mpi(info.dli_fname);
}

const char *nbcshim_function(int index, int *below)
{
    if (index < 0 || index >= __stop_nbc_tools - __start_nbc_tools)
        return NULL;
    const char *name = __start_nbc_tools[index]->name;
    *below = nbc_next_find(name) != NULL;
    return name;
}

static void find_mpi_in_front(void)
{
    Dl_info info;
    void *init = dlsym(RTLD_DEFAULT, "PMPI_Init");
    if (dlsym(RTLD_NEXT, "PMPI_Init") || !init || !dladdr(init, &info))
        return;
    if (info.dli_fbase != object_of(&nbc_next))
        nbc_next_mpi_in_front = info.dli_fname;
}

static void resolve_all(void)
{
    find_mpi_in_front();
#define FN(name) nbc_next.name = (__typeof__(nbc_next.name))nbc_next_find(#name);
#include "below/next.def"
#undef FN
    if (!nbc_next_mpi_in_front)
        find_tools();
    __atomic_store_n(&nbc_next_resolved, true, __ATOMIC_RELEASE);
}

/* Runs as a constructor, because a tool loaded after the shim must see MPI_Init too. Moreover, a
 * program may initialize the MPI without the shim (MPI_Init by dlsym from the MPI's library, or in
 * an object with RTLD_DEEPBIND) and call the shim afterwards. */
__attribute__((constructor)) void nbc_next_resolve_now(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, resolve_all);
}
#else

void nbc_next_observe(void (*enter)(void), void (*leave)(void), bool (*within)(void))
{
    (void)within;
    nbc_next_enter = enter;
    nbc_next_leave = leave;
}

/* unreached: empty in the static library */
const char *nbcshim_function(int index, int *below)
{
    (void)index;
    (void)below;
    return NULL;
}

#endif
