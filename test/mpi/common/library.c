/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static uintptr_t first, end;

bool library_has(const void *address)
{
    return (uintptr_t)address >= first && (uintptr_t)address < end;
}

static int look(struct dl_phdr_info *info, size_t size, void *address)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || (uintptr_t)address - from >= h->p_memsz)
            continue;
        end = from + h->p_memsz;
        first = from;
        return 1;
    }
    return 0;
}

void library_find(void)
{
    void *inside = dlsym(RTLD_DEFAULT, "nbcshim_version");
    EXPECT(inside && dl_iterate_phdr(look, inside), "no library");
}

/* nbcshim has no function of this name. */
static void *open_mpi(void)
{
    Dl_info info;
    return dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_version"), &info)
               ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
               : NULL;
}

library_function *library_below(const char *name)
{
    static void *mpi;
    if (!mpi)
        mpi = open_mpi();
    library_function *found;
    void *object = mpi ? dlsym(mpi, name) : NULL;
    memcpy(&found, &object, sizeof found);
    return found;
}
