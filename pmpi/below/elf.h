/* SPDX-License-Identifier: MIT */
/* What the dynamic linker knows of an object that the process has loaded. Needs _GNU_SOURCE. */
#ifndef NBC_ELF_H
#define NBC_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether an address is in one of the object's segments. */
static inline bool nbc_elf_has(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && address - (object->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

/* The dynamic section; NULL if there is none. */
static inline const ElfW(Dyn) * nbc_elf_dynamic(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* The value of an entry of the dynamic section, 0 if it is missing. */
static inline uintptr_t nbc_elf_entry(const ElfW(Dyn) * d, ElfW(Sxword) tag)
{
    while (d->d_tag != DT_NULL && d->d_tag != tag)
        d++;
    return d->d_tag == DT_NULL ? 0 : d->d_un.d_val;
}

/* The same of an entry that is an address: glibc relocates these, musl and others do not. */
static inline const void *nbc_elf_table(const struct dl_phdr_info *object, const ElfW(Dyn) * d,
                                        ElfW(Sxword) tag)
{
    uintptr_t value = nbc_elf_entry(d, tag);
    return (const void *)(value && value < object->dlpi_addr ? value + object->dlpi_addr : value);
}

#endif
