/* SPDX-License-Identifier: MIT */
/* The layer below: every MPI call that the shim makes goes through NEXT().
 *
 * In the shared object that is a table filled by dlsym(RTLD_NEXT, "PMPI_…"): the shim exports
 * PMPI_ names itself, so a plain PMPI_Wait would come back to it. In the static library, which
 * exports no PMPI_ name, it is the plain PMPI_ call. */
#ifndef NBC_NEXT_H
#define NBC_NEXT_H

#include "config.h"

#include <mpi.h>

/* Also in the static build, which has no use for it: libtool compiles each file twice, shared
 * first, and the list of included files that make goes by is that of the second time. */
struct nbc_next {
#define FN(name) __typeof__(MPI_##name) *name;
#include "below/next.def"
#undef FN
};

#ifdef PIC
/* Written when the library is loaded, or by nbc_next_resolve before that; read only afterwards. */
extern struct nbc_next nbc_next;

#define NEXT(name) (nbc_next.name)
#else
#define NEXT(name) PMPI_##name
#endif

/* Fills the table and finds tools; any number of times. Called when the library is loaded, and by
 * each function through which a program can enter MPI for the first time: other constructors may
 * run before ours. */
void nbc_next_resolve(void);

/* A function of the MPI below by its name without prefix ("Iallreduce"), NULL where it has none.
 * For those that the shim replaces and calls itself only to stand aside. NULL in the static
 * library, which calls them by name. */
void (*nbc_next_find(const char *name))(void);

#endif
