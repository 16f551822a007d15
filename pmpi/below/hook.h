/* SPDX-License-Identifier: MIT */
/* Progress from below: some MPIs call functions of others inside their own progress loop. A rank
 * that is blocked in any call of such an MPI then progresses the operations of nbcshim too.
 *
 * Open MPI 1 to 6: opal_progress_register(int (*)(void)), which Open MPI uses for its own
 * nonblocking collectives. The function may start messages and test requests; such a test enters
 * the progress loop again, and the function must return at once when it is called inside itself.
 *
 * MPICH from 4.3 on: MPIX_Async_start (Zhou, Latham, Raffenetti, Guo, Thakur: MPI Progress For All,
 * 2024). The function may start messages, and test requests that are complete.
 *
 * MPICH before 4.3 with the device ch4:ucx: ucp_worker_progress of UCX, which MPICH calls in each
 * turn through a slot of its library (slot.h). The function may do what it likes that does not
 * wait, as on Open MPI.
 *
 * MPICH before 4.3 and Intel MPI with the device ch4:ofi: the function that reads the completion
 * queue of libfabric, in each turn (ofi.h).
 *
 * Intel MPI on one node: MPL_wtime_acc, by such a slot, which it calls between some turns.
 *
 * To be called at init and at finalize, without the lock. Local. */
#ifndef NBC_HOOK_H
#define NBC_HOOK_H

#include <stdbool.h>

#include <mpi.h>

/* What has to be done before the MPI's init, and after it; the second does nothing without the
 * first. */
void nbc_hook_before_init(void);
void nbc_hook_after_init(void);

/* Makes the MPI call `function` in its progress loop, by each thread that is in it. Returns the way
 * in which that is done, a positive number, of which the functions below depend; 0 if this MPI
 * cannot do that at this thread level, or if it does not call what was hooked into the loop. any:
 * accept versions of the MPI that nbcshim does not know. */
int nbc_hook_install(int (*function)(void), int level, bool any);

/* After nbc_hook_install has succeeded in the same way on all ranks: where a process alone cannot
 * try whether the MPI calls the function, the ranks try it together. Collective over comm. Sets
 * *works to the same value on all ranks. Returns an MPI error code. */
int nbc_hook_try_together(MPI_Comm comm, bool *works);

/* Undoes nbc_hook_install, if it has succeeded. */
void nbc_hook_remove(void);

/* What is different with some ways. */
enum nbc_hook_trait {
    /* The function must look whether a request is complete, by nbc_hook_is_complete, before it
     * tests it: a test would enter the loop again. */
    NBC_HOOK_LOOKS = 1,
    /* It has to be removed before MPI_Finalize: MPICH waits there for the end of such functions
     * before it deletes attributes. Elsewhere it is removed later, so that callbacks of attributes
     * still have the hook. */
    NBC_HOOK_ENDS_EARLY = 2,
    /* The MPI waits in MPI_Win_start, MPI_Win_complete and MPI_Win_wait without calling the
     * function: MPICH 5.0 does. */
    NBC_HOOK_MISSES_EPOCHS = 4,
    /* It waits so in MPI_Probe and MPI_Mprobe: Intel MPI does. */
    NBC_HOOK_MISSES_PROBES = 8
};

/* Whether the way that was installed last has one of these. By any thread. */
bool nbc_hook_has(enum nbc_hook_trait trait);

bool nbc_hook_is_complete(MPI_Request request);

/* Whether nbc_hook_install has, or will look for, what it needs; before init too. */
bool nbc_hook_available(void);

/* The function of the MPI by which it is done, or why there is none. A constant. */
const char *nbc_hook_description(void);

#endif
