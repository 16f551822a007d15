/* SPDX-License-Identifier: MIT */
/* Works around defects of the MPI below that would hang programs. */
#ifndef NBC_QUIRKS_H
#define NBC_QUIRKS_H

/* Sets the environment variables that the MPI below reads at its initialization. To be called
 * before that, in a process in which nbcshim may become active. Without the lock. Local. */
void nbc_quirks_before_init(void);

#endif
