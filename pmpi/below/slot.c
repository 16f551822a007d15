/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "below/slot.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "below/elf.h"
#include "below/next.h"

#if __ELF_NATIVE_CLASS == 64
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#endif

struct search {
    const char *name;
    uintptr_t inside; /* an address in the MPI's library */
    const char *path; /* of that library */
    struct nbc_slot *slot;
};

static uintptr_t page_of(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* The dynamic linker protects whole pages, not the last one if that is not full. */
static bool is_protected(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_GNU_RELRO && address >= page_of(begin) &&
            address < page_of(begin + p->p_memsz))
            return true;
    }
    return false;
}

/* Relocations with an addend are addresses in data, not slots. */
static bool search_table(struct search *s, const struct dl_phdr_info *object, ElfW(Sxword) table,
                         ElfW(Sxword) size)
{
    const ElfW(Dyn) *d = nbc_elf_dynamic(object);
    const ElfW(Sym) *symbols = nbc_elf_table(object, d, DT_SYMTAB);
    const char *strings = nbc_elf_table(object, d, DT_STRTAB);
    const ElfW(Rela) *r = nbc_elf_table(object, d, table);
    const size_t n = r ? nbc_elf_entry(d, size) / sizeof *r : 0;
    for (size_t i = 0; i < n; i++) {
        size_t symbol = SYMBOL_OF(r[i].r_info);
        if (!symbol || r[i].r_addend || strcmp(strings + symbols[symbol].st_name, s->name) != 0)
            continue;
        uintptr_t place = object->dlpi_addr + r[i].r_offset;
        s->slot->place = (nbc_slot_function **)place;
        s->slot->original = *s->slot->place;
        s->slot->write_protected = is_protected(object, place);
        return true;
    }
    return false;
}

static bool search_object(struct search *s, const struct dl_phdr_info *object)
{
    const ElfW(Dyn) *d = nbc_elf_dynamic(object);
    bool plt = d && nbc_elf_entry(d, DT_PLTREL) == DT_RELA;
    return (plt && search_table(s, object, DT_JMPREL, DT_PLTRELSZ)) ||
           (d && search_table(s, object, DT_RELA, DT_RELASZ));
}

static int find_in_mpi(struct dl_phdr_info *object, size_t size, void *search)
{
    struct search *s = search;
    (void)size;
    if (!nbc_elf_has(object, s->inside))
        return 0;
    s->path = object->dlpi_name;
    if (!*s->path || !search_object(s, object))
        return -1;
    /* The MPI has not called it yet: the slot leads into the library itself. */
    if (nbc_elf_has(object, (uintptr_t)s->slot->original))
        s->slot->original = NULL;
    return 1;
}

/* As the dynamic linker does it. The MPI may have been loaded for somebody alone (RTLD_LOCAL). */
static nbc_slot_function *look_up(const struct search *s)
{
    void *object = dlsym(RTLD_DEFAULT, s->name);
    nbc_slot_function *function;
    if (!object)
        object = nbc_next_in(s->path, s->name);
    memcpy(&function, &object, sizeof function); /* POSIX permits the conversion */
    return function;
}

bool nbc_slot_find(const char *name, struct nbc_slot *slot)
{
    __typeof__(PMPI_Initialized) *initialized = NEXT(Initialized);
    struct search s = {.name = name, .inside = (uintptr_t)initialized, .slot = slot};
    if (dl_iterate_phdr(find_in_mpi, &s) != 1)
        return false;
    if (!slot->original)
        slot->original = look_up(&s);
    return slot->original != NULL;
}

bool nbc_slot_set(const struct nbc_slot *slot, nbc_slot_function *function)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)page_of((uintptr_t)slot->place);
    if (slot->write_protected && mprotect(page, size, PROT_READ | PROT_WRITE) != 0)
        return false;
    __atomic_store_n(slot->place, function, __ATOMIC_RELEASE);
    if (slot->write_protected)
        mprotect(page, size, PROT_READ);
    return true;
}
