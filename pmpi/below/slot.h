/* SPDX-License-Identifier: MIT */
/* Slots of the MPI's library: where the dynamic linker keeps the addresses of functions of other
 * libraries that the MPI calls. A slot concerns the calls of this library alone; a function that
 * nbcshim defined under the same name would concern the whole process. */
#ifndef NBC_SLOT_H
#define NBC_SLOT_H

#include <stdbool.h>

typedef void nbc_slot_function(void);

struct nbc_slot {
    nbc_slot_function **place;
    nbc_slot_function *original; /* what the MPI calls without nbcshim */
    bool write_protected;        /* (RELRO) */
};

/* Finds the slot for the function of this name. Returns false if the MPI's library calls no such
 * function in another library, or is a part of the program (linked statically). Local. */
bool nbc_slot_find(const char *name, struct nbc_slot *slot);

/* Makes the MPI call `function` in place of the original, or the original again. Returns false if
 * the system refuses it. Other threads may be in such a call meanwhile. Local. */
bool nbc_slot_set(const struct nbc_slot *slot, nbc_slot_function *function);

#endif
