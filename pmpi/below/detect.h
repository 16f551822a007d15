/* SPDX-License-Identifier: MIT */
/* Finds out which collectives the program uses. Without the lock. */
#ifndef NBC_DETECT_H
#define NBC_DETECT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "config.h"

#include "coll.h"

/* Whether an object of this process, other than the MPI's libraries and nbcshim, references by name
 * a nonblocking or persistent collective, or a blocking one that the MPI lacks. A program that
 * references none cannot call one and needs no shim. Always true in the static library, which is
 * linked in on purpose. Local. */
bool nbc_program_wants_us(void);

/* Of the blocking collectives with MPI_Count that the MPI lacks, those that such objects reference,
 * a bit for each of enum nbc_coll; and whether they reference one that makes a request. None in the
 * static library, which cannot tell. Local. */
enum { NBC_LARGE_REQUESTS = 1 << NBC_NCOLLS };
#ifdef HAVE_MPI_BCAST_C
enum { NBC_LARGE_UNKNOWN = 0 };
#else
enum { NBC_LARGE_UNKNOWN = 2 * NBC_LARGE_REQUESTS - 1 };
#endif
uint32_t nbc_program_large(void);

/* Ends the process, with one line, if it uses an MPI whose handles are not those of the MPI for
 * which this shared library was built: any call could crash then, also while the shim is inactive.
 * Called before the MPI is initialized. */
void nbc_require_its_mpi(void);

/* Whether one of the MPI's libraries in this process, which may be another copy than that below
 * nbcshim, has been initialized. Only in the shared library. */
bool nbc_mpi_is_initialized(void);

/* --- offload.c --- */

/* Returns the nonblocking collectives that the MPI hands to libraries that have the network carry
 * them out, a bit for each of enum nbc_coll, and sets *name to that of one. After the MPI is
 * initialized. Local. */
uint32_t nbc_offload_find(const char **name);

/* --- names of files --- */

/* The last part of a path. */
static inline const char *nbc_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the file name of an object is that of one of the MPI's libraries, those of its Fortran
 * binding included. */
static inline bool nbc_is_mpi(const char *path)
{
    const char *base = nbc_base_name(path);
    return strncmp(base, "libmpi", 6) == 0 || strncmp(base, "libpmpi", 7) == 0 ||
           strncmp(base, "libmpich", 8) == 0 || strncmp(base, "libfmpich", 9) == 0 ||
           strncmp(base, "libompi", 7) == 0 || strncmp(base, "mca_", 4) == 0;
}

#endif
