/* SPDX-License-Identifier: MIT */
#ifndef NBC_DETECT_H
#define NBC_DETECT_H

#include <stdbool.h>

/* Whether an object of this process, the MPI's own libraries and the shim left out, refers to a
 * nonblocking or persistent collective by name: a program that refers to none cannot call one, and
 * then pays nothing for the shim. Always true in the static library: it is linked in on purpose. */
bool nbc_program_wants_us(void);

/* Whether an object is one of the MPI's libraries: those are named after it. Shared library only.
 */
bool nbc_is_mpi(const char *path);

#endif
