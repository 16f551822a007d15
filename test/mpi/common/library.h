/* SPDX-License-Identifier: MIT */
/* Which calls come from nbcshim, for programs that put a function of their own in the place of one
 * of libc's. Not where it is linked statically: its code is the program's then. */
#ifndef NBC_TEST_LIBRARY_H
#define NBC_TEST_LIBRARY_H

#include "util.h"

/* Whether the caller of the function that it is used in is in the library; false before
 * library_find. */
#define FROM_LIBRARY library_has(__builtin_return_address(0))

void library_find(void);
bool library_has(const void *address);

#endif
