/* SPDX-License-Identifier: MIT */
/* Setup and shutdown of the state that is not of a single communicator, and what the beginning and
 * the end of nbcshim need of other files. All without the lock. */
#ifndef NBC_SETUP_H
#define NBC_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "below/next.h"

/* Whether this process wants nbcshim to be active. */
bool nbc_wanted(void);

/* Sets the state up, once. comm: any communicator; home: nbc_handle_comm, see state.h; rank: of
 * this process among all processes of the job. Collective if NBCSHIM_TRACE is set. Returns an MPI
 * error code. */
int nbc_set_up(MPI_Comm comm, MPI_Comm home, int rank);

/* Sets nbc_native_blocking from the settings. own: collectives that nbcshim carries out in any
 * case. */
void nbc_set_native_blocking(uint32_t own);

/* Whether it is: in MPI_Init, if a session has created a communicator before. */
bool nbc_is_set_up(void);

/* Frees all state. Called when the MPI is about to end: while MPI_Finalize deletes the attributes
 * of MPI_COMM_SELF, after those of the program, when all of MPI still works; or at the end of the
 * last session. */
void nbc_shutdown(void);

/* --- bypass.c --- */

/* If the program's calls bypass nbcshim, writes to `text` how, and what to do; else leaves it.
 * Between MPI_Init and MPI_Finalize of the MPI, while nbcshim is inactive. Local. */
void nbc_explain_bypass(char *text, size_t room);

/* Whether MPI_Init or MPI_Init_thread of nbcshim has been called. */
extern bool nbc_init_was_called;

/* --- dynamic.c --- */

/* Called in MPI_Init. If this job was spawned, agrees with the job that spawned it and attaches a
 * context to the intercommunicator. Collective over both jobs. Returns MPI_SUCCESS, or an error
 * that has been raised. */
int nbc_dynamic_meet_parent(void);

/* --- idup.c --- */

/* Makes the native calls of all MPI_Comm_idup of this communicator that still wait for earlier
 * ones. Called before its attributes or its error handler change, since a duplicate has those that
 * the communicator had at the call. Local. */
void nbc_idup_start_all(MPI_Comm comm);

/* --- sessions.c --- */

/* MPI_Finalize is about to free MPI_COMM_WORLD and MPI_COMM_SELF. Shuts nbcshim down; with sessions
 * still open, only detaches it from these communicators. */
void nbc_sessions_end_world(void);

/* Around the native MPI_Finalize. */
void nbc_sessions_finalize_begins(void);
void nbc_sessions_finalize_ends(void);

#endif
