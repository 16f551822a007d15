/* SPDX-License-Identifier: MIT */
/* Revoked communicators (ULFM: Bland, Bouteiller, Herault, Bosilca, Dongarra, "Post-failure
 * recovery of MPI communication capability", 2013). The messages of nbcshim travel on communicators
 * that the program cannot revoke, so the operations ask whether that of the program is. Open MPI
 * has the function from 5.0 on. */
#ifndef NBC_REVOKED_H
#define NBC_REVOKED_H

#include <stdbool.h>

#include "below/next.h"

/* Whether the MPI can tell that a communicator is revoked. Set when nbcshim becomes active. */
extern NBC_HIDDEN bool nbc_may_be_revoked;

/* The error MPI_ERR_REVOKED of the MPI. */
extern const int nbc_error_revoked;

void nbc_revoked_setup(void);

/* Whether a communicator is revoked, if nbc_may_be_revoked. Local. */
bool nbc_revoked_ask(MPI_Comm comm);

#endif
