/* SPDX-License-Identifier: MIT */
/* An MPI that simulates its ranks within one process, in virtual time (SMPI): configure finds out.
 *
 * Each rank has its own copy of the program, and so of nbcshim, which is linked statically. All
 * ranks run in turns in one thread of the system. A rank gives its turn away only in calls of MPI:
 * a yield of the processor has no effect. A poll takes virtual time, so a loop of polls takes
 * longer than the wait for what it polls. */
#ifndef NBC_SIMULATED_H
#define NBC_SIMULATED_H

#include "config.h"

/* NBC_PER_THREAD: the storage of what each thread of a rank has for itself. A simulated rank has no
 * threads, and the linker has room for the thread-local variables of only some hundred libraries.
 */
#ifdef NBC_SIMULATED
enum { NBC_IS_SIMULATED = 1 };
#define NBC_PER_THREAD
#else
enum { NBC_IS_SIMULATED = 0 };
#define NBC_PER_THREAD _Thread_local __attribute__((tls_model("initial-exec")))
#endif

#endif
