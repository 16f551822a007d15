/* SPDX-License-Identifier: MIT */
/* Whether nbcshim is active in this process. Written at init and finalize, when no second thread of
 * the program may call MPI, or, in a program that uses sessions, under the lock of sessions.c. */
#ifndef NBC_STATE_H
#define NBC_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "below/next.h"

/* Whether nbcshim runs the collectives of this process. It has the same value on every rank of
 * MPI_COMM_WORLD. MPI_Init sets it; in a program that only opens sessions, the creation of the
 * first communicator whose ranks want nbcshim does. While it is false, every call goes to the MPI
 * below, and no communicator has a context. */
extern NBC_HIDDEN bool nbc_enabled;

/* The collectives whose blocking calls the MPI carries out, a bit for each of enum nbc_coll; none
 * unless NBCSHIM_BLOCKING is, or has become, `native`. It has the same value on every rank. Where
 * the MPI lacks the functions with MPI_Count, nbcshim carries out both forms of a collective whose
 * large one the program references: its ranks may use either form in one call. */
extern NBC_HIDDEN uint32_t nbc_native_blocking;

/* Where the MPI lacks the functions with MPI_Count: those that the program of any rank references
 * (nbc_program_large), all where that is not known. It has the same value on every rank. */
extern uint32_t nbc_referenced_large;

/* The nonblocking collectives that are left to the MPI unless the user wants otherwise, and the
 * library for which they are (offload.c). The first is the same on every rank. */
extern NBC_HIDDEN uint32_t nbc_offloaded;
extern const char *nbc_offload_name;

/* Whether MPI_COMM_WORLD and MPI_COMM_SELF may be used: MPI_Init has been called, and MPI_Finalize
 * has not. */
extern bool nbc_world_initialized;

/* Whether a communicator may have several processes. Without MPI_Init that is not so before such
 * a one has been created; an operation then waits for no other process. Threads read it, and set it
 * once, without a lock. */
extern bool nbc_has_peers;

/* Whether the MPI below calls nbcshim in its progress loop (below/hook.h): a rank that is blocked
 * in the MPI then progresses the operations of nbcshim. It has the same value on every rank of
 * MPI_COMM_WORLD. */
extern bool nbc_hooked;

/* Whether it was so until MPI_Finalize. */
extern bool nbc_was_hooked;

/* The function of the MPI by which that is done, or why it is not. A constant. */
const char *nbc_hook_state(void);

/* Whether the progress thread polls. Then the start of a run with long messages leaves to it the
 * calls that move data: MPI_Isend over sockets, MPI_Irecv within a node. Read and written
 * atomically; set to false under the lock. */
extern bool nbc_by_thread;

static inline bool nbc_thread_polls(void)
{
    return __atomic_load_n(&nbc_by_thread, __ATOMIC_RELAXED);
}

/* A communicator of this process alone, for calls and errors that belong to no other communicator:
 * MPI_COMM_SELF, or one from a session that nbcshim has opened. Set when nbcshim becomes active. */
extern MPI_Comm nbc_handle_comm;

/* Another one, on which nothing of the program travels and errors are returned: for questions to
 * the MPI that it answers by raising an error, and for copies. MPI_COMM_NULL while there is none.
 */
extern MPI_Comm nbc_self_comm;

#endif
