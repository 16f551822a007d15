/* SPDX-License-Identifier: MIT */
/* The lines of Python from which the program calls MPI: the stack of the interpreter's functions is
 * the same for all of them. */
#ifndef NBC_PROFILE_PYTHON_H
#define NBC_PROFILE_PYTHON_H

#include <stdio.h>

struct nbc_python;

/* Called in MPI_Init: whether the program is Python, 3.9 or later. Local. */
void nbc_python_setup(void);

/* The lines of this thread, the innermost first; equal ones are the same object. NULL: the thread
 * runs no Python. Takes the interpreter's lock (GIL), so that no lock of this library may be held.
 */
const struct nbc_python *nbc_python_find(void);

/* Writes each line as "\tLINE :FUNCTION FILE", the number in hexadecimal digits; of NULL nothing.
 */
void nbc_python_write(FILE *out, const struct nbc_python *lines);

#endif
