/* SPDX-License-Identifier: MIT */
/* Sessions (MPI-4.1 section 11.3): a program may never call MPI_Init, and then there is no
 * communicator of all to agree on. So each communicator that is made from a group carries its own
 * agreement, made over itself: it is ours if any of its ranks wants that or has taken over already.
 * What is made from it follows it. */
#ifndef NBC_SESSIONS_H
#define NBC_SESSIONS_H

/* What MPI_Init set up is about to end. The shim ends with it, or with the last session open. */
void nbc_sessions_end_world(void);

#endif
