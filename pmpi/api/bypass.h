/* SPDX-License-Identifier: MIT */
/* Programs whose calls of MPI go to the MPI itself and not to nbcshim, because its library comes
 * first, or because they take MPI_Init from it. nbcshim can run no collective there: the calls that
 * complete its requests would go to the MPI too. */
#ifndef NBC_BYPASS_H
#define NBC_BYPASS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the program's calls bypass nbcshim. Writes to `text` how, and what to do. Between
 * MPI_Init and MPI_Finalize of the MPI, while nbcshim is inactive. Without the lock. Local. */
bool nbc_bypassed(char *text, size_t room);

/* Whether MPI_Init or MPI_Init_thread of nbcshim has been called. */
extern bool nbc_init_was_called;

#endif
