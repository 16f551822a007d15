/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "next.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef PIC
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "nbcshim.h"

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

/* A tool behind us: MPI_X and PMPI_X of the next object are in different objects. */
static bool is_tool(function *below, function *pmpi)
{
    Dl_info a, b;
    void *address;
    memcpy(&address, &below, sizeof address);
    if (!below || !dladdr(address, &a))
        return false;
    memcpy(&address, &pmpi, sizeof address);
    return !pmpi || !dladdr(address, &b) || a.dli_fbase != b.dli_fbase;
}

extern const struct nbc_tool __start_nbc_tools[], __stop_nbc_tools[];

static void find_tools(void)
{
    for (const struct nbc_tool *t = __start_nbc_tools; t < __stop_nbc_tools; t++) {
        function *below = find("MPI_", t->name);
        if (is_tool(below, find("PMPI_", t->name)))
            *t->slot = below;
    }
}

const char *nbcshim_function(int index, int *below)
{
    if (index < 0 || index >= __stop_nbc_tools - __start_nbc_tools)
        return NULL;
    const char *name = __start_nbc_tools[index].name;
    *below = nbc_next_find(name) != NULL;
    return name;
}

void nbc_next_resolve(void)
{
    if (NEXT(Init))
        return;
#define FN(name) nbc_next.name = (__typeof__(nbc_next.name))nbc_next_find(#name);
#include "next.def"
#undef FN
    find_tools();
}
#else
#include "nbcshim.h"

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
