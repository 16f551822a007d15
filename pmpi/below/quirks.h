/* SPDX-License-Identifier: MIT */
/* What an MPI below must be told so that programs do not hang in it. */
#ifndef NBC_QUIRKS_H
#define NBC_QUIRKS_H

/* Before the MPI's own init, in a process that wants the shim. */
void nbc_quirks_before_init(void);

#endif
