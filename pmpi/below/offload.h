/* SPDX-License-Identifier: MIT */
/* Libraries to which the MPI hands collectives, and which have switches and adapters carry them
 * out: where the MPI itself says so. */
#ifndef NBC_OFFLOAD_H
#define NBC_OFFLOAD_H

#include <stdint.h>

/* Returns the nonblocking collectives that the MPI hands to such a library, a bit for each of enum
 * nbc_coll, and sets *name to the library's name. After the MPI is initialized. Without the lock.
 * Local. */
uint32_t nbc_offload_find(const char **name);

#endif
