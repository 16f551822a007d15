/* SPDX-License-Identifier: MIT */
/* A program that asks whether the MPI has a function, by a weak reference or dlsym as mpi4py does,
 * must not find it here if nobody behind this library has it: it has another way then, which
 * --compare is to measure. So the dynamic symbols of these functions become undefined, before main.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__ /* others lack dladdr1 */

static const char *const names[] = {
#define EXTENSION_OF(...)
#define ENTRY(name, ...) #name,
#include "op/forms.def"
};

static void hide(const char *symbol)
{
    Dl_info own, found;
    void *entry = NULL, *function = dlsym(RTLD_DEFAULT, symbol);
    if (!function || !dladdr(names, &own) || !dladdr1(function, &found, &entry, RTLD_DL_SYMENT) ||
        !entry || found.dli_fbase != own.dli_fbase)
        return; /* unreached: another library in front defines it too */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)entry & ~(page - 1);
    size_t size = (uintptr_t)entry + sizeof(ElfW(Sym)) - first;
    if (mprotect((void *)first, size, PROT_READ | PROT_WRITE) != 0)
        return; /* unreached: the table cannot be changed */
    ((ElfW(Sym) *)entry)->st_shndx = SHN_UNDEF;
    ((ElfW(Sym) *)entry)->st_value = 0;
    mprotect((void *)first, size, PROT_READ);
}

__attribute__((constructor)) static void hide_missing(void)
{
    char symbol[64];
    if (!dlsym(RTLD_NEXT, "PMPI_Init"))
        return; /* unreached: the MPI is loaded later */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(symbol, sizeof symbol, "PMPI_%s", names[i]);
        if (dlsym(RTLD_NEXT, symbol))
            continue;
        hide(symbol);
        hide(symbol + 1);
    }
}

#endif
