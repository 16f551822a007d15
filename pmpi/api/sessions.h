/* SPDX-License-Identifier: MIT */
/* Sessions (MPI-4.1 section 11.3). A program of sessions need not call MPI_Init, so its ranks have
 * no common communicator on which to agree whether nbcshim is active. They agree on each
 * communicator that is made from a group: it gets a context if nbcshim is active on any of its
 * ranks, or any of them wants it. Communicators made from that one follow it. */
#ifndef NBC_SESSIONS_H
#define NBC_SESSIONS_H

/* MPI_Finalize is about to free MPI_COMM_WORLD and MPI_COMM_SELF. Shuts nbcshim down; with sessions
 * still open, only detaches it from these communicators. Without the lock. */
void nbc_sessions_end_world(void);

/* Around the native MPI_Finalize. Without the lock. */
void nbc_sessions_finalize_begins(void);
void nbc_sessions_finalize_ends(void);

#endif
