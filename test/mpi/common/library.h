/* SPDX-License-Identifier: MIT */
/* Tells calls made by nbcshim from others, for programs that replace a function of libc. Does not
 * work with the static library. And calls of the MPI that do not pass through nbcshim. */
#ifndef NBC_TEST_LIBRARY_H
#define NBC_TEST_LIBRARY_H

#include "util.h"

/* Whether the caller of the function that uses this macro is in the library. False before
 * library_find. */
#define FROM_LIBRARY library_has(__builtin_return_address(0))

void library_find(void);
bool library_has(const void *address);

/* The MPI's own function PMPI_..., which is NULL if it has none. */
typedef void library_function(void);
library_function *library_below(const char *name);

#endif
