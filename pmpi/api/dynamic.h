/* SPDX-License-Identifier: MIT */
/* Processes that were started apart (MPI-4.1 chapter 11) and meet. Each side has decided for itself
 * whether the shim takes over, so they tell each other, by a collective call of the MPI below: the
 * other side must run under the shim as well, or NBCSHIM_DYNAMIC=0 be set on this one. */
#ifndef NBC_DYNAMIC_H
#define NBC_DYNAMIC_H

#include "below/next.h"

/* In MPI_Init: meets those that spawned this process, if any. Returns MPI_SUCCESS, or an error that
 * was raised. */
int nbc_dynamic_meet_parent(void);

#endif
