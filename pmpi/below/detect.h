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

/* Whether no object of this process but this library depends on the MPI for which this library was
 * built. Only in the shared library. */
bool nbc_only_we_need_mpi(void);

/* The name of an MPI library of the other kind that the program, or one of its libraries, depends
 * on; NULL if there is none. The kinds are that of the ABI of MPI-5, libmpi_abi, and all others.
 * Only in the shared library. */
const char *nbc_other_kind_needed(void);

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
bool nbc_is_mpi(const char *path);

/* Whether an address, of a caller, lies in one of these libraries. Only in the shared library; the
 * static one has no calls of theirs. */
bool nbc_is_within_mpi(const void *address);

#endif
